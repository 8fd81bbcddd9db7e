# SPDX-License-Identifier: MPL-2.0
import os
import shutil
from pathlib import Path

import pytest

# How variables of schedulers begin, which the command reads.
SCHEDULERS = ("SLURM_ARRAY_", "JOB_COMPLETION_", "HQ_")


def pytest_configure() -> None:
    if shutil.which("facetrack") is None:
        pytest.exit("the command `facetrack` is not on the PATH. Run `make test`", returncode=2)
    # Of processes that tests start.
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a scheduler, and in a folder for the lists of videos that failed."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(SCHEDULERS)]:
        monkeypatch.delenv(name)
