# SPDX-License-Identifier: MPL-2.0
# For scripts: `as_root <command>` runs a command as root.

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "Neither root nor sudo here. As root, run: $*" >&2
        exit 1
    fi
}
