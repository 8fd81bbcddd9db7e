# SPDX-License-Identifier: MPL-2.0
"""`facetrack.run`, with the command."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from videos import SCRIPTED, SLOW, clips, forty, processes, records

import facetrack


def test_broken_videos_are_named(tmp_path: Path) -> None:
    folder, broken = forty(tmp_path / "in")
    run = facetrack.run(folder, out=tmp_path / "out", **SCRIPTED)
    statuses = {status.id: status for status in run}
    assert len(statuses) == 40
    assert {name for name, it in statuses.items() if it.status != "complete"} == broken
    assert all(statuses[name].message for name in broken)
    assert run.exit_code == 1 and run.summary is not None
    assert (run.summary.done, run.summary.failed, run.summary.open) == (34, 6, 0)
    assert len(Path(run.summary.failures or "").read_text().splitlines()) == 6
    whole = statuses["clip1"]
    assert (whole.new, whole.frames, whole.faces, whole.engine) == (True, 9, 9, "scripted")

    again = list(facetrack.run(folder, out=tmp_path / "out", **SCRIPTED))
    assert len(again) == 40 and not any(status.new for status in again)


def test_rows_and_paths(tmp_path: Path) -> None:
    folder = clips(tmp_path / "in", 2, frames=50)
    rows = [{"uri": folder / "clip0.mp4", "id": "scene/1", "start": 1}, {"uri": str(folder / "clip1.mp4")}]
    with facetrack.run(rows, out=tmp_path, jobs=1, **SCRIPTED) as run:
        frames = {status.id: status.frames for status in run}
    assert frames == {"scene/1": 25, "clip1": 51}
    assert run.exit_code == 0
    found = list(facetrack.run(iter(folder.glob("*.mp4")), out=tmp_path / "paths", **SCRIPTED))
    assert {status.id for status in found} == {"clip0", "clip1"}


def test_exit_codes(tmp_path: Path) -> None:
    text = tmp_path / "text.mp4"
    text.write_text("This is no video.\n" * 50)
    run = facetrack.run(text, **SCRIPTED)
    (status,) = run
    assert (status.status, run.exit_code) == ("unsupported", 42)
    with pytest.raises(facetrack.Refused, match="has a property `nosuch`") as refused:
        list(facetrack.run(text, set={"nosuch": True}))
    assert refused.value.exit_code == 2
    with pytest.raises(facetrack.Refused, match="--nosuch"):
        list(facetrack.run(text, nosuch=3))
    with pytest.raises(facetrack.CommandNotFound, match="make install"):
        facetrack.run(text, command="no-facetrack")
    # Any other failure has another status than videos that are not complete.
    with pytest.raises(facetrack.RunError, match="no-such-model") as missing:
        list(facetrack.run(text, set={"model": "/no-such-model"}))
    assert missing.value.exit_code == 69


def test_a_terminated_run_raises_and_continues(tmp_path: Path) -> None:
    folder = clips(tmp_path / "in", 8, frames=100)
    out = tmp_path / "out"
    run = facetrack.run(folder, out=out, jobs=1, **SLOW)
    first = next(run)
    assert run._process is not None
    run._process.send_signal(signal.SIGTERM)
    with pytest.raises(facetrack.Interrupted, match="Run it again") as interrupted:
        list(run)
    assert interrupted.value.exit_code == run.exit_code == 75
    rest = list(facetrack.run(folder, out=out, jobs=1, **SLOW))
    assert first.id in {status.id for status in rest if not status.new}
    assert any(status.new for status in rest)
    list(facetrack.run(folder, out=tmp_path / "whole", jobs=1, **SLOW))
    assert records(out) == records(tmp_path / "whole") and len(records(out)) == 8


def test_a_closed_run_ends(tmp_path: Path) -> None:
    folder = clips(tmp_path / "in", 4, frames=200)
    with facetrack.run(folder, out=tmp_path / "out", jobs=1, **SLOW) as run:
        for _ in run:
            break
    assert run.exit_code == 75
    assert len(records(tmp_path / "out")) < 4
    run.close()
    with pytest.raises(StopIteration):
        next(run)


def test_a_fork_leaves_the_run_to_its_parent(tmp_path: Path) -> None:
    folder = clips(tmp_path / "in", 4, frames=20)
    with facetrack.run(folder, out=tmp_path / "out", jobs=1, **SLOW) as run:
        found = [next(run)]
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with pytest.raises(facetrack.RunError, match="belongs to the process"):
                    next(run)
                with run:
                    pass
                run.close()
                run.__del__()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        found += run
    assert len(found) == 4 and run.exit_code == 0 and run.summary is not None


def test_a_run_ends_when_its_loop_is_left(tmp_path: Path) -> None:
    folder = clips(tmp_path / "in", 4, frames=200)
    out = tmp_path / "out"
    for _ in facetrack.run(folder, out=out, jobs=1, **SLOW):
        break
    assert not processes(str(out)) and len(records(out)) < 4


def test_nothing_is_imported_before_it_is_used() -> None:
    program = "import sys, facetrack; facetrack.run, dir(facetrack); print([m for m in sys.modules if m in sys.argv])"
    line = [sys.executable, "-c", program, "gi", "numpy", "pyarrow", "simdjson", "pandas", "polars", "ray"]
    assert subprocess.run(line, check=True, capture_output=True, text=True).stdout == "[]\n"
    with pytest.raises(AttributeError, match="nosuch"):
        _ = facetrack.nosuch
