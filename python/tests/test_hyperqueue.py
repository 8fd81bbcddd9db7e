# SPDX-License-Identifier: MPL-2.0
"""examples/cluster/hyperqueue.sh on two workers of one core.

The wheel of HyperQueue has the server and the workers, but not the command `hq`: options in the script are not tested.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
from videos import (
    KILLER_OPTIONS,
    SLOW_OPTIONS,
    assert_only_killer_failed,
    forty,
    processes,
    records,
    sequential,
    stamps,
    statuses,
    wait_until,
    with_killer,
)

SCRIPT = Path(__file__).parents[2] / "examples/cluster/hyperqueue.sh"

SHARDS = 4


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with LocalCluster() as cluster:
        for _ in range(2):
            cluster.start_worker(WorkerConfig(cores=1))
        yield cluster.client()


def submit(client: Any, folder: Path, out: Path, options: list[str] = SLOW_OPTIONS) -> Any:
    job = Job(max_fails=None)
    line = ["sh", str(SCRIPT), str(SHARDS), str(folder), "--out", str(out), "--jobs", "1", *options]
    for _ in range(SHARDS):
        job.program(line, env=dict(os.environ), cwd=out, stdout="%{TASK_ID}.out", stderr="%{TASK_ID}.err")
    return client.submit(job)


def errors(client: Any, job: Any) -> dict[int, str]:
    """The errors of failed tasks, by their number."""
    client.wait_for_jobs([job], raise_on_error=False)
    return {task: failure.error for task, failure in client.get_failed_tasks(job).items()}


def test_a_killed_task_is_made_up_for(tmp_path: Path, client: Any) -> None:
    folder, broken = forty(tmp_path / "in", frames=20)
    out = tmp_path / "out"
    out.mkdir()
    job = submit(client, folder, out)
    wait_until(lambda: len(stamps(out)) >= 8)
    os.kill(processes("facetrack\0run", str(out))[0], signal.SIGKILL)
    failed = errors(client, job)
    # 128 and the signal, from the shell.
    assert any(error.endswith("code 137.") for error in failed.values()), failed
    before = stamps(out)
    assert 8 <= len(before) < 40

    failed = errors(client, submit(client, folder, out))
    assert failed and all(error.endswith("code 1.") for error in failed.values()), failed
    after = stamps(out)
    assert len(after) == 40 and {name: after[name] for name in before} == before
    assert {name for name, status in statuses(out).items() if status != "complete"} == broken
    assert records(out) == sequential(folder, tmp_path / "sequential")


def test_a_video_that_kills_its_worker_is_named(tmp_path: Path, client: Any) -> None:
    folder = with_killer(tmp_path / "in")
    out = tmp_path / "out"
    out.mkdir()
    failed = errors(client, submit(client, folder, out, KILLER_OPTIONS))
    assert len(failed) == 1 and all(error.endswith("code 1.") for error in failed.values()), failed
    assert_only_killer_failed(out)
