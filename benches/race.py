# SPDX-License-Identifier: MPL-2.0
"""Races between programs that track a clip, file to faces.

Every contestant is a process pinned to one core, and they take turns. Each tracks a short and a long clip: the
difference gives the time of a frame with the start-up cancelled out, the same way for all.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bench"
SIZES = ((640, 360), (1280, 720))
OURS = "facetrack"


@dataclass(frozen=True)
class Clip:
    path: Path
    frames: int


@dataclass(frozen=True)
class Run:
    seconds: float
    # Seconds inside the engine, if the program reports them.
    engine_seconds: float | None
    kibibytes: int


@dataclass
class Contestant:
    """A program that tracks one clip, and what its runs took."""

    name: str
    command: Callable[[Clip], list[str]]
    # Mean time of a frame inside the engine, ms, from the program's output; None if it does not report it.
    engine_ms: Callable[[str], float] | None = None
    runs: dict[Clip, list[Run]] = field(default_factory=lambda: defaultdict(list))

    def run(self, clip: Clip, core: int) -> None:
        seconds, kibibytes, printed = run_once(self.command(clip), core)
        engine = self.engine_ms and self.engine_ms(printed) * clip.frames / 1000
        self.runs[clip].append(Run(seconds, engine, kibibytes))

    def result(self, short: Clip, long: Clip) -> "Result":
        in_short, in_long = (self.median(clip, "seconds") for clip in (short, long))
        per_frame = (in_long - in_short) / (long.frames - short.frames)
        return Result(
            name=self.name,
            ms=1000 * per_frame,
            engine_ms=self.engine_ms and self.engine_ms_of(short, long),
            start_up=in_short - short.frames * per_frame,
            fps_end_to_end=long.frames / in_long,
            megabytes=self.median(long, "kibibytes") / 1024,
        )

    def engine_ms_of(self, short: Clip, long: Clip) -> float:
        more = self.median(long, "engine_seconds") - self.median(short, "engine_seconds")
        return 1000 * more / (long.frames - short.frames)

    def median(self, clip: Clip, what: str) -> float:
        return statistics.median(getattr(run, what) for run in self.runs[clip])


@dataclass(frozen=True)
class Result:
    name: str
    ms: float
    engine_ms: float | None
    start_up: float
    fps_end_to_end: float
    megabytes: float


def environment_with(name: str, *requirements: str, alone: tuple[str, ...] = ()) -> Path | None:
    """A Python with these packages, and those that come `alone`, without what they ask for; None where there are no builds
    of them for this machine's Python."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    packages = ", ".join(requirement.replace("==", " ") for requirement in (*requirements, *alone))
    print(f"Installing {packages} into {folder} …", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet"]
    steps = [[*install, *requirements]] + ([[*install, "--no-deps", *alone]] if alone else [])
    if any(subprocess.run(step).returncode for step in steps):
        print(f"{packages} can't be installed for Python {sys.version.split()[0]}: left out")
        return None
    (folder / "complete").touch()
    return python


def facetrack(options: str, track: Path) -> Contestant:
    """Our pipeline, file to `track`, with `options` of the element; it prints one line of its profile, after the last frame."""

    def command(clip: Clip) -> list[str]:
        pipeline = (
            f"filesrc location={clip.path} ! decodebin ! facetrack {options} profile-interval={clip.frames} "
            f"! trackjsonsink location={track} overwrite=true"
        )
        return ["env", "GST_DEBUG=facetrack:4", "gst-launch-1.0", "-q", *pipeline.split()]

    return Contestant(OURS, command, lambda printed: float(re.search(r"total=([\d.]+)ms/frame", printed)[1]))


def prepare(source: Path, width: int, height: int, frames: int) -> Clip:
    """`source` at another size, repeated to as many frames; made once."""
    path = CACHE / f"{source.stem}-{width}x{height}-{frames}.mp4"
    if not path.exists():
        print(f"Preparing {path.name} …", flush=True)
        unfinished = path.with_suffix(".part")
        with tempfile.TemporaryDirectory() as folder:
            launch(
                f"filesrc location={source} ! decodebin ! videoconvert ! videoscale "
                f"! video/x-raw,width={width},height={height} ! pngenc ! multifilesink location={folder}/%d.png"
            )
            last = len(os.listdir(folder)) - 1
            launch(
                f"multifilesrc location={folder}/%d.png stop-index={last} loop=true num-buffers={frames} "
                f"caps=image/png,framerate=(fraction)30/1 ! pngdec ! videoconvert ! video/x-raw,format=I420 "
                f"! x264enc ! h264parse ! mp4mux ! filesink location={unfinished}"
            )
        unfinished.rename(path)
    return Clip(path, frames)


def launch(pipeline: str) -> None:
    subprocess.run(["gst-launch-1.0", "-q", *pipeline.split()], check=True)


def run_once(command: list[str], cores: int | str) -> tuple[float, int, str]:
    """Seconds, peak resident KiB and output of a process that runs on these `cores` only."""
    start = time.perf_counter()
    child = subprocess.Popen(
        ["taskset", "-c", str(cores), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    printed = child.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{printed}\nfailed: {' '.join(command)}")
    return seconds, usage.ru_maxrss, printed


def check_frames(track: Path, frames: int) -> None:
    found = json.loads(track.read_text())["frames"]
    with_face = sum(bool(frame["tracked_objects"]) for frame in found)
    if len(found) != frames or with_face < frames / 2:
        sys.exit(f"{track}: {len(found)} frames, {with_face} with a face, of {frames}")


def measure(clips: list[Clip], racers: list[Contestant], track: Path, args: argparse.Namespace) -> list[Result]:
    """Lets the racers take turns on the short and the long clip; the first of them writes `track`."""
    for turn in range(args.repeats):
        print(f"  round {turn + 1} of {args.repeats} …", flush=True)
        for clip in clips:
            for racer in racers:
                racer.run(clip, args.core)
            check_frames(track, clip.frames)
    return [racer.result(*clips) for racer in racers]


def table(title: str, results: list[Result]) -> str:
    """Markdown; the first result is ours."""
    own = results[0]
    lines = [
        f"### {title}, one face, one core, medians",
        "| | ms a frame | fps | our speed-up | fps with start-up | our speed-up | start-up s | peak MB | our share |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for it in results:
        lines.append(
            f"| {it.name} | {it.ms:.2f} | {1000 / it.ms:.1f} | {it.ms / own.ms:.2f}× "
            f"| {it.fps_end_to_end:.1f} | {own.fps_end_to_end / it.fps_end_to_end:.2f}× "
            f"| {it.start_up:.2f} | {it.megabytes:.0f} | {100 * own.megabytes / it.megabytes:.0f} % |"
        )
    return "\n".join(lines)


def engine_table(title: str, results: list[Result]) -> str:
    """Markdown of the engines' own times, without decoding; the first result is ours."""
    own = results[0]
    lines = [f"### {title}, only the engine", "| | ms a frame | our speed-up |", "|---|--:|--:|"]
    for it in results:
        lines.append(f"| {it.name} | {it.engine_ms:.2f} | {it.engine_ms / own.engine_ms:.2f}× |")
    return "\n".join(lines)


def parser(description: str) -> argparse.ArgumentParser:
    """The arguments of every race."""
    it = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    it.add_argument("--clip", type=Path, required=True, help="clip with one face to make the test clips from")
    it.add_argument("--repeats", type=int, default=5, help="runs of each contestant and clip (5)")
    it.add_argument(
        "--core", type=int, default=max(os.sched_getaffinity(0)), help="processor core to run on (the last)"
    )
    return it
