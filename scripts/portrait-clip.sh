#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Makes the clip of the documentation's pictures from a portrait. Usage: scripts/portrait-clip.sh <portrait> <clip.mkv>
# The portrait, of the astronaut Eileen Collins, is by NASA and in the public domain: `facetrack path astronaut.png`.
set -eu

# For two seconds the camera moves, the mouth opens, and the eyes half close for a moment. The portrait is stretched
# vertically around the middle of the mouth, and compressed around each eye. A lossless codec makes the clip reproducible.
mouth='exp(-pow((X-160)/16,2)-pow((Y-146)/11,2))'
eyes='(exp(-pow((X-139)/11,2)-pow((Y-101)/7,2))+exp(-pow((X-182)/11,2)-pow((Y-101)/7,2)))'
opens='0.5*pow(sin(PI*T/2),2)'
closes='0.9*exp(-pow((T-0.4)/0.1,2))'
row="Y-(Y-146)*$opens*$mouth+(Y-101)*$closes*$eyes"
ffmpeg -hide_banner -loglevel error -loop 1 -framerate 25 -i "$1" -frames:v 50 -c:v ffv1 -vf "
    crop=320:240:65:0, format=gbrp, geq=r='r(X,$row)':g='g(X,$row)':b='b(X,$row)',
    scale=832:624:flags=lanczos, crop=800:600:'16+16*sin(PI*t)':'12-12*cos(PI*t)', format=yuv444p" "$2"
