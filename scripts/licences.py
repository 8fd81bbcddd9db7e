#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Prints the crates that the plugin and the programs contain, and the texts of their licences.

Arguments are those of cargo that choose features. Fails if a crate contains no text of its licence, unless all of it may be used under Apache-2.0,
whose text is on every Debian system.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

PACKAGES = ["gst-plugin-facetrack", "facetrack-cli", "facetrack-preview"]
# Hack-Regular.txt, OFL.txt and UFL.txt belong to the fonts in epaint_default_fonts.
TEXT = re.compile(
    r"licen[cs]e|copying|copyright|notice|unlicense|(hack-regular|ofl|ufl)\.txt", re.IGNORECASE
)

INTRODUCTION = """\
The plugin and the programs contain Rust's standard library, Copyright (c) The Rust Project
Contributors, under MIT or Apache-2.0, and the crates below. For a crate without a text of its own,
Apache-2.0 applies: see /usr/share/common-licenses/Apache-2.0.
"""


def cargo(*arguments: str) -> str:
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def linked() -> set[str]:
    """Name and version of each crate that is linked on this machine."""
    selection = [word for package in PACKAGES for word in ("--package", package)]
    tree = cargo("tree", *sys.argv[1:], *selection, "--edges=normal,no-proc-macro", "--prefix=none")
    return {" ".join(line.split()[:2]) for line in tree.splitlines() if line}


def published() -> dict[str, dict]:
    """The crates of others, by name and version."""
    metadata = json.loads(cargo("metadata", "--all-features", "--format-version=1"))
    others = (crate for crate in metadata["packages"] if crate["source"])
    return {f"{crate['name']} v{crate['version']}": crate for crate in others}


def texts(crate: dict) -> list[str]:
    """The texts of licences in a crate."""
    folder = Path(crate["manifest_path"]).parent
    files = sorted(path for path in folder.rglob("*") if TEXT.match(path.name) and path.is_file())
    found = [path for path in files if path.suffix not in {".rs", ".html"}]
    parts = (crate["license"] or "").split(" AND ")
    if not found and not all("Apache-2.0" in part for part in parts):
        sys.exit(f"{crate['name']} {crate['version']} contains no text of its licence")
    return ["\n".join(line.rstrip() for line in path.read_text().splitlines()) for path in found]


def described(crate: dict) -> str:
    authors = ", ".join(crate["authors"])
    parts = [f"{crate['name']} {crate['version']}", crate["license"], authors, crate["repository"]]
    return "\n    ".join(part for part in parts if part)


def main() -> None:
    known = published()
    crates = [known[name] for name in sorted(linked()) if name in known]
    users = defaultdict(list)
    for crate in crates:
        for text in texts(crate):
            users[text].append(crate["name"])
    print(INTRODUCTION)
    print("\n".join(map(described, crates)))
    for text, names in users.items():
        print(f"\n{'=' * 80}\nFor {', '.join(dict.fromkeys(names))}:\n\n{text}")


if __name__ == "__main__":
    main()
