# SPDX-License-Identifier: MPL-2.0
# For scripts: a Debian system in a folder, made from the mirror that this machine's apt uses, and commands in it.
# The script sets `checkout`, `root` (the folder) and `release`, and may set `variables` (NAME=value of the commands).
# Needs Debian and root or sudo.
. scripts/as-root.sh

# In the system: the checkout, which can't be written to there, and cargo's folder.
checkout_inside=/checkout
cargo_inside=/cargo

# The first archive with this label of apt's own configuration, whatever its release.
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Label: $1" | head -n 1
}

bootstrap() {
    uri=$(mirror Debian)
    if [ -z "$uri" ]; then
        echo "apt knows no Debian archive: run 'apt-get update'" >&2
        exit 1
    fi
    mkdir -p "$(dirname "$root")"
    as_root rm -rf "$root.part"
    as_root env ${http_proxy:+"http_proxy=$http_proxy"} \
        debootstrap --variant=minbase "$release" "$root.part" "$uri"
    security=$(mirror Debian-Security)
    if [ -n "$security" ]; then
        echo "deb $security $release-security main" | as_root tee -a "$root.part/etc/apt/sources.list" >/dev/null
    fi
    as_root mv "$root.part" "$root"
}

# Runs a command in the system, in namespaces of its own: mounts and processes end with it, whatever happens.
# Folders that the tests read are where they are outside.
inside() {
    # shellcheck disable=SC2016
    as_root unshare --mount --pid --fork --kill-child sh -eu -c '
        root=$1 checkout=$2 checkout_inside=$3 cargo=$4 cargo_inside=$5
        shift 5
        see() {
            mkdir -p "$root$2"
            mount --bind "$1" "$root$2"
            mount -o remount,bind,ro "$root$2"
        }
        mount -t proc proc "$root/proc"
        mount --bind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/tmp"
        cp -L /etc/resolv.conf "$root/etc/resolv.conf"
        see "$checkout" "$checkout_inside"
        # Cargo'"'"'s downloads and its registry settings from outside, without its programs.
        mkdir -p "$root$cargo_inside"
        for part in registry git; do
            [ ! -d "$cargo/$part" ] || see "$cargo/$part" "$cargo_inside/$part"
        done
        rm -f "$root$cargo_inside/config.toml"
        [ ! -e "$cargo/config.toml" ] || cp "$cargo/config.toml" "$root$cargo_inside/config.toml"
        while [ "$1" != -- ]; do
            see "$1" "$1"
            shift
        done
        shift
        exec chroot "$root" "$@"
    ' inside "$root" "$checkout" "$checkout_inside" "$cargo_home" "$cargo_inside" \
        $folders -- env -i HOME=/tmp LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        CARGO_HOME="$cargo_inside" CARGO_TARGET_DIR=/target CARGO_NET_OFFLINE=true \
        CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 ${CI:+"CI=$CI"} \
        ${http_proxy:+"http_proxy=$http_proxy"} \
        ${FACETRACK_MODELS_DIR:+"FACETRACK_MODELS_DIR=$FACETRACK_MODELS_DIR"} \
        ${FACETRACK_REFERENCE_DIR:+"FACETRACK_REFERENCE_DIR=$FACETRACK_REFERENCE_DIR"} \
        ${FACETRACK_ONNXRUNTIME:+"FACETRACK_ONNXRUNTIME=$FACETRACK_ONNXRUNTIME"} \
        XDG_DATA_HOME="$data_home" ${variables:-} \
        sh -eu -c 'cd "$1"; shift; exec "$@"' inside "$checkout_inside" "$@"
}

# Folders of models, clips and ONNX Runtime that are there.
read_folders() {
    for folder in "${FACETRACK_MODELS_DIR:-}" "${FACETRACK_REFERENCE_DIR:-}" "$data_home/facetrack" \
        "${FACETRACK_ONNXRUNTIME:+$(dirname "$FACETRACK_ONNXRUNTIME")}"; do
        [ ! -d "$folder" ] || echo "$folder"
    done
}

# Creates the system once, and fetches what cargo needs there.
prepare_folder() {
    scripts/system-packages.sh debootstrap util-linux
    # The proxy that apt is told to use here, if it is: the system has to install packages too.
    eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
    [ -d "$root" ] || bootstrap
    data_home=${XDG_DATA_HOME:-$HOME/.local/share}
    cargo_home=${CARGO_HOME:-$HOME/.cargo}
    folders=$(read_folders)
    cargo fetch --locked
}
