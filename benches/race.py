# SPDX-License-Identifier: MPL-2.0
"""Shared by the benches: clips, timed programs, and tables.

A program prints a line per frame. Its frames are timed by when these lines arrive, so start-up is outside, and all programs
are timed in the same way. A program is stopped after a few seconds.
"""

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bench"

FPS = 30

CORES = sorted(os.sched_getaffinity(0))
ALL_CORES = ",".join(map(str, CORES))
# The reader of the lines runs on the others.
ONE_CORE = str(CORES[-1])

# Frames are timed after the warm-up of a program, which ends with the first of these limits.
WARM_UP_FRAMES, WARM_UP_SECONDS = 10, 1.0
# A slow program is timed for at least so many frames.
MIN_FRAMES = 5
# With fewer frames, a 95th percentile is not stated.
FRAMES_OF_PERCENTILE = 40

# A line of the element's profile: the mean time of all frames so far, ms.
PROFILE = re.compile(r"\[PROFILING\] Frame (\d+):.*total=([\d.]+)ms")


class Unavailable(Exception):
    """Why something cannot be measured here."""


@dataclass(frozen=True)
class Clip:
    path: Path
    frames: int


@dataclass(frozen=True)
class Timing:
    """Times of a program, ms and s."""

    # From the start of the process to the end of the first frame.
    start_up: float
    # Between the ends of frames.
    intervals: list[float]
    cpu_seconds: float
    megabytes: float
    # Mean time of a frame inside the engine, ms, and faces per frame, if they are known.
    engine: float | None
    faces: float | None


@dataclass(frozen=True)
class Program:
    """A command that prints a line per frame, and the cores that it runs on."""

    name: str
    command: list[str]
    cores: str
    is_frame: re.Pattern[str]
    # Mean time of a frame inside the engine, ms, and mean number of faces, from the timed lines.
    engine: Callable[[list[str]], float] | None = None
    faces: Callable[[list[str]], float] | None = None


