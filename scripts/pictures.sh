#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Draws the pictures of the README. Usage: scripts/pictures.sh <sample clip> <folder>
set -eu

clip=$1
folder=$2
examples=$(dirname "$0")/../examples
mkdir -p "$folder"

frames=$(mktemp -d)
trap 'rm -r "$frames"' EXIT

# picture <name> <engine> <facetrackoverlay's properties> <crop>: a frame in which the eyes are open and the mouth shows its teeth.
# The clip is small: enlarged before it is drawn into, it leaves room for fine lines and letters.
picture() {
    gst-launch-1.0 -q filesrc "location=$clip" ! decodebin ! videoscale ! video/x-raw,width=1280,height=720 \
        ! facetrack "engine=$2" max-faces=1 ! facetrackoverlay $3 \
        ! videocrop $4 ! videoconvert ! jpegenc quality=85 ! multifilesink "location=$frames/%d.jpg"
    cp "$frames/44.jpg" "$folder/$1.jpg"
    echo "$folder/$1.jpg"
}

picture overlay mediapipe 'layers=boxes+labels+mesh+contours+pose+blendshapes line-width=0.003 text-size=0.03' \
    'left=300 right=180 top=40 bottom=80'
for engine in mediapipe openseeface opencv-yunet opencv-haar; do
    picture "$engine" "$engine" 'layers=boxes+labels+points+contours+key-points+pose+gaze line-width=0.004 text-size=0.04' \
        'left=320 right=400 top=40 bottom=120'
done

gst-launch-1.0 -q filesrc "location=$clip" ! decodebin ! facetrack ! trackjsonsink "location=$frames/clip.json"
/usr/bin/python3 "$examples/plot_blendshapes.py" "$frames/clip.json" "$folder/blendshapes.svg" \
    --channels browInnerUp,eyeBlinkLeft,mouthPucker,mouthSmileLeft
echo "$folder/blendshapes.svg"
