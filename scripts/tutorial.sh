#!/usr/bin/env bash
# The way of a newcomer, docs/tutorial.md, from top to bottom: runs each of its `sh` examples as it stands, in a fresh
# out/tutorial. HEADWAY names the binary (a build with the feature torch); STEPS makes the live runs shorter, FROM is the clone.
set -euo pipefail
cd "${FROM:-$(dirname "$0")/..}"

page=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/docs/tutorial.md
binary=${HEADWAY:-target/release/headway}
headway() { "$binary" "$@"; }

rm -rf out/tutorial
commands=$(awk '/^```sh$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$page")
# A shorter one is a rehearsal, which takes whatever port is free.
[ -z "${STEPS:-}" ] || commands=${commands//--steps 100/--set policy_serving.port=0 --steps $STEPS}
set -x
eval "$commands"
