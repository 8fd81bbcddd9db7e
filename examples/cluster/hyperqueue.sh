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
set -eu
shards=$1
shift

# With --pin, the command sees only the cores of the task, and runs one job on each.
exec facetrack run --shard "$shards" "$@"
