# SPDX-License-Identifier: MPL-2.0
"""The documented lines install the package into a fresh environment, with today's packages."""

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_documented_lines_install_the_package(tmp_path):
    blocks = re.findall(r"```\w+\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)
    (lines,) = [block for block in blocks if "pip install" in block]
    # As in a fresh checkout, where nothing was built.
    shutil.copytree(ROOT / "python", tmp_path / "python", symlinks=True)
    subprocess.run(["sh", "-euc", lines], cwd=tmp_path, check=True)
    python = tmp_path / "facetrack-python/bin/python"
    program = "import facetrack, pandas, polars; print(facetrack.__file__)"
    printed = subprocess.run([python, "-Ic", program], check=True, capture_output=True, text=True).stdout
    installed = Path(printed.strip()).parent
    assert installed.is_relative_to(tmp_path / "facetrack-python")
    assert (installed / "schema.json").read_bytes() == (ROOT / "schema/facetrack-2.schema.json").read_bytes()
