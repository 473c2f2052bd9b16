#!/usr/bin/env bash
# The pages of docs/ as a book: target/book/docs/index.html. Needs mdBook (`cargo install mdbook --locked`).
# What the pages show of the rest of the repository lies beside it, where their links expect it.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v mdbook >/dev/null || { echo "book.sh needs mdBook: cargo install mdbook --locked" >&2; exit 1; }
rm -rf target/book
mdbook build docs --dest-dir "$PWD/target/book/docs"
cp -r results scenarios scripts target/book/
