# SPDX-License-Identifier: MPL-2.0
"""The snippets of the documentation, in a folder with a video in `clips`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from videos import sample

import facetrack

DOCS = Path(__file__).parents[2] / "docs"

# Those about metadata and about unfinished records are in the tests of the plugin, that about Ray in `clusters`.
PAGES = ("python.md", "million-videos.md", "programs.md", "run.md")


def snippets(page: str, language: str = "python") -> list[str]:
    return [part.partition("\n```")[0] for part in (DOCS / page).read_text().split(f"```{language}\n")[1:]]


def export(record: str) -> None:
    """Writes `clip.csv` and `clip.parquet`."""
    for form in ("csv", "parquet"):
        subprocess.run(["facetrack", "export", record, "--format", form, "--out", f"clip.{form}"], check=True)


def test_every_page_is_here() -> None:
    elsewhere = {"metadata.md", "json-record.md", "cluster.md"}
    pages = {page.name for page in DOCS.rglob("*.md") if snippets(str(page.relative_to(DOCS)))}
    assert pages == elsewhere | set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run(tmp_path: Path, page: str) -> None:
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips/clip.mp4").symlink_to(sample())
    # With the settings of the pages: records with other ones are not replaced.
    list(facetrack.run("clips", out="tracks", set={"max-faces": 2, "verbose": True}))
    export("tracks/clip.json")
    subprocess.run(["facetrack", "index", "tracks", "--faces", "study.parquet"], check=True)
    for snippet in snippets(page):
        subprocess.run([sys.executable, "-c", snippet], check=True)


def test_pip_leaves_no_file_in_the_checkout(tmp_path: Path) -> None:
    source = DOCS.parent / "python"
    names = [path for path in source.rglob("*") if path.suffix != ".pyc" and path.name != "__pycache__"]
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", tmp_path, source], check=True)
    assert [path for path in source.rglob("*") if path.suffix != ".pyc" and path.name != "__pycache__"] == names
    program = "import facetrack; print(facetrack.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(tmp_path)}, check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == str(tmp_path / "facetrack/__init__.py")


def test_r_reads_the_table(tmp_path: Path) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("R is missing: install the package r-base-core")
    record = facetrack.run(sample(), out=tmp_path, set={"verbose": True})
    assert [status.status for status in record] == ["complete"]
    export(f"{sample().stem}.json")
    [snippet] = snippets("programs.md", "r")
    out = subprocess.run(["Rscript", "-e", snippet], check=True, capture_output=True, text=True).stdout
    assert "obj_1" in out and "Median" in out, out
