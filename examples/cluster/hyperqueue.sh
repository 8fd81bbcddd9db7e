#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# A shard of `facetrack run` as a task of HyperQueue. The first argument is the number of tasks, and
# all others go to `facetrack run`:
#   hq submit --array=0-63 hyperqueue.sh 64 /data/clips --out /data/tracks
# To try failed tasks again:
#   hq submit --array="$(hq job task-ids last --filter=failed)" hyperqueue.sh 64 /data/clips --out /data/tracks
#HQ --cpus=4
#HQ --pin=taskset
#HQ --time-limit=4h
set -u
shards=$1
shift

# With --pin, the command sees only the cores of the task, and runs one job on each.
facetrack run --shard "$shards" "$@" &
run=$!
trap 'kill -TERM "$run"' INT TERM
wait "$run"
status=$?
# A trapped signal ends `wait`, and the run ends after it.
while kill -0 "$run" 2>/dev/null; do
    wait "$run"
    status=$?
done

# Wrong usage, or an engine that cannot run here: all other tasks would fail, too.
if [ "$status" = 2 ] || [ "$status" = 69 ]; then
    hq job cancel "$HQ_JOB_ID"
fi
exit "$status"
