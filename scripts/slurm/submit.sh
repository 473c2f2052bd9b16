#!/bin/sh
# Submits a sweep to Slurm: an array with a task for each shard, and a job that joins them once all
# are done.
#
#   scripts/slurm/submit.sh SHARDS OUT SCENARIO [OPTION...]
#
# What sbatch needs beside that (partition, account, CPUs of a task) is taken from its variables:
# SBATCH_PARTITION and so on. Prints the numbers of both jobs.
set -eu
[ $# -ge 3 ] || { echo "usage: submit.sh SHARDS OUT SCENARIO [OPTION...]" >&2; exit 2; }
here=$(dirname "$0")
shards=$1
out=$2
shift 2
sweep=$(sbatch --parsable --array="1-$shards" "$here/sweep.sbatch" "$out" "$@")
# With the name of a cluster behind it, where there are several.
sweep=${sweep%%;*}
# A shard that fails ends the wait.
merge=$(sbatch --parsable --dependency="afterok:$sweep" --kill-on-invalid-dep=yes "$here/merge.sbatch" "$out")
echo "$sweep ${merge%%;*}"
