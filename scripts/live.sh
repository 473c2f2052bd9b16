#!/usr/bin/env bash
# The live demonstration: a policy with random weights learns a task with a tool, on two CPU cores,
# in a few minutes. What it leaves is under out/live.
set -euo pipefail
cd "$(dirname "$0")/.."

out=out/live
scripts/libtorch.sh
cargo build --release --features torch --locked
# A run goes on where its record ends: the demonstration begins anew.
rm -rf "$out"
mkdir -p "$out"
target=${CARGO_TARGET_DIR:-target}
"$target/release/headway" run --config scenarios/live/config.toml --settings scenarios/live/settings.json \
  --task lookup --seed 1 --steps "${STEPS:-250}" --record "$out/run.db" --out "$out" "$@"
echo "the record, the table of steps and the plots are in $out: run.db, steps.csv, learning.svg" >&2
