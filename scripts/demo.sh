#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Tracks the sample clip and shows what came out. Usage: scripts/demo.sh <facetrack> <output.json>
set -eu

facetrack=$1
track=$2
clip=$("$facetrack" path single_face.mp4)
eval "$("$facetrack" env)"

upright='videoconvert ! videoflip video-direction=auto'
echo "+ gst-launch-1.0 filesrc location=$clip ! decodebin ! $upright ! facetrack ! trackjsonsink location=$track verbose=true overwrite=true"
gst-launch-1.0 filesrc "location=$clip" ! decodebin ! $upright ! facetrack ! trackjsonsink "location=$track" verbose=true overwrite=true

echo
"$facetrack" view "$track" --video "$clip"
