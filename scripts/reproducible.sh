#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Builds a tarball of `make dist` in two folders, without a network and without downloaded crates, and compares the programs.
# Needs a kernel that lets users create namespaces.
# Usage: scripts/reproducible.sh <tarball>
set -eu

tarball=$(realpath "$1")
name=$(basename "$tarball" .tar.xz)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() {
    mkdir -p "$1" "$work/cargo-home"
    tar -xf "$tarball" -C "$1"
    (
        cd "$1/$name"
        CARGO_HOME=$work/cargo-home CARGO_TARGET_DIR=$1/target \
            unshare --map-root-user --net scripts/without-paths.sh cargo build --release --locked --offline
    )
}

build "$work/first"
build "$work/second/in a longer path"
for file in libgstfacetrack.so facetrack facetrack-worker; do
    cmp "$work/first/target/release/$file" "$work/second/in a longer path/target/release/$file"
    sha256sum "$work/first/target/release/$file" | sed "s|$work/first/target/release/||"
done
echo "Both builds are identical"
