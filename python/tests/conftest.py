# SPDX-License-Identifier: MPL-2.0
import os
import shutil

import pytest

# How variables of schedulers begin, which the command reads.
SCHEDULERS = ("SLURM_ARRAY_", "JOB_COMPLETION_", "HQ_")


def pytest_configure() -> None:
    if shutil.which("facetrack") is None:
        pytest.exit("the command `facetrack` is not on the PATH. Run `make test-python`", returncode=2)


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(SCHEDULERS)]:
        monkeypatch.delenv(name)
