#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Lists the shared libraries in the Python packages that docs/gpu.md installs: nvidia_wheels.txt.

Needs pip 23.2 or later, and reads only the directories of the wheels, not their contents. A line is the version of CUDA and a
path in `site-packages`. Usage: tests/golden/make_nvidia_wheels.py >tests/golden/nvidia_wheels.txt
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pip._internal.network.lazy_wheel import LazyZipOverHTTP
from pip._internal.network.session import PipSession
from pip._vendor.packaging.utils import canonicalize_name
from zipfile import ZipFile

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gpu.md"
# A wheel for each platform; of ONNX Runtime one for each Python too, with the same libraries.
PLATFORM = ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_27_x86_64", "--platform", "manylinux2014_x86_64",
            "--platform", "manylinux1_x86_64", "--python-version", "3.12", "--only-binary=:all:"]


def wheels(requirements):
    """The addresses of the wheels that pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps",
                   "--target", folder, "--report", report, *PLATFORM, *requirements]
        subprocess.run(command, check=True, stdout=sys.stderr)
        found = json.loads(report.read_text())["install"]
    assert {canonicalize_name(it["metadata"]["name"]) for it in found} == {it.split("==")[0] for it in requirements}
    return [it["download_info"]["url"] for it in found]


def libraries(url):
    """The shared libraries in a wheel."""
    with ZipFile(LazyZipOverHTTP(url, PipSession())) as wheel:
        return [name for name in wheel.namelist() if re.search(r"\.so(\.[0-9.]+)?$", name)]


for line in re.findall(r"pip install --no-deps (.*)", PAGE.read_text()):
    requirements = line.split()
    cuda = 12 if any("-cu12" in it for it in requirements) else 13
    for path in sorted(path for url in wheels(requirements) for path in libraries(url)):
        print(cuda, path)
