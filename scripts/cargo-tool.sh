#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Prints the folder of a program for cargo, which is built once if it is not on the PATH.
# Usage: scripts/cargo-tool.sh <crate> <version> [program, if it is not named after the crate]
set -eu

program=${3:-$1}
found=$(command -v "$program" || true)
if [ -n "$found" ]; then
    dirname "$found"
    exit
fi
tools=$(cd "$(dirname "$0")/.." && pwd)/.cache/cargo-tools
# It runs for seconds, so it is built without optimisations, which takes half as long.
[ -x "$tools/bin/$program" ] || CARGO_PROFILE_DEV_DEBUG=false cargo install --debug --locked --root "$tools" --version "$2" "$1" >&2
echo "$tools/bin"
