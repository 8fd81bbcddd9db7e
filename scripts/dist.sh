#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Writes the files of a release: a tarball of the last commit with the sources of all crates, which builds without a network,
# a bill of materials (CycloneDX) for the plugin and for the command, and the SHA-256 of these files.
# Usage: scripts/dist.sh <folder>
set -eu

cd "$(dirname "$0")/.."
mkdir -p "$1"
folder=$(cd "$1" && pwd -P)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
name=gst-plugin-facetrack-$version
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

PATH=$(scripts/cargo-tool.sh cargo-cyclonedx 0.5.9):$PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive --prefix="$name/" HEAD | tar -x -C "$work"
cd "$work/$name"

# The configuration that `cargo vendor` prints names the registry of this machine's configuration.
cargo vendor --quiet --locked --versioned-dirs --respect-source-config >/dev/null
mkdir .cargo
cat >.cargo/config.toml <<'END'
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
END

tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u+rw,go=rX --create "$name" | xz --threads=1 >"$folder/$name.tar.xz"

cargo cyclonedx --quiet --format json --spec-version 1.5
# The names of the packages of this workspace contain the folder.
sed "s|$work||g" gst-plugin-facetrack.cdx.json >"$folder/$name.cdx.json"
sed "s|$work||g" crates/facetrack-cli/facetrack-cli.cdx.json >"$folder/facetrack-cli-$version.cdx.json"

cd "$folder"
sha256sum "$name.tar.xz" "$name.cdx.json" "facetrack-cli-$version.cdx.json" >"$name.sha256"
ls -l "$name"* "facetrack-cli-$version.cdx.json"
