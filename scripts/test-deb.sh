#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Tests the Debian packages: their files and lintian, then in minimal systems of Debian 12 and 13, in folders, from
# `apt install` to the record of the sample clip and to the clip in the window of the preview, and what `apt purge` leaves.
# The measured commands run without a network, so their time contains no download. Clean systems and downloaded packages are kept under .cache/deb for the next time.
# Needs Debian 12 and root or sudo.
# Usage: scripts/test-deb.sh [bookworm] [trixie]
set -eu

cd "$(dirname "$0")/.."
. scripts/debian-folder.sh

# Seconds from the packages to the record, and to the clip in the window, without downloads, and bytes of the plugin.
MAX_SECONDS=60
MAX_PLUGIN=8000000
# Frames of the sample clip, each with one face.
FRAMES=72

name=gstreamer1.0-facetrack
preview=facetrack-preview
# The screen of the preview, which Xvfb keeps in a file.
screen=1280x800x24
# Home of the user in the systems.
home=/home/user
output=$(realpath -m "${CARGO_TARGET_DIR:-target}/deb")
cache=$(pwd)/.cache/deb

fail() {
    echo "$*" >&2
    exit 1
}

in_system() {
    inside "$system" "$output" /tmp/deb ${FACETRACK_MODELS_DIR:+"$FACETRACK_MODELS_DIR" /tmp/models} -- HOME="$home" DEBIAN_FRONTEND=noninteractive \
        ${http_proxy:+"http_proxy=$http_proxy"} ${PIP_INDEX_URL:+"PIP_INDEX_URL=$PIP_INDEX_URL"} "$@"
}

offline() {
    in_system unshare --net env "$@"
}

# A minimal system of release $1, with the packages that `apt install` will need, and the settings of this machine that
# downloads need.
prepare() {
    system=$cache/$1
    bootstrap "$1" "$system"
    for settings in /usr/local/share/ca-certificates /etc/pip.conf; do
        [ ! -e "$settings" ] || as_root cp -r --parents "$settings" "$system"
    done
    in_system apt-get update
    in_system apt-get install --yes --download-only "/tmp/deb/$file" "/tmp/deb/$preview_file" xvfb
}

# Makes the system under test a copy of the clean one of release $1.
renew() {
    system=$cache/system
    as_root rm -rf "$system"
    as_root cp -a "$cache/$1" "$system"
    as_root mkdir "$system$home"
}

# Lists the files of the system, except downloads and the home of its user.
list_files() {
    as_root find "$system" -xdev \( -path "$system$home" -o -path "$system/var/cache/apt" \) -prune -o -printf '%P\n' |
        sort
}

field() {
    dpkg-deb --field "$output/$file" "$1"
}

# Runs a command and adds its time to `milliseconds`.
timed() {
    start=$(date +%s%N)
    "$@"
    taken=$((($(date +%s%N) - start) / 1000000))
    milliseconds=$((milliseconds + taken))
    echo "+ $taken ms: $*"
}

# Fetches the files from the network, and puts them where a fetch without a network can take them.
fetch_ahead() {
    in_system facetrack fetch
    # The servers of some files cannot be reached from every network.
    [ -z "${FACETRACK_MODELS_DIR:-}" ] || in_system FACETRACK_MODELS_DIR=/tmp/models facetrack fetch
    in_system mv $home/.local/share/facetrack $home/fetched
    in_system find $home/fetched -mindepth 2 -type f -exec mv --target-directory=$home/fetched '{}' +
}

# Fails unless a record of the clip is complete.
check_record() {
    as_root python3 - "$system$1" "$FRAMES" <<'END_OF_PROGRAM'
import json, sys
record = json.load(open(sys.argv[1]))
faces = [len(frame["tracked_objects"]) for frame in record["frames"]]
assert record["metadata"]["complete"] is True, record["metadata"]
assert faces == [1] * int(sys.argv[2]), faces
assert all(frame["tracked_objects"][0]["blendshapes"] for frame in record["frames"])
END_OF_PROGRAM
}

