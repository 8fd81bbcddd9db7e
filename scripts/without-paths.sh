#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Runs cargo so that the results contain no folder of this machine: builds in two folders are identical.
# Usage: scripts/without-paths.sh cargo build …
set -eu

checkout=$(cd "$(dirname "$0")/.." && pwd -P)

# rustc takes the last prefix that matches, and the target folder may be in the checkout.
separator=$(printf '\037')
flags=$(printf '%s' "${RUSTFLAGS:-}" | tr -s ' ' '\037')
for mapping in \
    "$checkout=/usr/src/gst-plugin-facetrack" \
    "$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")=/usr/src/cargo" \
    "$(realpath -m "${CARGO_TARGET_DIR:-$checkout/target}")=/usr/src/target"; do
    flags=${flags:+$flags$separator}--remap-path-prefix=$mapping
done
# The results of incremental builds depend on the builds before.
export CARGO_ENCODED_RUSTFLAGS="$flags" CARGO_INCREMENTAL=0
exec "$@"
