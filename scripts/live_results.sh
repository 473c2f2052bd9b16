#!/usr/bin/env bash
# The nine runs behind results/live: the live demonstration at three bounds on staleness, with three
# seeds each. Two cores take some minutes. HEADWAY names the binary, with the feature torch.
set -euo pipefail
cd "$(dirname "$0")/.."

headway=${HEADWAY:-target/release/headway}
out=${1:-results/live}
steps=${STEPS:-200}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT

mkdir -p "$out"
for seed in 1 2 3; do
  for eta in 0 2 8; do
    run="$runs/eta-$eta-seed-$seed"
    mkdir "$run"
    echo "eta $eta, seed $seed" >&2
    "$headway" run --config scenarios/live/config.toml --settings scenarios/live/settings.json \
      --task lookup --seed "$seed" --steps "$steps" --record "$run/run.db" --out "$run" \
      --set policy_serving.port=0 --set max_head_off_policyness="$eta"
    "$headway" replay "$run/run.db" >&2
    cp "$run/steps.csv" "$out/steps-eta-$eta-seed-$seed.csv"
    rm -r "$run"
  done
done
"$headway" plot "$out"