def read_cpu_seconds(pid: int) -> float:
    """CPU time of a process and all its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def time_frames(program: Program, limit: float | None = None) -> Timing:
    """Runs a program to its end, or until its frames have taken `limit` seconds."""
    start = time.perf_counter()
    # The element logs its profile, and facetracker.py does not flush.
    child = pinned(program.command, program.cores, GST_DEBUG="facetrack:4", GST_DEBUG_NO_COLOR="1", PYTHONUNBUFFERED="1")
    ends, lines, other = [], [], []
    first_timed = cpu_before = cpu = None
    for line in child.stdout:
        now = time.perf_counter()
        if not program.is_frame.search(line):
            other.append(line)
            continue
        ends.append(now)
        lines.append(line)
        cpu = read_cpu_seconds(child.pid)
        if first_timed is None and len(ends) > 1 and (len(ends) > WARM_UP_FRAMES or now - ends[0] > WARM_UP_SECONDS):
            first_timed, cpu_before = len(ends) - 1, cpu
        if limit and first_timed is not None and len(ends) - first_timed > MIN_FRAMES and now - ends[first_timed] > limit:
            child.terminate()
            break
    other += child.stdout.readlines()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, -signal.SIGTERM) or first_timed is None or len(ends) - first_timed < 2:
        sys.stderr.writelines(other)
        raise Unavailable(f"`{program.name}` failed: {last_line(other)}")
    return Timing(
        start_up=ends[0] - start,
        intervals=[1000 * (end - before) for before, end in zip(ends[first_timed:], ends[first_timed + 1 :])],
        cpu_seconds=cpu - cpu_before,
        megabytes=usage.ru_maxrss / 1024,
        engine=program.engine and program.engine(lines[first_timed:]),
        faces=program.faces and program.faces(lines[first_timed:]),
    )


def run_once(command: list[str], cores: str) -> tuple[float, float, str]:
    """Seconds, peak resident MB and output of a process that runs on these cores only."""
    start = time.perf_counter()
    child = pinned(command, cores)
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.stderr.write(printed)
        raise Unavailable(f"`{command[0]}` failed: {last_line(printed.splitlines())}")
    return seconds, usage.ru_maxrss / 1024, printed


def model(args, name: str) -> Path:
    if name not in args.models:
        raise Unavailable(f"{name} is missing (facetrack fetch)")
    return args.models[name]


def last_line(lines: list[str]) -> str:
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")


def pinned(command: list[str], cores: str, **environment: str) -> subprocess.Popen:
    if not shutil.which(command[0]):
        raise Unavailable(f"`{command[0]}` is not installed")
    return subprocess.Popen(
        ["taskset", "-c", cores, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # The originals' ONNX Runtime would send usage data.
        env=os.environ | {"ORT_DISABLE_TELEMETRY": "1"} | environment,
        text=True,
        errors="replace",
    )


@dataclass(frozen=True)
class Result:
    """Several timings of one program, taken together."""

    name: str
    timings: list[Timing]

    @property
    def intervals(self) -> list[float]:
        return [interval for timing in self.timings for interval in timing.intervals]

    @property
    def mean(self) -> float:
        """Time of a frame, ms: the median of the runs."""
        return statistics.median(statistics.fmean(timing.intervals) for timing in self.timings)

    @property
    def median(self) -> float:
        return statistics.median(self.intervals)

    @property
    def p95(self) -> float | None:
        if len(self.intervals) < FRAMES_OF_PERCENTILE:
            return None
        return statistics.quantiles(self.intervals, n=20)[-1]

    @property
    def cpu_per_minute(self) -> float:
        """CPU time of a minute of video with 30 fps, s."""
        per_frame = statistics.median(timing.cpu_seconds / len(timing.intervals) for timing in self.timings)
        return 60 * FPS * per_frame

    @property
    def engine(self) -> float | None:
        times = [timing.engine for timing in self.timings if timing.engine is not None]
        return statistics.median(times) if times else None

    @property
    def faces(self) -> float | None:
        counts = [timing.faces for timing in self.timings if timing.faces is not None]
        return statistics.median(counts) if counts else None

    @property
    def start_up(self) -> float:
        return statistics.median(timing.start_up for timing in self.timings)

    @property
    def megabytes(self) -> float:
        return statistics.median(timing.megabytes for timing in self.timings)


def take_turns(
    programs: list[Program], repeats: int, limit: float | None = None, missing: dict[str, str] | None = None
) -> list[Result]:
    """Runs each program in each round. The first must work; others that fail are added to `missing`, if it is given."""
    timings: dict[str, list[Timing]] = {program.name: [] for program in programs}
    left = list(programs)
    for _ in range(repeats):
        for program in list(left):
            try:
                timings[program.name].append(time_frames(program, limit))
            except Unavailable as reason:
                if missing is None or program is programs[0]:
                    raise
                missing[program.name] = str(reason)
                left.remove(program)
    return [Result(program.name, timings[program.name]) for program in left]


def at_once(programs: list[Program], repeats: int) -> list[Result]:
    """Runs all programs at the same time, in each round."""
    with ThreadPoolExecutor(len(programs)) as readers:
        rounds = [list(readers.map(time_frames, programs)) for _ in range(repeats)]
    return [Result(program.name, list(timings)) for program, timings in zip(programs, zip(*rounds))]


def profiled_ms(lines: list[str]) -> float:
    """Mean time of a frame inside the element, ms, between the first and the last of these lines."""
    before, total_before = PROFILE.search(lines[0]).groups()
    after, total_after = PROFILE.search(lines[-1]).groups()
    spent = int(after) * float(total_after) - int(before) * float(total_before)
    return spent / (int(after) - int(before))


def facetrack(name: str, clip: Clip, options: str, track: Path, cores: str, decoder: str = "decodebin") -> Program:
    """Our pipeline, from file to JSON."""
    pipeline = (
        f"filesrc location={clip.path} ! {decoder} ! facetrack {options} profile-interval=1 "
        f"! trackjsonsink location={track} overwrite=true"
    )
    command = ["gst-launch-1.0", "-q", *pipeline.split()]
    return Program(name, command, cores, PROFILE, profiled_ms, lambda _: recorded_faces(track))


def recorded_faces(track: Path) -> float:
    """Mean number of faces in a frame of a record, which is partial if the program was stopped."""
    partial = track.with_name(f"{track.name}.partial")
    record = partial if partial.exists() else track
    # A program that was stopped may leave half a line.
    lines = [line for line in record.read_text().splitlines(keepends=True)[1:] if line.startswith("{") and line.endswith("\n")]
    frames = [json.loads(line.rstrip(",\n")) for line in lines]
    partial.unlink(missing_ok=True)
    return statistics.fmean(len(frame["tracked_objects"]) for frame in frames)


def environment_with(name: str, *requirements: str, alone: tuple[str, ...] = ()) -> Path:
    """A Python with `requirements`, and with the packages of `alone` but without their dependencies."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    packages = ", ".join(requirement.replace("==", " ") for requirement in (*requirements, *alone))
    print(f"Installing {packages} into {folder} …", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = [[*install, *requirements]] + ([[*install, "--no-deps", *alone]] if alone else [])
    if any(subprocess.run(step).returncode for step in steps):
        raise Unavailable(f"{packages} cannot be installed for Python {sys.version.split()[0]}")
    (folder / "complete").touch()
    return python


def prepare(source: Path, width: int, height: int, frames: int) -> Clip:
    """`source` in another size, repeated to this number of frames; made once."""
    path = CACHE / f"{source.stem}-{width}x{height}-{frames}.mp4"
    if not path.exists():
        print(f"Preparing {path.name} …", flush=True)
        folder = CACHE / f"{source.stem}-frames"
        if not folder.exists():
            extract(source, folder)
        unfinished = path.with_suffix(".part")
        launch(
            f"multifilesrc location={folder}/%d.png stop-index={len(os.listdir(folder)) - 1} loop=true num-buffers={frames} "
            f"caps=image/png,framerate=(fraction){FPS}/1 ! pngdec ! videoconvert ! videoscale "
            f"! video/x-raw,format=I420,width={width},height={height} ! x264enc ! h264parse ! mp4mux "
            f"! filesink location={unfinished}"
        )
        unfinished.rename(path)
    return Clip(path, frames)


def extract(source: Path, folder: Path) -> None:
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    launch(f"filesrc location={source} ! decodebin ! videoconvert ! pngenc ! multifilesink location={unfinished}/%d.png")
    unfinished.rename(folder)


def crowd(source: Path, faces: int, frames: int) -> Clip:
    """Up to four small copies of `source` in a frame of 1280×720."""
    path = CACHE / f"{source.stem}-{faces}-faces-{frames}.mp4"
    quarter = prepare(source, 640, 360, frames)
    if not path.exists():
        print(f"Preparing {path.name} …", flush=True)
        unfinished = path.with_suffix(".part")
        places = " ".join(f"sink_{i}::xpos={640 * (i % 2)} sink_{i}::ypos={360 * (i // 2)}" for i in range(faces))
        decoders = " ".join(f"filesrc location={quarter.path} ! decodebin ! queue ! c.sink_{i}" for i in range(faces))
        launch(
            f"compositor name=c {places} ! video/x-raw,width=1280,height=720 ! videoconvert ! video/x-raw,format=I420 "
            f"! x264enc ! h264parse ! mp4mux ! filesink location={unfinished} {decoders}"
        )
        unfinished.rename(path)
    return Clip(path, frames)


def launch(pipeline: str) -> None:
    subprocess.run(["gst-launch-1.0", "-q", *pipeline.split()], check=True, stdout=subprocess.DEVNULL)


def table(columns: list[str], rows: Iterable[Iterable[object]], texts: int = 1) -> str:
    """Markdown. The first columns hold `texts`, the others numbers."""
    lines = [columns, [*["---"] * texts, *["--:"] * (len(columns) - texts)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def ms(value: float | None) -> str:
    """Milliseconds with three digits; empty if unknown."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
