#!/usr/bin/env bash
# Measures the gateway beside other gateways and the policy beside transformers and PyTorch, and writes
# results/bench/gateway.csv and policy.csv. It wants an idle machine, wrk, nginx, and Python with pip,
# which fetches the peers: 6 GB. Without an argument both are measured, else `gateway` or `policy`.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
python=$(command -v python3) || { echo "bench_live.sh needs Python 3.10 or newer" >&2; exit 1; }
for program in wrk nginx; do
  command -v "$program" >/dev/null || { echo "bench_live.sh needs $program" >&2; exit 1; }
done
mkdir -p results/bench

# A Python of its own with the packages of a list.
peers() {
  local wanted=benches/live/$1.txt root=$target/peers-$1
  if ! cmp --quiet "$wanted" "$root/installed.txt"; then
    rm -rf "$root"
    "$python" -m venv "$root"
    "$root/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
    cp "$wanted" "$root/installed.txt"
  fi
  echo "$root/bin/python"
}

if [ "${1:-gateway}" = gateway ]; then
  cargo build --release --locked -p headway
  "$(peers gateway)" benches/live/gateway.py "$target/release/headway" results/bench/gateway.csv
fi
if [ "${1:-policy}" = policy ]; then
  scripts/libtorch.sh
  cargo build --release --locked -p headway-runtime --features torch --example policy_speed
  "$(peers policy)" benches/live/policy.py "$target/release/examples/policy_speed" results/bench/policy.csv
fi
