#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Runs a command in a Python environment of its own, which is created once.
# Usage: scripts/python.sh tests|clusters <command>
set -eu

here=$(dirname "$0")
name=$1
shift
environment=$(cd "$here/.." && pwd)/.cache/python-$name
wanted=$(cat "$here/python-$name.txt")

if [ "$(cat "$environment/installed" 2>/dev/null)" != "$wanted" ]; then
    echo "Installing Python packages into $environment"
    # Isolated from Python files in this folder.
    python3 -I -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: \
        --requirement "$here/python-$name.txt"
    echo "$wanted" >"$environment/installed"
fi

PATH=$environment/bin:$PATH
export PATH
exec "$@"
