#!/usr/bin/env bash
# results/promote/: the way of a user from a live run to a tuned one. A run is recorded and a scenario calibrated
# from it; tuned; the tuned configuration promoted to a file and to a run that is going on; and what those runs
# did is held to the envelope. Then the same with a judge five times as slow, and a guard that may go back.
# Ten minutes on two idle cores (scripts/live_record.sh says how runs are made).
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${RUNS:-out/promote}
steps=${STEPS:-200}
source scripts/live_record.sh
out=${1:-results/promote}
port=30110
judged=scenarios/live/judged.toml
export HEADWAY_ADMIN_TOKEN=rehearsal

mkdir -p "$runs" "$out"
record fit "$judged" 0.05 0.2 1 "$steps" --set policy_serving.port=0

# The driver of environments plays a fixed number of sessions at once, and asks again up to 1000 times.
"$headway" calibrate "$runs/fit/run.db" --clients users --name live --out "$runs/live.toml" >"$runs/fitted"
"$headway" tune "$runs/live.toml" --maximize trained_samples_per_hour --subject-to 'staleness_head_p95<=3' \
  --space max_head_off_policyness=0..6 --space sync_mode=pause_drain,pause_abort,in_flight \
  --set world.clients.retries.max_retries=1000 --out "$runs/tune" >"$out/tune.txt"
tuned=$runs/tune/tuned.toml

# To a file, for the next run.
cp "$judged" "$runs/config.toml"
"$headway" promote "$tuned" --to "$runs/config.toml" --settings scenarios/live/judged.json >"$out/promote.txt"
record file "$runs/config.toml" 0.05 0.2 2 "$steps" --set policy_serving.port=0

# To a run that is going on, once it has made a few steps.
meanwhile() {
  until [ "$(curl -sf "http://127.0.0.1:$port/metrics" | awk '$1 == "headway_steps_total" { print $2 }')" -ge 20 ] \
    2>/dev/null; do
    sleep 1
  done
  "$headway" promote "$tuned" --live "http://127.0.0.1:$port" >"$out/live.txt"
}
record live "$judged" 0.05 0.2 3 "$steps" --set policy_serving.port="$port"
unset -f meanwhile

# The judge is five times as slow as it was, and the guard may go back.
sed 's/^on_deviation = .*/on_deviation = "rollback"/' "$runs/config.toml" >"$runs/rollback.toml"
record slow-judge "$runs/rollback.toml" 0.25 1.0 4 "$steps" --set policy_serving.port=0

# What each run did, beside what it was held to. Exit code 1: it left the envelope.
rm -f "$out/promoted.csv"
for run in file live slow-judge; do
  "$headway" guard "$tuned" "$runs/$run/run.db" --format csv >"$runs/$run/guard.csv" || [ $? -eq 1 ]
  awk -v run="$run" 'NR > 1 { print run "," $0 } NR == 1 { print "run," $0 > "/dev/stderr" }' \
    "$runs/$run/guard.csv" 2>"$runs/header" >>"$out/promoted.csv"
done
cat "$runs/header" "$out/promoted.csv" >"$runs/table" && mv "$runs/table" "$out/promoted.csv"
# The guard's own words, without the time of day.
grep envelope "$runs/slow-judge/log" | sed 's/^[^ ]* *//' >"$out/rollback.txt"
cp "$tuned" "$out/tuned.toml"
