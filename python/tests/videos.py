# SPDX-License-Identifier: MPL-2.0
"""Videos for tests, and the records of a folder."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import facetrack

# The engine of tests that need no model.
SCRIPTED = {"engine": "scripted"}

# The same, slow enough to be interrupted.
SLOW = {"engine": "scripted", "set": {"script": "face; slow ms=5"}}

# The same on a command line.
SLOW_OPTIONS = ["--engine", "scripted", "--set", "script=face; slow ms=5"]


def clip(path: Path, frames: int) -> None:
    """Writes a video of 160x120 pixels."""
    line = (
        f"videotestsrc num-buffers={frames} pattern={frames % 20} ! video/x-raw,format=I420,width=160,height=120,framerate=25/1 ! "
        f"x264enc speed-preset=ultrafast key-int-max=10 ! mp4mux ! filesink location={path}"
    )
    subprocess.run(["gst-launch-1.0", "-q", *line.split()], check=True)


def clips(folder: Path, count: int, frames: int = 8) -> Path:
    """Writes videos of a few lengths, each with a name of its own."""
    folder.mkdir()
    originals = [folder / f"clip{number}.mp4" for number in range(min(count, 4))]
    for number, path in enumerate(originals):
        clip(path, frames + number)
    for number in range(len(originals), count):
        shutil.copy(originals[number % len(originals)], folder / f"clip{number}.mp4")
    return folder


def forty(folder: Path, frames: int = 8) -> tuple[Path, set[str]]:
    """34 videos and 6 files that are none. Returns the ids of the latter."""
    clips(folder, 34, frames)
    whole = (folder / "clip0.mp4").read_bytes()
    broken = {
        "empty": b"",
        "text": b"This is no video.\n" * 50,
        "picture": b"\x89PNG\r\n\x1a\n" + bytes(500),
        "zeros": bytes(5000),
        # The index of an MP4 file is at its end.
        "cut": whole[: len(whole) // 2],
        "shifted": whole[100:],
    }
    for name, content in broken.items():
        (folder / f"{name}.mp4").write_bytes(content)
    return folder, set(broken)


# An engine that ends its process in a frame that only the video of `with_killer` has.
KILLER_SCRIPT = "face; die at=30"
KILLER = {"engine": "scripted", "set": {"script": KILLER_SCRIPT}}
KILLER_OPTIONS = ["--engine", "scripted", "--set", f"script={KILLER_SCRIPT}"]


def with_killer(folder: Path) -> Path:
    """40 videos. `killer` kills each process that tracks it."""
    clips(folder, 39)
    clip(folder / "killer.mp4", 40)
    return folder


def assert_only_killer_failed(out: Path) -> None:
    found = statuses(out)
    assert len(found) == 40 and {name for name, status in found.items() if status != "complete"} == {"killer"}
    table = facetrack.index(out).to_pylist()
    (killer,) = [row for row in table if row["id"] == "killer"]
    assert (killer["status"], killer["attempts"]) == ("failed", 2) and "SIGABRT" in killer["message"]


def records(folder: Path) -> dict[str, bytes]:
    """The records below a folder, by their path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.json")}


def sequential(folder: Path, out: Path) -> dict[str, bytes]:
    """The records of one `facetrack run` with one job and the settings of `SLOW`."""
    with facetrack.run(folder, out=out, jobs=1, **SLOW) as run:
        assert len(list(run)) > 0
    return records(out)


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.01)


def stamps(folder: Path) -> dict[str, int]:
    """When each status file of a video below a folder was written, by its path.

    Folders for unfinished files vanish during a run: `os.walk` passes over them, `Path.rglob` fails.
    """
    found = [(parent, names) for parent, _, names in os.walk(folder) if not parent.endswith(".json.parts")]
    markers = [Path(parent, name) for parent, names in found for name in names if name.endswith(".json.done")]
    return {str(marker.relative_to(folder)): marker.stat().st_mtime_ns for marker in markers}


def processes(*words: str) -> list[int]:
    """The processes that have these words on their command lines."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().decode()
        except OSError:
            # It has ended meanwhile.
            continue
        if all(word in line for word in words):
            found.append(int(process.name))
    return found


def statuses(folder: Path) -> dict[str, str]:
    """The status of each video with a status file below a folder, by its id."""
    table = facetrack.index(folder)
    return dict(zip(table["id"].to_pylist(), table["status"].to_pylist()))


@functools.cache
def sample() -> Path:
    """A real video with one face."""
    found = subprocess.run(["facetrack", "path", "single_face.mp4"], check=True, capture_output=True, text=True)
    return Path(found.stdout.strip())
