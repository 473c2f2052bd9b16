#!/usr/bin/env bash
# results/validation/live*: calibrates a scenario from the first of the runs of validation_runs.sh, and
# predicts the others. A few minutes; the same runs give the same bytes. HEADWAY names the binary.
set -euo pipefail
cd "$(dirname "$0")/.."

headway=${HEADWAY:-target/release/headway}
runs=${RUNS:-out/validation}
out=${1:-results/validation}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The driver of environments plays a fixed number of sessions at once.
"$headway" calibrate "$runs/fit/run.db" --clients users --name live --out "$work/live.toml" >"$work/fitted"

# What is known of the others: the slower judge of validation_runs.sh (median 0.2 s, p99 0.6 s). And of
# the driver of environments, that it asks again up to 1000 times: in the run that was fitted, once was
# always enough.
others=()
for run in "$runs"/*/run.db; do
  case $run in
  */fit/*) ;;
  *-slow/*) others+=("$run@world.judge.vote.median_sec=0.2@world.judge.vote.sigma=0.4723") ;;
  *) others+=("$run") ;;
  esac
done

# Exit code 1 says that something is beyond its tolerance: the table says what.
"$headway" validate --scenario "$work/live.toml" --baseline "$runs/fit/run.db" --out "$work/out" \
  --set world.clients.retries.max_retries=1000 "${others[@]}" >"$work/table" 2>"$work/log" || [ $? -eq 1 ]

mkdir -p "$out"
cp "$work/out/validation.csv" "$out/live.csv"
for picture in "$work"/out/validation*.svg; do
  name=$(basename "$picture")
  cp "$picture" "$out/live${name#validation}"
done
cat "$work/fitted" "$work/table" "$work/log"
