#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Tracks frames of the sample clip on this processor, on an emulated one with AVX2 and on an emulated aarch64, and compares the
# records byte for byte.
# Usage: scripts/test-bits.sh <facetrack> <folder of cargo's targets>
set -eu

cd "$(dirname "$0")/.."

facetrack=$1
target=$2
triple=aarch64-unknown-linux-gnu
program=debug/examples/raw_frames
records=$target/bits
# An emulated frame takes some seconds.
frames=10

# Usage: track <record> <engine> <program, and the emulator before it>
track() {
    record=$1
    engine=$2
    shift 2
    "$@" "$engine" 640 360 30 <"$records/frames" >"$records/$record"
}

compare() {
    track here "$1" "$target/$program"
    grep -q '"confidence"' "$records/here"
    track avx2 "$1" qemu-x86_64 -cpu Haswell "$target/$program"
    track aarch64 "$1" qemu-aarch64 -L /usr/aarch64-linux-gnu "$target/$triple/$program"
    cmp "$records/here" "$records/avx2"
    cmp "$records/here" "$records/aarch64"
    echo "Records of $1 are identical"
}

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
cargo build --locked --package facetrack --example raw_frames
cargo build --locked --package facetrack --example raw_frames --target "$triple"
mkdir -p "$records"
ffmpeg -v error -y -i "$("$facetrack" path single_face.mp4)" -frames:v "$frames" -f rawvideo -pix_fmt rgb24 "$records/frames"
for engine in mediapipe opencv-yunet opencv-yunet-pyfeat opencv-haar openseeface; do
    compare "$engine"
done
# Its model has to be asked for.
[ ! -e "$("$facetrack" path sfm_shape_3448.bin)" ] || compare eos
