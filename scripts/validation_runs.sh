#!/usr/bin/env bash
# The live runs behind results/validation/live.csv: one to fit the simulator to, and 24 to predict
# (scripts/live_record.sh says how they are made). Nothing else may run on the machine meanwhile. SEED is
# that of the first, and the others have those after it.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${RUNS:-out/validation}
steps=${STEPS:-60}
seed=${SEED:-201}
source scripts/live_record.sh

# Median and 99th percentile of a vote, in seconds.
fast="0.05 0.2"
slow="0.2 0.6"

# One run: its name, η, sync mode, judge speed, seed, and train steps.
play() {
  local name=$1 eta=$2 mode=$3 speed=$4 seed=$5 steps=$6 median p99
  read -r median p99 <<<"$speed"
  record "$name" scenarios/live/judged.toml "$median" "$p99" "$seed" "$steps" \
    --set policy_serving.port=0 --set policy_serving.sync_mode="$mode" --set max_head_off_policyness="$eta"
}

play fit 2 pause_drain "$fast" "$seed" 200
seed=$((seed + 1))
for mode in pause_drain pause_abort in_flight; do
  for eta in 0 1 4 8; do
    play "$mode-eta-$eta-fast" "$eta" "$mode" "$fast" "$seed" "$steps"
    play "$mode-eta-$eta-slow" "$eta" "$mode" "$slow" "$((seed + 1))" "$steps"
    seed=$((seed + 2))
  done
done
