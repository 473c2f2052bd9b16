#!/usr/bin/env bash
# Serving rates as aiconfigurator predicts them, as tables that a scenario takes by name.
#
#   scripts/aiconfigurator_rates.sh                                   all the shipped tables
#   scripts/aiconfigurator_rates.sh MODEL SYSTEM ENGINE TP [OPTIONS]  one, for your own model
#
# such as
#
#   scripts/aiconfigurator_rates.sh Qwen/Qwen3-32B h200_sxm vllm 4
#
# OPTIONS go to `aiconfigurator cli estimate` (a mixture of experts needs --moe-tp-size or
# --moe-ep-size). The tool goes into its own virtual environment and runs offline, on measured
# kernels; it needs Python 3.10 or newer. What it printed stays in target/aiconfigurator/; tables go
# to $RATES (default scenarios/data/rates), lengths are $ISL and $OSL tokens (default 2048, 1024).
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.12.0
target=${CARGO_TARGET_DIR:-target}
work=$target/aiconfigurator
tool=$work/venv/bin/aiconfigurator
isl=${ISL:-2048}
osl=${OSL:-1024}
rates=${RATES:-scenarios/data/rates}

# Its warnings belong beside the estimates that they are about.
export PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore

install() {
  if [ ! -x "$tool" ] || [ "$("$tool" version 2>/dev/null)" != "aiconfigurator $version" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet "aiconfigurator==$version"
  fi
  cargo build --quiet --locked --bin headway
}

estimate() { # MODE BATCH MODEL SYSTEM ENGINE TP OPTIONS
  local mode=$1 batch=$2 model=$3 system=$4 engine=$5 tp=$6
  "$tool" cli estimate --model-path "$model" --system "$system" --backend "$engine" \
    --estimate-mode "$mode" --batch-size "$batch" --isl "$isl" --osl "$osl" --tp-size "$tp" \
    --no-color "${@:7}" 2>&1
}

table() { # MODEL SYSTEM ENGINE TP OPTIONS
  local model=$1 system=$2 engine=$3 tp=$4
  local name
  name=$(basename "$model" | tr '[:upper:]' '[:lower:]')-${system%_sxm}-$engine-tp$tp
  local printed=$work/$name.txt
  : >"$printed"
  for batch in 1 2 4 8 16 32 64 128 256; do
    echo "$name: batch $batch" >&2
    local part
    part=$(estimate static "$batch" "$@") || { echo "$part" >&2; exit 1; }
    echo "$part" >>"$printed"
    if grep -q "OOM: " <<<"$part"; then
      # The prompts of the whole batch do not fit when they are read all at once; decoding may.
      part=$(estimate static_gen "$batch" "$@") || { echo "$part" >&2; exit 1; }
      echo "$part" >>"$printed"
      if grep -q "OOM: " <<<"$part"; then break; fi
    fi
  done
  "$target/debug/headway" import aiconfigurator "$printed" --out "$rates/$name.csv" \
    --source "aiconfigurator $version: aiconfigurator cli estimate --model-path $model \
--system $system --backend $engine --estimate-mode static --batch-size BATCH --isl $isl --osl $osl \
--tp-size $tp${5+ ${*:5}} (rows without a prefill rate: static_gen)"
}

install
if [ $# -gt 0 ]; then
  table "$@"
  exit
fi
for system in h100_sxm h200_sxm; do
  for engine in vllm sglang; do
    table Qwen/Qwen3-8B "$system" "$engine" 1
    table Qwen/Qwen3-32B "$system" "$engine" 4
    table Qwen/Qwen3-30B-A3B "$system" "$engine" 2 --moe-tp-size 2
  done
done
