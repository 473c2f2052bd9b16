#!/usr/bin/env bash
# Runs a sweep as a real Slurm array on one node, this one, and compares it with the sweep in one
# process, byte for byte. Installs Debian's Slurm and munge where they are missing; needs root for
# that, and to start slurmd. Everything else is in a temporary folder, and every daemon is stopped.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || { echo "test_slurm.sh starts slurmd, which needs root" >&2; exit 1; }
if ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null || ! command -v munged >/dev/null; then
  command -v apt-get >/dev/null ||
    { echo "test_slurm.sh needs slurmctld, slurmd and munged: install Slurm and munge" >&2; exit 1; }
  apt-get update --quiet --quiet
  DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends slurm-wlm munge
fi
if [ -z "${HEADWAY:-}" ]; then
  cargo build --locked --no-default-features --bin headway --release
  HEADWAY=${CARGO_TARGET_DIR:-$PWD/target}/release/headway
fi
export HEADWAY

root=$(mktemp -d)
chmod 755 "$root"
daemons=()
# The newest first. slurmd does not wait for its steps, and there are none by then.
stop() {
  for ((place = ${#daemons[@]} - 1; place >= 0; place--)); do
    kill "${daemons[place]}" 2>/dev/null || true
    wait "${daemons[place]}" 2>/dev/null || true
  done
  rm -rf "$root"
}
trap stop EXIT
start() { # NAME COMMAND...
  local name=$1
  shift
  "$@" >"$root/$name.out" 2>&1 &
  daemons+=($!)
}
# Waits for a command to succeed: at most so many seconds.
await() { # SECONDS WHAT COMMAND...
  local left=$1 what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$left" -gt 0 ] || { echo "$what: not in time" >&2; tail -n 30 "$root"/*.out "$root"/*.log >&2 || true; exit 1; }
    left=$((left - 1))
    sleep 1
  done
}
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# munge: who is who. A key of its own, so that it shares nothing with one that runs already.
mkdir "$root/munge" "$root/state" "$root/spool" "$root/work"
(umask 077 && head -c 1024 /dev/urandom >"$root/munge/key")
chmod 711 "$root/munge"
start munged munged --foreground --force --key-file="$root/munge/key" --socket="$root/munge/socket" \
  --pid-file="$root/munge/pid" --log-file="$root/munge/munged.log" --seed-file="$root/munge/seed"
await 30 "munged" munge --socket="$root/munge/socket" --no-input

host=$(hostname -s)
export SLURM_CONF=$root/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=headway
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$root/munge/socket
CredType=cred/munge
StateSaveLocation=$root/state
SlurmdSpoolDir=$root/spool
SlurmctldPidFile=$root/slurmctld.pid
SlurmdPidFile=$root/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
ReturnToService=2
MailProg=/bin/true
JobCompType=jobcomp/filetxt
JobCompLoc=$root/jobs.txt
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
start slurmctld slurmctld -D -f "$SLURM_CONF"
await 60 "slurmctld" scontrol ping
start slurmd slurmd -D -f "$SLURM_CONF" -N "$host"
idle() { [ "$(sinfo --noheader --format=%T)" = idle ]; }
await 60 "an idle node" idle
echo "test_slurm: $(sinfo --version), $(sinfo --noheader --format='%N %T %c CPUs')"

repository=$PWD
cd "$root/work"
sweep=("$repository/scenarios/openclaw.toml" --set steps=60 --set warmup_steps=10
  --over max_head_off_policyness=0,2,4 --replications 3)
shards=4
# A job that is over is known for some minutes, and one that waits for what cannot come is not over.
over() { [ -z "$(squeue --noheader --states=PENDING,RUNNING,COMPLETING,SUSPENDED,CONFIGURING)" ]; }

jobs=$("$repository/scripts/slurm/submit.sh" "$shards" "$root/work/out" "${sweep[@]}")
echo "test_slurm: submitted the array and its merge as jobs $jobs"
await 300 "the array and its merge" over
squeue --noheader --states=all --array --format='%i %j %T' | sort
cat headway-sweep-*.log
for shard in $(seq "$shards"); do
  [ -s "out/shard-$shard-of-$shards/shard.runs" ] || { echo "shard $shard is missing" >&2; exit 1; }
done

"$HEADWAY" sweep "${sweep[@]}" --out whole >whole.txt 2>/dev/null
diff --recursive --brief --exclude='shard-*' whole out
# The job's log has the table, then what it wrote.
cat headway-merge-*.log
head -n "$(wc -l <whole.txt)" headway-merge-*.log | cmp - whole.txt
files=$(find whole -type f | wc -l)
[ "$files" -ge 10 ] || { echo "only $files files to compare" >&2; exit 1; }
echo "test_slurm: $files files of $shards shards, the bytes of one sweep"

# A shard that is lost is run again alone.
rm -r out/shard-3-of-4
"$HEADWAY" merge out --out again >/dev/null 2>refused && exit 1
cat refused
HEADWAY_SHARDS=$shards sbatch --array=3 "$repository/scripts/slurm/sweep.sbatch" "$root/work/out" "${sweep[@]}"
await 300 "the shard that was lost" over
"$HEADWAY" merge out --out again >/dev/null 2>&1
diff --recursive --brief whole again
echo "test_slurm: a lost shard was run again alone, and the bytes are the same"

# A task that is taken from its node in the middle goes on where it was.
long=("${sweep[@]:0:5}" --over max_head_off_policyness=0,2,4 --replications 60)
job=$(sbatch --parsable --array=1 "$repository/scripts/slurm/sweep.sbatch" "$root/work/long" "${long[@]}")
begun() { [ "$(cat "$root"/work/long/shard-1-of-1/.headway-*/shard.runs | wc -c)" -gt 20000 ]; }
await 300 "some runs" begun
scontrol requeue "${job}_1"
# Slurm lets a job that was taken wait for two minutes, and tells nobody before it is queued again.
queued() { squeue --noheader --states=PENDING --array --format=%i | grep --quiet "^${job}_1\$"; }
await 60 "the task that was taken, in the queue" queued
scontrol update "jobid=${job}_1" StartTime=now
await 600 "the task that was taken" over
cat "headway-sweep-${job}_1.log"
grep --quiet "^goes on: [1-9][0-9]* of 180 runs are there" "headway-sweep-${job}_1.log"
"$HEADWAY" sweep "${long[@]}" --out long-whole >/dev/null 2>&1
"$HEADWAY" merge long --out long-joined >/dev/null 2>&1
diff --recursive --brief long-whole long-joined
echo "test_slurm: a task that was queued again went on, and the bytes are the same"

# An array with gaps does not say how many shards there are.
sbatch --array=1,3,4 --output=gaps-%a.log "$repository/scripts/slurm/sweep.sbatch" "$root/work/gaps" "${sweep[@]}"
await 300 "the array with gaps" over
cat gaps-1.log
grep --quiet "it has gaps" gaps-1.log gaps-3.log gaps-4.log
[ ! -e gaps ] || { echo "an array with gaps has run something" >&2; exit 1; }
echo "test_slurm: passed"
