#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Draws the pictures of the documentation. Usage: scripts/pictures.sh <portrait> <folder>
# `make test-view` draws view.jpg.
set -eu

portrait=$1
folder=$2
examples=$(dirname "$0")/../examples
mkdir -p "$folder"

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

clip=$work/clip.mkv
"$(dirname "$0")/portrait-clip.sh" "$portrait" "$clip"

# last <name>: keeps the last frame, which shows the portrait undistorted.
last() {
    cp "$work/49.jpg" "$folder/$1.jpg"
    echo "$folder/$1.jpg"
}

# picture <name> <engine> <facetrackoverlay's properties> <crop>
picture() {
    gst-launch-1.0 -q filesrc "location=$clip" ! decodebin ! videoconvert ! video/x-raw,format=RGB \
        ! facetrack "engine=$2" max-faces=1 ! facetrackoverlay $3 \
        ! videocrop $4 ! videoconvert ! video/x-raw,format=I420 ! jpegenc quality=85 ! multifilesink "location=$work/%d.jpg"
    last "$1"
}

picture overlay mediapipe 'layers=boxes+labels+mesh+contours+pose+blendshapes line-width=0.003 text-size=0.03' \
    'left=0'
for engine in mediapipe openseeface opencv-yunet opencv-haar; do
    picture "$engine" "$engine" 'layers=boxes+labels+points+contours+key-points+pose+gaze line-width=0.004 text-size=0.04' \
        'left=180 right=180 top=80 bottom=80'
done

gst-launch-1.0 -q filesrc "location=$clip" ! decodebin ! videoconvert ! video/x-raw,format=RGB \
    ! facetrack engine=opencv-yunet detect-max-width=0 detection-confidence=0.3 ! facetrackblur \
    ! videoscale ! video/x-raw,width=640,height=480 ! videoconvert ! video/x-raw,format=I420 ! jpegenc quality=85 \
    ! multifilesink "location=$work/%d.jpg"
last blurred

gst-launch-1.0 -q filesrc "location=$clip" ! decodebin ! videoconvert ! video/x-raw,format=RGB \
    ! facetrack ! trackjsonsink "location=$work/clip.json"
/usr/bin/python3 "$examples/plot_blendshapes.py" "$work/clip.json" "$folder/blendshapes.svg" \
    --channels mouthUpperUpLeft,mouthLowerDownRight,eyeSquintLeft,browDownLeft
echo "$folder/blendshapes.svg"
