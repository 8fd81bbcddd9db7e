# shellcheck shell=sh
# SPDX-License-Identifier: MPL-2.0
# For scripts: Debian systems in folders. Needs Debian and root or sudo.

. scripts/as-root.sh

# The proxy that apt is told to use here, if it is: a system has to install packages too.
eval "$(apt-config shell http_proxy Acquire::http::Proxy)"

# The first archive with this label of apt's own configuration, whatever its release.
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Label: $1" | head -n 1
}

# Creates a minimal system of a release in a folder, unless it is there.
# Usage: bootstrap <release> <folder>
bootstrap() {
    [ ! -d "$2" ] || return 0
    uri=$(mirror Debian)
    if [ -z "$uri" ]; then
        echo "apt knows no Debian archive: run 'apt-get update'" >&2
        exit 1
    fi
    mkdir -p "$(dirname "$2")"
    as_root rm -rf "$2.part"
    as_root env ${http_proxy:+"http_proxy=$http_proxy"} \
        debootstrap --variant=minbase "$1" "$2.part" "$uri"
    security=$(mirror Debian-Security)
    if [ -n "$security" ]; then
        echo "deb $security $1-security main" | as_root tee -a "$2.part/etc/apt/sources.list" >/dev/null
    fi
    as_root mv "$2.part" "$2"
}

# Runs a command in the system in a folder, in namespaces of its own: mounts and processes end with
# it, whatever happens. Each path outside can be read in the system at the path after it.
# Usage: inside <folder> [<path outside> <path inside>]… -- <command>
inside() {
    # shellcheck disable=SC2016
    as_root unshare --mount --pid --fork --kill-child sh -eu -c '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --bind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/tmp"
        cp -L /etc/resolv.conf "$root/etc/resolv.conf"
        while [ "$1" != -- ]; do
            mkdir -p "$root$(dirname "$2")"
            if [ -d "$1" ]; then mkdir -p "$root$2"; else : >>"$root$2"; fi
            mount --bind "$1" "$root$2"
            mount -o remount,bind,ro "$root$2"
            shift 2
        done
        shift
        exec chroot "$root" env -i LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
    ' inside "$@"
}
