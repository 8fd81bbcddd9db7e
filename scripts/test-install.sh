#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Installs the plugin with cargo-c and with meson and compares the files; then links it into a program in C and runs that.
# Usage: scripts/test-install.sh <folder, which is replaced>
set -eu

cd "$(dirname "$0")/.."
rm -rf "$1"
mkdir -p "$1"
folder=$(cd "$1" && pwd -P)
libdir=lib/$(gcc -print-multiarch)
PATH=$(scripts/cargo-tool.sh cargo-c 0.10.21 cargo-cinstall):$PATH

cinstall() {
    cargo cinstall --locked --debug --package gst-plugin-facetrack "$@"
}

# Prints what pkg-config says of the plugin that was installed under the root $1.
described() {
    for question in --libs --modversion --print-requires-private; do
        PKG_CONFIG_LIBDIR=$1/usr/$libdir/pkgconfig:$(pkg-config --variable pc_path pkg-config) \
            pkg-config --print-errors "$question" gstfacetrack
    done
}

cinstall --prefix=/usr --libdir="/usr/$libdir" --library-type=cdylib --destdir="$folder/cargo-c"
meson setup "$folder/build" --buildtype=debug --prefix=/usr --libdir="$libdir" -Dtool=false -Danalytics=disabled
meson install -C "$folder/build" --destdir "$folder/meson"
for root in cargo-c meson; do
    (cd "$folder/$root" && find . -type f | sort) >"$folder/$root.txt"
    described "$folder/$root" >>"$folder/$root.txt"
done
diff "$folder/cargo-c.txt" "$folder/meson.txt"
echo "cargo-c and meson install the same files:"
cat "$folder/meson.txt"

cinstall --prefix="$folder/static" --libdir="$folder/static/lib" --library-type=staticlib
PKG_CONFIG_PATH=$folder/static/lib/pkgconfig
export PKG_CONFIG_PATH
gcc -Wall -Wextra -Werror examples/static_plugin.c -o "$folder/static_plugin" \
    $(pkg-config --cflags --libs gstfacetrack gstreamer-video-1.0 gio-2.0) -lm
# Without a plugin to load.
GST_REGISTRY=$folder/registry.bin GST_PLUGIN_PATH='' "$folder/static_plugin" \
    "videotestsrc num-buffers=10 ! facetrack engine=scripted ! trackjsonsink location=$folder/faces.json"
grep --quiet '"total_frames":10' "$folder/faces.json"
echo "A program in C with the plugin linked into it tracked 10 frames"
