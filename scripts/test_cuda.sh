#!/bin/sh
# Runs the tests of model, engine and trainer on a GPU: the one that HEADWAY_TEST_DEVICE names, else
# cuda:0. Says so, loudly, where there is none. Gives cargo's exit code, or 0 where it skipped.
set -eu
cd "$(dirname "$0")/.."

device="${HEADWAY_TEST_DEVICE:-cuda:0}"
skip() {
    echo "test-cuda: SKIPPED, nothing was tested on a GPU: $1" >&2
    exit 0
}

command -v nvidia-smi >/dev/null 2>&1 || skip "there is no nvidia-smi, so no NVIDIA driver"
nvidia-smi -L 2>/dev/null | grep -q GPU || skip "nvidia-smi lists no GPU"
lib="${LIBTORCH:-target/libtorch}/lib"
if [ -z "${LIBTORCH_USE_PYTORCH:-}" ] && [ ! -e "$lib/libtorch_cuda.so" ]; then
    skip "libtorch in $lib is the one for CPUs; install PyTorch 2.11.0 with CUDA, then scripts/libtorch.sh"
fi

nvidia-smi -L >&2
HEADWAY_TEST_DEVICE="$device" cargo test -p headway-runtime --features torch --locked \
    --lib -- model:: engine:: trainer::
HEADWAY_TEST_DEVICE="$device" cargo test -p headway-runtime --features torch --locked \
    --test all -- learning::
