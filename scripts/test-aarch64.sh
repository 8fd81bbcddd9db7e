#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Builds the plugin and the command for aarch64 on Debian 13, in a folder, and runs them in an emulator: tests of engines, and
# pipelines whose records are compared with records of this machine. ONNX Runtime is fetched by the emulated command.
# The system is kept under .cache/aarch64 for the next time. Needs Debian and root or sudo.
# Usage: scripts/test-aarch64.sh <facetrack> <folder of the plugin> <filters of tests>, both built for this machine
set -eu

cd "$(dirname "$0")/.."
. scripts/debian-checkout.sh

cache=$checkout/.cache/aarch64
root=$cache/root

facetrack=$1
plugins=$2
shift 2
triple=aarch64-unknown-linux-gnu
library=libonnxruntime.so.1.28.0
runtime=$cache/files/runtime/$library
variables="CARGO_BUILD_TARGET=$triple CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 PKG_CONFIG_ALLOW_CROSS=1
    PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig
    FACETRACK_ONNXRUNTIME=$checkout_inside${runtime#"$checkout"} GST_PLUGIN_PATH=/plugins GST_REGISTRY_FORK=no"

# Compilers for this machine, libraries for aarch64, and an emulator.
packages='
    cargo-web rustc-web libstd-rust-web-dev:arm64 gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev:arm64 pkg-config git
    ca-certificates qemu-user libgstreamer1.0-dev:arm64 libgstreamer-plugins-base1.0-dev:arm64 gstreamer1.0-tools:arm64
    gstreamer1.0-plugins-base:arm64 gstreamer1.0-plugins-good:arm64 gstreamer1.0-libav:arm64'

install_packages() {
    in_checkout dpkg --add-architecture arm64
    in_checkout apt-get update
    in_checkout apt-get install --yes --no-install-recommends $packages </dev/null
    in_checkout apt-get clean
}

# The command for aarch64, emulated on this machine: pip, which it starts, is this machine's.
emulated_facetrack() {
    "$root/usr/bin/qemu-aarch64" -L "$root" "$root/target/$triple/debug/facetrack" "$@"
}

# Frames of the sample clip that are compared. Decoders send a few more after the end that `identity` asks for.
frames=10

pipeline() {
    echo "filesrc location=$("$facetrack" path single_face.mp4) ! decodebin ! videoconvert ! videoflip video-direction=auto
        ! identity eos-after=$((frames + 1)) ! facetrack engine=$1 ! trackjsonsink verbose=true overwrite=true location=$2"
}

compare() {
    engine=$1
    echo "Comparing records of $engine"
    GST_PLUGIN_PATH=$plugins gst-launch-1.0 -q $(pipeline "$engine" "$cache/$engine.json")
    in_checkout qemu-aarch64 /usr/bin/gst-launch-1.0 -q $(pipeline "$engine" "/target/$engine.json")
    python3 tests/compare_records.py "$cache/$engine.json" "$root/target/$engine.json" "$frames"
}

prepare_checkout trixie
[ -e "$root/usr/bin/qemu-aarch64" ] || install_packages
in_checkout cargo build --locked --package gst-plugin-facetrack --package facetrack-cli
as_root mkdir -p "$root/plugins"
as_root ln -sf "/target/$triple/debug/libgstfacetrack.so" "$root/plugins/libgstfacetrack.so"
[ -e "$runtime" ] || emulated_facetrack fetch "$library" --to "$cache/files"
in_checkout cargo test --locked --package facetrack --test engines -- "$@"
for engine in mediapipe opencv-yunet opencv-haar; do
    compare "$engine"
done
