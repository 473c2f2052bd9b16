#!/usr/bin/env bash
# One sweep, made by the dev and by the release binary, with one thread and with two, and once
# again: every file must be the same, byte for byte. Then the whole runs of all scenarios, as accepted.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
target=${CARGO_TARGET_DIR:-target}

# The one that the tests have built: another set of packages would build the libraries again.
cargo test --locked --workspace --features torch --no-run --quiet
cp "$target/debug/headway" "$out/dev"
# The simulator alone: it makes the same bytes with and without the live runtime.
cargo build --locked --no-default-features --bin headway --release
cp "$target/release/headway" "$out/release"

sweep() { # BINARY JOBS NAME
  "$out/$1" sweep scenarios/openclaw.toml --set steps=60 --set warmup_steps=10 \
    --over max_head_off_policyness=0,2,4 --replications 3 \
    --jobs "$2" --out "$out/$3" --format json >"$out/$3.stdout" 2>/dev/null
}

sweep dev 1 reference
sweep dev 2 dev-2
sweep release 1 release-1
sweep release 2 release-2
sweep release 2 release-2-again

for other in dev-2 release-1 release-2 release-2-again; do
  diff --recursive --brief "$out/reference" "$out/$other"
  cmp "$out/reference.stdout" "$out/$other.stdout"
done
files=$(find "$out/reference" -type f | wc -l)
[ "$files" -ge 10 ] || { echo "only $files files to compare" >&2; exit 1; }
echo "same bytes: $files files, dev and release, 1 and 2 threads, twice"

# The tests have compared the beginning of each in the dev profile with the same goldens.
for jobs in 1 2; do
  "$out/release" check --jobs "$jobs" >"$out/check-$jobs" || { cat "$out/check-$jobs"; exit 1; }
done
cmp "$out/check-1" "$out/check-2"
"$out/dev" check scenarios/openclaw.toml

# Random scenarios with every fault: safety, and that everything comes to its end.
"$out/release" torture --seeds 2000 --out "$out/torture"
