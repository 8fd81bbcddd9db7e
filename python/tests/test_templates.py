# SPDX-License-Identifier: MPL-2.0
"""The scripts in examples/cluster without a scheduler: stand-ins for its commands print what they are told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "examples/cluster"

# Variables of a task, as the scheduler sets them.
TASK = {"HQ_JOB_ID": "7", "SLURM_JOB_ID": "8", "SLURM_ARRAY_JOB_ID": "7"}

CANCEL = {
    "hyperqueue.sh": "hq job cancel 7\n",
    "slurm.sh": "scancel --state=PENDING 7\n",
}


@pytest.mark.parametrize("script", CANCEL)
@pytest.mark.parametrize("status", [0, 1, 2, 42, 69, 75])
def test_only_what_fails_every_task_cancels_the_others(tmp_path: Path, script: str, status: int) -> None:
    for name in ("hq", "scancel", "scontrol"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
    (tmp_path / "facetrack").write_text(f"#!/bin/sh\nexit {status}\n")
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    environment = {**os.environ, **TASK, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    line = [TEMPLATES / script, "64", "clips", "--out", "tracks"]
    done = subprocess.run(["bash", *line], env=environment, capture_output=True, text=True)
    assert done.returncode == status and not done.stderr
    said = {2: CANCEL[script], 69: CANCEL[script]}
    if script == "slurm.sh":
        said[75] = "scontrol requeue 8\n"
    assert done.stdout == said.get(status, "")
