#!/usr/bin/env bash
# Makes results/plan anew: verl's fully asynchronous recipe planned on 32, 64 and 128 GPUs, the last
# also with every split simulated. Takes some minutes; read the difference before you commit it.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
headway=${HEADWAY:-cargo run --quiet --release --locked --bin headway --}
mkdir -p results/plan

plan() { # NAME GPUS OPTIONS...
  local name=$1 gpus=$2
  shift 2
  # Unquoted: a command with its words.
  $headway plan scenarios/verl-fully-async.toml --gpus "$gpus" "$@" --out "$out/$name" \
    >"results/plan/$name.txt"
  cp "$out/$name/plan.csv" "results/plan/$name.csv"
  cp "$out/$name/marginal.csv" "results/plan/$name-marginal.csv"
  cp "$out/$name/front.svg" "results/plan/$name-front.svg"
  cp "$out/$name/idle.svg" "results/plan/$name-idle.svg"
}

plan verl-fully-async-32 32
plan verl-fully-async-64 64
plan verl-fully-async-128 128
plan verl-fully-async-128-exhaustive 128 --exhaustive
rm results/plan/*-exhaustive-*
