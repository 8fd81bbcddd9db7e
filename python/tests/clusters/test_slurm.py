# SPDX-License-Identifier: MPL-2.0
"""examples/cluster/slurm.sh on two nodes of one core, by Debian's Slurm. Needs root."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from videos import (
    KILLER_OPTIONS,
    SLOW_OPTIONS,
    assert_only_killer_failed,
    clips,
    forty,
    processes,
    records,
    sequential,
    stamps,
    statuses,
    wait_until,
    with_killer,
)

SCRIPT = Path(__file__).parents[3] / "examples/cluster/slurm.sh"

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
MailProg=/bin/true
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port=16818 CPUs=1 RealMemory=1000
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port=16819 CPUs=1 RealMemory=1000
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def slurm(*line: str) -> str:
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if shutil.which("slurmctld") is None or os.geteuid() != 0:
        pytest.skip("slurmctld, slurmd or munge is not installed, or this is not root")
    folder = tmp_path_factory.mktemp("slurm")
    # munged refuses folders that others may write to, and those that it cannot reach.
    for path in (folder, folder.parent):
        path.chmod(0o755)
    (folder / "munge.key").write_bytes(secrets.token_bytes(1024))
    (folder / "munge.key").chmod(0o400)
    (folder / "state").mkdir()
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(host=socket.gethostname(), folder=folder))
    munge = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid", "log-file": "munged.log"}
    options = [f"--{name}={folder / path}" for name, path in {**munge, "seed-file": "munge.seed"}.items()]
    os.environ["SLURM_CONF"] = str(configuration)
    try:
        slurm("munged", "--force", *options)
        slurm("slurmctld", "-f", str(configuration))
        for node in ("one", "two"):
            slurm("slurmd", "-f", str(configuration), "-N", node)
        wait_until(lambda: slurm("sinfo", "--noheader", "--format=%t").split() == ["idle"])
        yield
    finally:
        for pid in folder.glob("*.pid"):
            os.kill(int(pid.read_text()), signal.SIGTERM)
        del os.environ["SLURM_CONF"]


def submit(folder: Path, out: Path, tasks: int, options: list[str] = SLOW_OPTIONS) -> subprocess.Popen[bytes]:
    """Submits the array, and waits for it. Ends with the highest exit status of the tasks."""
    out.mkdir(exist_ok=True)
    given = ["--cpus-per-task=1", "--mem=400M", f"--array=0-{tasks - 1}", f"--output={out}/%a.log"]
    line = [*given, str(SCRIPT), str(folder), "--out", str(out), *options]
    return subprocess.Popen(["sbatch", "--wait", "--quiet", *line])


def test_a_killed_task_is_made_up_for(tmp_path: Path) -> None:
    folder, broken = forty(tmp_path / "in", frames=20)
    out = tmp_path / "out"
    array = submit(folder, out, tasks=4)
    wait_until(lambda: len(stamps(out)) >= 8)
    os.kill(processes("facetrack\0run", str(out))[0], signal.SIGKILL)
    # 128 and the signal, from the shell.
    assert array.wait(timeout=120) == 137
    before = stamps(out)
    assert 8 <= len(before) < 40

    assert submit(folder, out, tasks=4).wait(timeout=120) == 1
    after = stamps(out)
    assert len(after) == 40 and {name: after[name] for name in before} == before
    assert {name for name, status in statuses(out).items() if status != "complete"} == broken
    assert records(out) == sequential(folder, tmp_path / "sequential")


def test_a_terminated_task_is_requeued(tmp_path: Path) -> None:
    folder = clips(tmp_path / "in", 8, frames=100)
    out = tmp_path / "out"
    array = submit(folder, out, tasks=1)
    wait_until(lambda: len(stamps(out)) >= 2)
    jobs = ["squeue", "--noheader", "--format=%A %T"]
    (job, _) = slurm(*jobs).split()
    slurm("scancel", "--batch", "--signal=TERM", job)
    wait_until(lambda: slurm(*jobs).split()[1:] == ["PENDING"])
    before = stamps(out)
    # Slurm holds a requeued task back for two minutes, because nodes refuse one that starts again
    # in the second of its end.
    slurm("scontrol", "update", f"jobid={job}", "starttime=now+3")
    assert array.wait(timeout=120) == 0
    after = stamps(out)
    assert {name: after[name] for name in before} == before and len(after) == 8
    assert records(out) == sequential(folder, tmp_path / "sequential")


def test_a_video_that_kills_its_worker_is_named(tmp_path: Path) -> None:
    folder = with_killer(tmp_path / "in")
    out = tmp_path / "out"
    assert submit(folder, out, 4, KILLER_OPTIONS).wait(timeout=120) == 1
    assert_only_killer_failed(out)
