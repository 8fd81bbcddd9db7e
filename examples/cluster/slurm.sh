#!/bin/bash
# SPDX-License-Identifier: MPL-2.0
# A shard of `facetrack run` as a task of a Slurm array. Its arguments go to `facetrack run`:
#   sbatch --array=0-63%16 slurm.sh /data/clips --out /data/tracks
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# Two minutes before the time limit, so that records end at a frame.
#SBATCH --signal=B:TERM@120
set -u

# Requeued tasks that are interrupted again and again, for example by a full disk, end here.
restarts=5

facetrack run --jobs "${SLURM_CPUS_PER_TASK:-1}" "$@" &
run=$!
trap 'kill -TERM "$run"' TERM
wait "$run"
status=$?
# A trapped signal ends `wait`, and the run ends after it.
while kill -0 "$run" 2>/dev/null; do
    wait "$run"
    status=$?
done
# A requeued task gets the signal again.
trap '' TERM

if [ "$status" = 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "$restarts" ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
# Wrong usage, or an engine that cannot run here: the tasks that have not started would fail, too.
if [ "$status" = 2 ] || [ "$status" = 69 ]; then
    scancel --state=PENDING "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}"
fi
exit "$status"
