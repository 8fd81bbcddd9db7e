#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Tests the plugin with its feature `analytics` on a release of Debian, in a folder: clippy, then every test in Rust, or the
# ones named. Without names it also builds the Debian package, which must have the feature.
# The system is made of the mirror that this machine's apt uses, under .cache/debian, and kept for the next time.
# Needs Debian and root or sudo.
# Usage: scripts/test-debian.sh <release> [arguments of cargo test]
set -eu

cd "$(dirname "$0")/.."
. scripts/debian-checkout.sh

release=$1
shift
root=$checkout/.cache/debian/$release

# The build writes to its folder, which is a copy of the last commit.
check_package() {
    as_root rm -rf "$root/source" "$root/target/deb"
    as_root mkdir "$root/source"
    git archive HEAD | as_root tar -x -C "$root/source"
    in_checkout make -C /source deb
    dpkg-deb --field "$root"/target/deb/gstreamer1.0-facetrack_*.deb Depends | grep libgstreamer-plugins-bad1.0-0 ||
        { echo "The package does not have the feature analytics" >&2; exit 1; }
}

prepare_checkout "$release"
in_checkout scripts/system-packages.sh libgstreamer-plugins-bad1.0-dev gir1.2-gst-plugins-bad-1.0
in_checkout make test-packages
in_checkout apt-get clean
feature=$(in_checkout scripts/analytics-feature.sh)
[ -n "$feature" ] || { echo "$release has no GStreamer with analytics" >&2; exit 1; }
in_checkout cargo clippy --locked --workspace --all-targets "$feature" -- -D warnings
in_checkout cargo test --locked --workspace "$feature" "$@"
[ $# -gt 0 ] || check_package
