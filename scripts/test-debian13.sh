#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Tests the plugin with its feature `analytics` on Debian 13, in a folder: clippy, then every test, or the ones named.
# The system is kept under .cache/debian13 for the next time. Needs Debian and root or sudo.
# Usage: scripts/test-debian13.sh [arguments of cargo test]
set -eu

cd "$(dirname "$0")/.."
checkout=$(pwd)
root=$checkout/.cache/debian13/root
release=trixie
. scripts/debian-folder.sh

prepare_folder
inside scripts/system-packages.sh libgstreamer-plugins-bad1.0-dev gir1.2-gst-plugins-bad-1.0
inside make test-packages
inside apt-get clean
inside cargo clippy --locked --workspace --all-targets --features gst-plugin-facetrack/analytics -- -D warnings
inside cargo test --locked --workspace --features gst-plugin-facetrack/analytics "$@"