# Checks the source package of the last commit. lintian reads debian/copyright only there.
check_source() {
    work=$(mktemp -d)
    tree=$work/gst-plugin-facetrack
    git archive --prefix="$(basename "$tree")/" HEAD | tar -x -C "$work"
    dpkg-deb --fsys-tarfile "$output/$file" | tar -xO "./usr/share/doc/$name/changelog.gz" | gunzip >"$tree/debian/changelog"
    (cd "$work" && dpkg-source --build "$tree")
    lintian --fail-on error,warning "$work"/*.dsc
    rm -r "$work"
}

check_package() {
    lintian --fail-on error,warning "$output/gst-plugin-facetrack.changes"
    for package in "$file" "$preview_file"; do dpkg-deb --contents "$output/$package"; done | awk '!/^d/ { print $6 }' | sed "s|$(gcc -print-multiarch)|<architecture>|" | LC_ALL=C sort |
        diff scripts/deb-contents.txt - || fail "The packages do not contain the files in scripts/deb-contents.txt"
    for package in "$name" "$preview"; do
        [ -e "$(echo "$output/$package-dbgsym_"*.deb)" ] || fail "There is no package with debug symbols of $package"
    done
    dpkg-deb --fsys-tarfile "$output/$file" | tar -xO "./usr/share/doc/$name/third-party-crates.txt.gz" |
        gunzip | grep --quiet 'Bitstream Vera License' || fail "The licence of the font Hack is missing"
    size=$(dpkg-deb --fsys-tarfile "$output/$file" | tar --list --verbose | awk '/libgstfacetrack.so$/ { print $3 }')
    echo "The plugin has $size bytes"
    [ "$size" -le "$MAX_PLUGIN" ] || fail "More than $MAX_PLUGIN"
}

# From the bare system to a record: three commands.
install_and_track() {
    milliseconds=0
    timed offline sh -c "apt install --yes /tmp/deb/$file >$home/apt.log || { cat $home/apt.log; exit 1; }"
    grep "run 'facetrack fetch'" "$system$home/apt.log" || fail "The package does not say what to do next"
    fetch_ahead
    timed offline FACETRACK_MODELS_DIR=$home/fetched facetrack fetch
    timed offline facetrack run $home/.local/share/facetrack/samples/single_face.mp4 --out $home/tracks
    check_record "$home/tracks/single_face.json"
    [ "$milliseconds" -le $((MAX_SECONDS * 1000)) ] || fail "More than $MAX_SECONDS s"
}

# The other programs of the package.
use() {
    offline gst-launch-1.0 -q filesrc location=$home/fetched/single_face.mp4 ! decodebin ! videoconvert ! \
        facetrack ! trackjsonsink location=$home/clip.json
    check_record "$home/clip.json"
    offline facetrack doctor
    for page in facetrack facetrack-run facetrack-worker; do
        [ -e "$system/usr/share/man/man1/$page.1.gz" ] || fail "$page has no man page"
    done
}

# From the bare system to the sample clip with its face in the window: three commands.
install_and_show() {
    milliseconds=0
    files="/tmp/deb/$file /tmp/deb/$preview_file"
    timed offline sh -c "apt install --yes $files >$home/apt.log || { cat $home/apt.log; exit 1; }"
    offline apt-get install --yes xvfb >"$cache/xvfb.log"
    timed offline FACETRACK_MODELS_DIR=$home/fetched facetrack fetch
    timed show
    [ "$milliseconds" -le $((MAX_SECONDS * 1000)) ] || fail "More than $MAX_SECONDS s"
    [ -e "$system/usr/share/man/man1/$preview.1.gz" ] || fail "$preview has no man page"
}

# Starts the preview, which plays the sample clip, until a screenshot shows it with the drawing of its face. The processes
# in the system end with its shell.
show() {
    as_root mkdir "$system$home/screen"
    offline DISPLAY=:9 sh -c "
        Xvfb :9 -screen 0 $screen -fbdir $home/screen &
        until [ -e /tmp/.X11-unix/X9 ]; do sleep 0.1; done
        $preview &
        until [ -e $home/seen ]; do sleep 0.1; done" >"$cache/preview.log" 2>&1 &
    as_root scripts/screenshot.py "$system$home/screen/Xvfb_screen0" "$output/preview.png" $MAX_SECONDS &&
        seen=true || seen=false
    as_root touch "$system$home/seen"
    wait $!
    $seen || fail "$(cat "$cache/preview.log")"
}

test_release() {
    echo "=== $1"
    prepare "$1"
    # The dependencies leave files of their own, which do not count.
    renew "$1"
    offline apt-get satisfy --yes "$(field Depends), $(field Recommends)" >"$cache/needed.log"
    list_files >"$cache/expected"
    renew "$1"
    install_and_track
    use
    in_system apt-get purge --yes "$name"
    list_files >"$cache/left"
    diff "$cache/expected" "$cache/left" || fail "The package leaves files, or takes files of others with it"
    results="$results$1: $milliseconds ms from the package to the record
"
    as_root rm -rf "$cache/fetched"
    as_root mv "$system$home/fetched" "$cache/fetched"
    renew "$1"
    as_root mv "$cache/fetched" "$system$home/fetched"
    install_and_show
    results="$results$1: $milliseconds ms from the packages to the clip in the window
"
}

scripts/system-packages.sh appstream build-essential debhelper debootstrap desktop-file-utils lintian util-linux
scripts/deb.sh
file=$(cd "$output" && echo "${name}"_*.deb)
preview_file=$(cd "$output" && echo "${preview}"_*.deb)
results=
check_package
check_source
[ $# -gt 0 ] || set -- bookworm trixie
for release; do
    test_release "$release"
done
as_root rm -rf "$cache/system"
printf '%s' "$results"
