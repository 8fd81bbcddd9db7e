#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
#
# The engine `insightface` on an NVIDIA GPU, in a table: parity with the CPU, frames per second, memory, and the effect of
# each latency option. It needs no GStreamer: the driver, ONNX Runtime with CUDA, a model pack and raw frames are enough.
#
# usage: benches/cuda.sh PACK FRAMES FORMAT WIDTH HEIGHT ONNXRUNTIME [CUDA_LIB_PATH]
#
# PACK is a folder with a model pack. FRAMES is a file of raw frames with faces, of which the first 60 are used; FORMAT is
# `rgb` or `nv12`, and WIDTH and HEIGHT are their size. One of these commands makes such a file from a clip, on any machine:
#
#   ffmpeg -i clip.mp4 -frames:v 60 -vf scale=1920:1080 -f rawvideo -pix_fmt rgb24 frames.rgb
#   gst-launch-1.0 filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoscale \
#       ! video/x-raw,format=RGB,width=1920,height=1080 ! identity eos-after=61 ! filesink location=frames.rgb
#
# ONNXRUNTIME is the libonnxruntime.so of onnxruntime-gpu, and CUDA_LIB_PATH a folder with CUDA's libraries if they are not
# found by default, such as a Python environment.
#
# Where there is no cargo, set CUDA_BENCH to a program that was built elsewhere: the file that
# `cargo bench -p facetrack --bench cuda --no-run` names.
#
# It fails if there is no GPU, if an option fails, and if landmarks differ by more than 0.1 px or embeddings by a cosine
# below 0.9999. Options whose libraries are missing on the machine are reported as such.
set -eu

fail() {
	echo "$0: $1" >&2
	exit 1
}

[ $# -ge 6 ] || fail "usage: $0 PACK FRAMES FORMAT WIDTH HEIGHT ONNXRUNTIME [CUDA_LIB_PATH]"
[ -d "$1" ] || fail "no folder with a model pack: $1"
[ -f "$2" ] || fail "no frames: $2"
[ -f "$6" ] || fail "no ONNX Runtime: $6"
command -v nvidia-smi >/dev/null || fail "no NVIDIA GPU: nvidia-smi, which comes with the driver, is missing"
nvidia-smi -L || fail "no NVIDIA GPU: nvidia-smi finds none"

pack=$(realpath "$1")
frames=$(realpath "$2")
format=$3 width=$4 height=$5
runtime=$(realpath "$6")
shift 6
[ $# -eq 0 ] || set -- "$(realpath "$1")"
set -- cuda "$pack" "$frames" "$format" "$width" "$height" "$runtime" "$@"
if [ -n "${CUDA_BENCH:-}" ]; then
	exec "$CUDA_BENCH" "$@"
fi
cd "$(dirname "$0")/.."
exec cargo bench --locked -p facetrack --bench cuda -- "$@"
