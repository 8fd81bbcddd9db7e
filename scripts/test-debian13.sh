#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Tests the plugin with its feature `analytics` on Debian 13, in a folder: clippy, then every test, or the ones named.
# The system is made of the mirror that this machine's apt uses, under .cache/debian13, and kept for the next time.
# Needs Debian and root or sudo.
# Usage: scripts/test-debian13.sh [arguments of cargo test]
set -eu

cd "$(dirname "$0")/.."
. scripts/debian-folder.sh

checkout=$(pwd)
root=$checkout/.cache/debian13/root

# In the system: the checkout, which can't be written to there, and cargo's folder.
checkout_inside=/checkout
cargo_inside=/cargo

# Runs a command in the checkout in the system, which has cargo's downloads and its registry settings
# from outside, without its programs. Folders that the tests read are where they are outside.
in_checkout() {
    # shellcheck disable=SC2046
    inside "$root" "$checkout" "$checkout_inside" $(cargo_parts) $(read_folders) -- HOME=/tmp \
        CARGO_HOME="$cargo_inside" CARGO_TARGET_DIR=/target CARGO_NET_OFFLINE=true \
        CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 ${CI:+"CI=$CI"} \
        ${http_proxy:+"http_proxy=$http_proxy"} \
        ${FACETRACK_MODELS_DIR:+"FACETRACK_MODELS_DIR=$FACETRACK_MODELS_DIR"} \
        ${FACETRACK_REFERENCE_DIR:+"FACETRACK_REFERENCE_DIR=$FACETRACK_REFERENCE_DIR"} \
        ${FACETRACK_ONNXRUNTIME:+"FACETRACK_ONNXRUNTIME=$FACETRACK_ONNXRUNTIME"} \
        XDG_DATA_HOME="$data_home" \
        sh -eu -c 'cd "$1"; shift; exec "$@"' inside "$checkout_inside" "$@"
}

# Parts of cargo's folder that are there, each outside and inside.
cargo_parts() {
    for part in registry git config.toml; do
        [ ! -e "$cargo_home/$part" ] || echo "$cargo_home/$part" "$cargo_inside/$part"
    done
}

# Folders of models, clips and ONNX Runtime that are there, each outside and inside.
read_folders() {
    for folder in "${FACETRACK_MODELS_DIR:-}" "${FACETRACK_REFERENCE_DIR:-}" "$data_home/facetrack" \
        "${FACETRACK_ONNXRUNTIME:+$(dirname "$FACETRACK_ONNXRUNTIME")}"; do
        [ ! -d "$folder" ] || echo "$folder" "$folder"
    done
}

scripts/system-packages.sh debootstrap util-linux
bootstrap trixie "$root"

data_home=${XDG_DATA_HOME:-$HOME/.local/share}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
cargo fetch --locked

in_checkout scripts/system-packages.sh libgstreamer-plugins-bad1.0-dev gir1.2-gst-plugins-bad-1.0
in_checkout make test-packages
in_checkout apt-get clean
in_checkout cargo clippy --locked --workspace --all-targets --features gst-plugin-facetrack/analytics -- -D warnings
in_checkout cargo test --locked --workspace --features gst-plugin-facetrack/analytics "$@"
