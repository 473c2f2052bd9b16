#!/usr/bin/env bash
# Measures the speed of Headway beside other simulators, and writes results/bench and the tables of
# docs/performance.md. It wants an idle machine with two cores, valgrind, and Python with pip.
# Words are passed on: `--only kernel sweep` measures some parts and writes nothing, `--quick` a tenth of
# everything.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
python=$(command -v python3) || { echo "bench.sh needs Python 3.11 or newer" >&2; exit 1; }
command -v valgrind >/dev/null || { echo "bench.sh needs valgrind, for instructions" >&2; exit 1; }

cargo build --release --locked -p headway --no-default-features
cargo build --release --locked -p headway-benches
CARGO_TARGET_DIR="$target/peers" cargo build --release --locked \
  --manifest-path benches/peers/kernel/Cargo.toml
cp "$target/peers/release/headway-bench-peers" "$target/release/"

scripts/test_packages.sh simpy
PYTHONPATH="$PWD/target/simpy" "$python" benches/side_by_side.py "$target/release" "$@"
