# Sourced by the scripts that make live runs to compare predictions with: each run plays the task of
# scenarios/live/judged.toml on two CPU cores, the engine pinned to the first and the trainer to the second,
# and a rehearsal judge takes its time. Nothing else may run on the machine meanwhile.
# HEADWAY names the binary (a release build with the feature torch), RUNS where the records go.

headway=${HEADWAY:-target/release/headway}
judge_port=30100
export HEADWAY_JUDGE_KEY=rehearsal

# Pins a thread of a process, once it is there.
pin() {
  local process=$1 name=$2 core=$3 task
  while kill -0 "$process" 2>/dev/null; do
    for task in /proc/"$process"/task/*; do
      if [ "$(cat "$task/comm" 2>/dev/null)" = "$name" ]; then
        taskset -pc "$core" "${task##*/}" >/dev/null
        return
      fi
    done
    sleep 0.1
  done
}

# One run, unless it is there: its name, its configuration, the judge's median and 99th percentile in seconds,
# seed, train steps, and what else `headway run` is to be told. `meanwhile`, if it is a function, is called with
# the run's folder while it goes on.
record() {
  local name=$1 config=$2 median=$3 p99=$4 seed=$5 steps=$6 judge process folder
  shift 6
  folder=$runs/$name
  [ -e "$folder/done" ] && return
  rm -rf "${folder:?}"
  mkdir -p "$folder"
  python3 scripts/rehearsal_judge.py --port "$judge_port" --median-sec "$median" --p99-sec "$p99" \
    --seed "$seed" --log "$folder/votes.csv" &
  judge=$!
  "$headway" run --config "$config" --settings scenarios/live/judged.json \
    --task lookup --seed "$seed" --steps "$steps" --record "$folder/run.db" --out "$folder" \
    "$@" 2>"$folder/log" &
  process=$!
  pin "$process" engine-0 0
  pin "$process" trainer 1
  if declare -F meanwhile >/dev/null; then
    meanwhile "$folder"
  fi
  wait "$process" || { cat "$folder/log" >&2; kill "$judge"; exit 1; }
  kill "$judge"
  wait "$judge" 2>/dev/null || true
  echo "$name: $(tail -1 "$folder/steps.csv" | cut -d, -f1-4)" >&2
  touch "$folder/done"
}
