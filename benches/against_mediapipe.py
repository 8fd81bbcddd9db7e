#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Speed and memory of the whole pipeline, file to JSON, against MediaPipe in Python.

Every contestant is a process pinned to one core, and they take turns. Each tracks a short and a long clip: the
difference gives the time of a frame with the start-up cancelled out, the same way for all. MediaPipe's side decodes with
OpenCV and calls `detect_for_video`; it writes no JSON.

Run it through `make bench`, which sets the environment that GStreamer needs.
"""

import argparse
import json
import os
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
MEDIAPIPE = ("0.10.21", "1.2.2")
SIZES = ((640, 360), (1280, 720))
OURS = "facetrack"
# Frames of the two clips: far enough apart for the difference to mean something.
SHORT, LONG = 150, 900


@dataclass(frozen=True)
class Clip:
    path: Path
    frames: int


@dataclass
class Contestant:
    """A program that tracks one clip, and what its runs took."""

    name: str
    command: Callable[[Path], list[str]]
    seconds: dict[Clip, list[float]] = field(default_factory=lambda: defaultdict(list))
    memory: list[int] = field(default_factory=list)

    def result(self, short: Clip, long: Clip) -> "Result":
        in_short, in_long = (statistics.median(self.seconds[clip]) for clip in (short, long))
        per_frame = (in_long - in_short) / (long.frames - short.frames)
        return Result(
            name=self.name,
            ms=1000 * per_frame,
            start_up=in_short - short.frames * per_frame,
            fps_end_to_end=long.frames / in_long,
            megabytes=statistics.median(self.memory) / 1024,
        )


@dataclass(frozen=True)
class Result:
    name: str
    ms: float
    start_up: float
    fps_end_to_end: float
    megabytes: float


def environment_with(version: str) -> Path | None:
    """A Python with this MediaPipe; None where there is no build for this machine's Python."""
    folder = CACHE / f"mediapipe-{version}"
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    print(f"Installing mediapipe {version} into {folder} …", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    installed = subprocess.run([python, "-m", "pip", "install", "--quiet", f"mediapipe=={version}"])
    if installed.returncode:
        print(f"mediapipe {version} can't be installed for Python {sys.version.split()[0]}: left out")
        return None
    (folder / "complete").touch()
    return python


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


def contestants(pythons: dict[str, Path], model: Path, track: Path) -> list[Contestant]:
    def ours(clip: Path) -> list[str]:
        pipeline = (
            f"filesrc location={clip} ! decodebin ! facetrack max-faces=1 "
            f"! trackjsonsink location={track} overwrite=true"
        )
        return ["gst-launch-1.0", "-q", *pipeline.split()]

    def theirs(python: Path) -> Callable[[Path], list[str]]:
        script = ROOT / "benches" / "mediapipe_reference.py"
        return lambda clip: [str(python), str(script), str(clip), str(model)]

    return [
        Contestant(OURS, ours),
        *(Contestant(f"MediaPipe {version}", theirs(python)) for version, python in pythons.items()),
    ]


def run_once(command: list[str], core: int) -> tuple[float, int]:
    """Seconds and peak resident KiB of a process that runs on `core` alone."""
    start = time.perf_counter()
    child = subprocess.Popen(
        ["taskset", "-c", str(core), *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{said.decode(errors='replace')}\nfailed: {' '.join(command)}")
    return seconds, usage.ru_maxrss


def check_frames(track: Path, frames: int) -> None:
    found = json.loads(track.read_text())["frames"]
    with_face = sum(bool(frame["tracked_objects"]) for frame in found)
    if len(found) != frames or with_face < frames / 2:
        sys.exit(f"{track}: {len(found)} frames, {with_face} with a face, of {frames}")


def measure(clips: list[Clip], racers: list[Contestant], track: Path, args) -> list[Result]:
    for turn in range(args.repeats):
        print(f"  round {turn + 1} of {args.repeats} …", flush=True)
        for clip in clips:
            for racer in racers:
                seconds, memory = run_once(racer.command(clip.path), args.core)
                racer.seconds[clip].append(seconds)
                if clip is clips[-1]:
                    racer.memory.append(memory)
            check_frames(track, clip.frames)
    return [racer.result(*clips) for racer in racers]


def table(title: str, results: list[Result]) -> str:
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


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", type=Path, required=True, help="clip with one face to make the test clips from")
    parser.add_argument("--model", type=Path, required=True, help="face_landmarker.task, for MediaPipe's side")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each contestant and clip (5)")
    parser.add_argument(
        "--core", type=int, default=max(os.sched_getaffinity(0)), help="processor core to run on (the last)"
    )
    return parser.parse_args()


def main() -> None:
    args = arguments()
    CACHE.mkdir(parents=True, exist_ok=True)
    pythons = {version: python for version in MEDIAPIPE if (python := environment_with(version))}
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        track = Path(folder) / "track.json"
        for width, height in SIZES:
            title = f"{width}×{height}"
            clips = [prepare(args.clip, width, height, frames) for frames in (SHORT, LONG)]
            racers = contestants(pythons, args.model, track)
            print(f"{title}, {' and '.join(str(clip.frames) for clip in clips)} frames:", flush=True)
            tables.append(table(title, measure(clips, racers, track, args)))
    print("\n" + "\n\n".join(tables))


if __name__ == "__main__":
    main()
