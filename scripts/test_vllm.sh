#!/usr/bin/env bash
# Runs the whole loop with vLLM itself: tests/vllm/loop.py says what is looked at. HEADWAY_VLLM names
# another place of what scripts/vllm_cpu.sh installs, HEADWAY a binary with the feature torch that is there already.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${HEADWAY_VLLM:-target/vllm}/bin/python
if [ -z "${HEADWAY:-}" ]; then
  cargo build --locked --features torch
  HEADWAY=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/headway
fi
"$python" tests/vllm/loop.py "$HEADWAY"
