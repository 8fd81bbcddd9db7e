#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Installs what is missing of the Debian packages that build, run and test the plugin, and says which.
# Usage: scripts/system-packages.sh [further packages]
set -eu

cd "$(dirname "$0")/.."
. scripts/as-root.sh

packages='
    gcc libc6-dev pkg-config make git ca-certificates curl python3 python3-pip python3-venv
    libgstreamer1.0-dev libgstreamer-plugins-base1.0-dev
    gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
    gstreamer1.0-plugins-ugly gstreamer1.0-libav
    python3-gi python3-gst-1.0 python3-numpy gir1.2-gstreamer-1.0 gir1.2-gst-plugins-base-1.0'

oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# Succeeds when version $1 is $2 or later.
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

cargo_version() {
    cargo --version 2>/dev/null | cut -d ' ' -f 2
}

# Debian keeps a recent Rust for building browsers; its programs are plain cargo and rustc.
recent() {
    echo "$1 (>= $oldest) | $2"
}

toolchain() {
    if at_least "$(cargo_version || true)" "$oldest"; then
        cargo fmt --version >/dev/null 2>&1 || recent rustfmt rustfmt-web
        cargo clippy --version >/dev/null 2>&1 || recent rust-clippy rust-web-clippy
    elif command -v rustup >/dev/null; then
        echo "Rust $oldest or later is needed: run 'rustup update stable'" >&2
        exit 1
    else
        recent cargo cargo-web
        recent rustc rustc-web
        recent rustfmt rustfmt-web
        recent rust-clippy rust-web-clippy
    fi
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "Not a Debian system: packages are not checked. Needed: Rust $oldest or later, pkg-config, pip, curl," >&2
    echo "GStreamer 1.22 or later with headers, tools, and the base, good, bad, ugly and libav plugins." >&2
    exit 0
fi

# As a dependency of Debian, a package and its alternatives on each line.
missing=$(
    toolchain
    for package in $packages "$@"; do
        installed "$package" || echo "$package"
    done
)
missing=$(echo "$missing" | paste --serial --delimiters=, -)

if [ -z "$missing" ]; then
    echo "System packages: all there"
    exit 0
fi
echo "System packages missing: $missing"
as_root apt-get update
as_root env DEBIAN_FRONTEND=noninteractive apt-get satisfy --yes --no-install-recommends "$missing" </dev/null
