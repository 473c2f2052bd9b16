#!/usr/bin/env bash
# Puts the official OpenAI client under target/openai, for the tests that talk to the gateway with it.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=runtime/tests/openai/requirements.txt
root=target/openai

if cmp --quiet "$wanted" "$root/installed.txt"; then
  exit 0
fi
python=$(command -v python3 || command -v python) ||
  { echo "openai_client.sh needs a Python 3.10 or newer with pip: install python3 and python3-pip" >&2; exit 1; }
rm -rf "$root"
"$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary=:all: \
  --target "$root" --requirement "$wanted"
cp "$wanted" "$root/installed.txt"
