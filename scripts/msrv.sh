#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Checks that the oldest supported Rust, `rust-version` in Cargo.toml, is enough: for what the dependencies state, and for the
# compiler of that version, if rustup can install it. (Clippy checks the use of the standard library.)
set -eu

cd "$(dirname "$0")/.."
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

cargo metadata --locked --format-version 1 | python3 -I -c '
import json, sys

def parts(version):
    return ([int(part) for part in version.split(".")] + [0, 0])[:3]

stated = [(package["rust_version"] or "1", package["name"]) for package in json.load(sys.stdin)["packages"]]
later = [f"{name} needs Rust {version}" for version, name in stated if parts(version) > parts(sys.argv[1])]
sys.exit("\n".join(later) or None)
' "$oldest"
echo "No dependency states that it needs a later Rust than $oldest"

if rustup toolchain install "$oldest" --profile minimal; then
    cargo "+$oldest" check --locked --workspace --target-dir "${CARGO_TARGET_DIR:-target}/oldest"
else
    echo "SKIPPED: a build with Rust $oldest, because rustup could not install it" >&2
fi
