#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
#
# The engine `insightface` on an NVIDIA GPU: parity with the processor, frames per second at 1080p, memory, and what each
# latency option does, in a table.
#
# usage: benches/cuda.sh PACK CLIP ONNXRUNTIME [CUDA_LIB_PATH]
#
# PACK is a folder with a model pack, CLIP a video with faces, ONNXRUNTIME the libonnxruntime.so of onnxruntime-gpu, and
# CUDA_LIB_PATH a folder with CUDA's libraries where they are not found by themselves, such as a Python environment.
#
# It fails where there is no GPU, where an option fails, and where landmarks differ by more than 0.1 px or embeddings by
# a cosine below 0.9999. An option that the machine has no libraries for is told as such.
set -eu

fail() {
	echo "$0: $1" >&2
	exit 1
}

[ $# -ge 3 ] || fail "usage: $0 PACK CLIP ONNXRUNTIME [CUDA_LIB_PATH]"
[ -d "$1" ] || fail "no folder with a model pack: $1"
[ -f "$2" ] || fail "no clip: $2"
[ -f "$3" ] || fail "no ONNX Runtime: $3"
command -v nvidia-smi >/dev/null || fail "there is no NVIDIA GPU here: nvidia-smi is missing, which comes with the driver"
nvidia-smi -L || fail "there is no NVIDIA GPU here: nvidia-smi finds none"

pack=$(realpath "$1")
clip=$(realpath "$2")
runtime=$(realpath "$3")
[ $# -lt 4 ] || set -- "$1" "$2" "$3" "$(realpath "$4")"
shift 3
cd "$(dirname "$0")/.."
exec cargo bench --locked --bench cuda -- cuda "$pack" "$clip" "$runtime" "$@"
