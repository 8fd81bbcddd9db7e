#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Compares the public items of the library with the recorded ones; with UPDATE_API=1, records them.
# cargo-public-api is built once; it reads rustdoc's JSON, which only a nightly toolchain writes.
set -eu

cd "$(dirname "$0")/.."
recorded=crates/facetrack/public-api.txt
if ! rustup toolchain list 2>/dev/null | grep -q '^nightly'; then
    echo "SKIPPED: the public items of the library, because 'rustup toolchain install nightly' has not been run" >&2
    exit
fi
PATH=$(scripts/cargo-tool.sh cargo-public-api 0.52.0):$PATH
found=$(cargo public-api --package facetrack --features full -sss)
if [ -n "${UPDATE_API:-}" ]; then
    echo "$found" >"$recorded"
elif ! echo "$found" | diff -u "$recorded" -; then
    echo "The public items of the library differ from $recorded: run 'UPDATE_API=1 make api' if they should" >&2
    exit 1
fi
