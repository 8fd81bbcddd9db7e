#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Tests the plugin with its feature `analytics` on Debian 13, in a folder: clippy, then every test in Rust, or the ones named.
# The system is made of the mirror that this machine's apt uses, under .cache/debian13, and kept for the next time.
# Needs Debian and root or sudo.
# Usage: scripts/test-debian13.sh [arguments of cargo test]
set -eu

cd "$(dirname "$0")/.."
. scripts/debian-checkout.sh

root=$checkout/.cache/debian13/root
prepare_checkout
in_checkout scripts/system-packages.sh libgstreamer-plugins-bad1.0-dev gir1.2-gst-plugins-bad-1.0
in_checkout make test-packages
in_checkout apt-get clean
in_checkout cargo clippy --locked --workspace --all-targets --features gst-plugin-facetrack/analytics -- -D warnings
in_checkout cargo test --locked --workspace --features gst-plugin-facetrack/analytics "$@"
