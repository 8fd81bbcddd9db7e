#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Runs cargo and puts its results where meson expects them.
# Usage: cargo-for-meson.sh <build folder> <dev|release> <output>… -- cargo build …
set -eu

build=$1
profile=$2
shift 2

outputs=
while [ "$1" != -- ]; do
    outputs="$outputs $1"
    shift
done
shift

CARGO_TARGET_DIR="$build/target" "$(dirname "$0")/without-paths.sh" "$@" --profile "$profile"

case $profile in
dev) folder=$build/target/debug ;;
*) folder=$build/target/$profile ;;
esac
for output in $outputs; do
    cp "$folder/$(basename "$output")" "$build/$output"
done
