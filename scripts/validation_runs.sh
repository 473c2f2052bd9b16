#!/usr/bin/env bash
# The live runs behind results/validation/live.csv: one to fit the simulator to, and 24 to predict. Each
# plays the task of scenarios/live/judged.toml on two CPU cores, the engine pinned to the first and the
# trainer to the second; a rehearsal judge takes its time. Nothing else may run on the machine meanwhile.
# HEADWAY names the binary (a release build with the feature torch), RUNS where the records go.
set -euo pipefail
cd "$(dirname "$0")/.."

headway=${HEADWAY:-target/release/headway}
runs=${RUNS:-out/validation}
steps=${STEPS:-60}
port=30100
export HEADWAY_JUDGE_KEY=rehearsal

# Median and 99th percentile of a vote, in seconds.
fast="0.05 0.2"
slow="0.2 0.6"

# Pins a thread of a process, once it is there.
pin() {
  local process=$1 name=$2 core=$3 task
  while kill -0 "$process" 2>/dev/null; do
    for task in /proc/"$process"/task/*; do
      if [ "$(cat "$task/comm" 2>/dev/null)" = "$name" ]; then
        taskset -pc "$core" "${task##*/}" >/dev/null
        return
      fi
    done
    sleep 0.1
  done
}

# One run: its name, η, sync mode, judge speed, seed, and train steps.
record() {
  local name=$1 eta=$2 mode=$3 speed=$4 seed=$5 steps=$6 judge process
  [ -e "$runs/$name/done" ] && return
  rm -rf "${runs:?}/$name"
  mkdir -p "$runs/$name"
  read -r median p99 <<<"$speed"
  python3 scripts/rehearsal_judge.py --port "$port" --median-sec "$median" --p99-sec "$p99" \
    --seed "$seed" --log "$runs/$name/votes.csv" &
  judge=$!
  "$headway" run --config scenarios/live/judged.toml --settings scenarios/live/judged.json \
    --task lookup --seed "$seed" --steps "$steps" --record "$runs/$name/run.db" --out "$runs/$name" \
    --set policy_serving.port=0 --set policy_serving.sync_mode="$mode" \
    --set max_head_off_policyness="$eta" 2>"$runs/$name/log" &
  process=$!
  pin "$process" engine-0 0
  pin "$process" trainer 1
  wait "$process" || { cat "$runs/$name/log" >&2; kill "$judge"; exit 1; }
  kill "$judge"
  wait "$judge" 2>/dev/null || true
  echo "$name: $(tail -1 "$runs/$name/steps.csv" | cut -d, -f1-4)" >&2
  touch "$runs/$name/done"
}

record fit 2 pause_drain "$fast" 1 200
seed=2
for mode in pause_drain pause_abort in_flight; do
  for eta in 0 1 4 8; do
    record "$mode-eta-$eta-fast" "$eta" "$mode" "$fast" "$seed" "$steps"
    record "$mode-eta-$eta-slow" "$eta" "$mode" "$slow" "$((seed + 1))" "$steps"
    seed=$((seed + 2))
  done
done
