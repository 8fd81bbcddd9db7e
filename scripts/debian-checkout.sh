# shellcheck shell=sh
# SPDX-License-Identifier: MPL-2.0
# For scripts: this checkout in a Debian system in a folder. The script sets `root` (the folder), and may set `variables`
# (NAME=value for the commands).

. scripts/debian-folder.sh

# In the system: the checkout, which can't be written to there, and cargo's folder.
checkout=$(pwd)
checkout_inside=/checkout
cargo_inside=/cargo

data_home=${XDG_DATA_HOME:-$HOME/.local/share}
cargo_home=${CARGO_HOME:-$HOME/.cargo}

# Creates the system of release $1 once, and fetches what cargo needs there.
prepare_checkout() {
    scripts/system-packages.sh debootstrap util-linux
    bootstrap "$1" "$root"
    cargo fetch --locked
}

# Runs a command in the checkout in the system, which has cargo's downloads and its registry settings
# from outside, without its programs. Folders that the tests read are where they are outside.
in_checkout() {
    # shellcheck disable=SC2046,SC2086
    inside "$root" "$checkout" "$checkout_inside" $(cargo_parts) $(read_folders) -- HOME=/tmp \
        CARGO_HOME="$cargo_inside" CARGO_TARGET_DIR=/target CARGO_NET_OFFLINE=true \
        CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 ${CI:+"CI=$CI"} \
        ${http_proxy:+"http_proxy=$http_proxy"} \
        ${FACETRACK_MODELS_DIR:+"FACETRACK_MODELS_DIR=$FACETRACK_MODELS_DIR"} \
        ${FACETRACK_REFERENCE_DIR:+"FACETRACK_REFERENCE_DIR=$FACETRACK_REFERENCE_DIR"} \
        ${FACETRACK_ONNXRUNTIME:+"FACETRACK_ONNXRUNTIME=$FACETRACK_ONNXRUNTIME"} \
        XDG_DATA_HOME="$data_home" ${variables:-} \
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
