# SPDX-License-Identifier: MPL-2.0
"""The snippets of the documentation, in a folder with a video in `clips`."""

import subprocess
import sys
from pathlib import Path

import pytest
from videos import sample

import facetrack

DOCS = Path(__file__).parents[2] / "docs"

# Those about metadata and about unfinished records are in the tests of the plugin, that about Ray in `clusters`.
PAGES = ("python.md", "million-videos.md")


def snippets(page: str) -> list[str]:
    return [part.partition("\n```")[0] for part in (DOCS / page).read_text().split("```python\n")[1:]]


def test_every_page_is_here() -> None:
    elsewhere = {"metadata.md", "json-record.md", "cluster.md"}
    pages = {page.name for page in DOCS.rglob("*.md") if snippets(str(page.relative_to(DOCS)))}
    assert pages == elsewhere | set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(tmp_path: Path, page: str) -> None:
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips/clip.mp4").symlink_to(sample())
    list(facetrack.run("clips", out="tracks", set={"verbose": True}))
    for snippet in snippets(page):
        subprocess.run([sys.executable, "-c", snippet], check=True)
