#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Builds the Debian packages, and those with their debug symbols, into the folder `deb` of the builds, with the time of the
# last commit, or of the release where there is no repository.
# Usage: scripts/deb.sh
set -eu

cd "$(dirname "$0")/.."

output=$(realpath -m "${CARGO_TARGET_DIR:-target}/deb")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
maintainer=$(sed -n 's/^Maintainer: //p' debian/control)
released=$(sed -n 's/^release_date = "\(.*\)"/\1/p' Cargo.toml)
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date --utc --date="$released" +%s)}

# In a version of Debian, `~` comes before a release, and `-` before the number of a packaging.
write_changelog() {
    cat <<END_OF_ENTRY
gst-plugin-facetrack ($(echo "$version" | tr - '~')) unstable; urgency=medium

  * The changes are in CHANGELOG.md.

 -- $maintainer  $(date --utc --rfc-email --date="@$time")
END_OF_ENTRY
}

clean() {
    [ ! -e debian/changelog ] || debian/rules clean
    rm -f debian/changelog
}

scripts/system-packages.sh desktop-file-utils
rm -rf "$output"
mkdir -p "$output"
trap clean EXIT
write_changelog >debian/changelog
OUTPUT=$output dpkg-buildpackage --build=binary --no-sign \
    --buildinfo-option="-u$output" --buildinfo-file="$output/gst-plugin-facetrack.buildinfo" \
    --changes-option="-u$output" --changes-file="$output/gst-plugin-facetrack.changes"
ls -l "$output"
