#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Draws the pictures of the documentation. Usage: scripts/pictures.sh <portrait> <folder>
# The portrait, of the astronaut Eileen Collins, is by NASA and in the public domain: `facetrack path astronaut.png`.
set -eu

portrait=$1
folder=$2
examples=$(dirname "$0")/../examples
mkdir -p "$folder"

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# For two seconds the camera moves, the mouth opens, and the eyes half close for a moment. The portrait is stretched
# vertically around the middle of the mouth, and compressed around each eye. A lossless codec makes the clip reproducible.
mouth='exp(-pow((X-160)/16,2)-pow((Y-146)/11,2))'
eyes='(exp(-pow((X-139)/11,2)-pow((Y-101)/7,2))+exp(-pow((X-182)/11,2)-pow((Y-101)/7,2)))'
opens='0.5*pow(sin(PI*T/2),2)'
closes='0.9*exp(-pow((T-0.4)/0.1,2))'
row="Y-(Y-146)*$opens*$mouth+(Y-101)*$closes*$eyes"
clip=$work/clip.mkv
ffmpeg -hide_banner -loglevel error -loop 1 -framerate 25 -i "$portrait" -frames:v 50 -c:v ffv1 -vf "
    crop=320:240:65:0, format=gbrp, geq=r='r(X,$row)':g='g(X,$row)':b='b(X,$row)',
    scale=832:624:flags=lanczos, crop=800:600:'16+16*sin(PI*t)':'12-12*cos(PI*t)', format=yuv444p" "$clip"

# picture <name> <engine> <facetrackoverlay's properties> <crop>: the last frame, which shows the portrait undistorted.
picture() {
    gst-launch-1.0 -q filesrc "location=$clip" ! decodebin ! videoconvert ! video/x-raw,format=RGB \
        ! facetrack "engine=$2" max-faces=1 ! facetrackoverlay $3 \
        ! videocrop $4 ! videoconvert ! video/x-raw,format=I420 ! jpegenc quality=85 ! multifilesink "location=$work/%d.jpg"
    cp "$work/49.jpg" "$folder/$1.jpg"
    echo "$folder/$1.jpg"
}

picture overlay mediapipe 'layers=boxes+labels+mesh+contours+pose+blendshapes line-width=0.003 text-size=0.03' \
    'left=0'
for engine in mediapipe openseeface opencv-yunet opencv-haar; do
    picture "$engine" "$engine" 'layers=boxes+labels+points+contours+key-points+pose+gaze line-width=0.004 text-size=0.04' \
        'left=180 right=180 top=80 bottom=80'
done

gst-launch-1.0 -q filesrc "location=$clip" ! decodebin ! videoconvert ! video/x-raw,format=RGB \
    ! facetrack ! trackjsonsink "location=$work/clip.json"
/usr/bin/python3 "$examples/plot_blendshapes.py" "$work/clip.json" "$folder/blendshapes.svg" \
    --channels mouthUpperUpLeft,mouthLowerDownRight,eyeSquintLeft,browDownLeft
echo "$folder/blendshapes.svg"
