# SPDX-License-Identifier: MPL-2.0
"""`facetrack run`: jobs, segments, and its cost over a bare pipeline."""

import itertools
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from race import ALL_CORES, CORES, FPS, ONE_CORE, prepare, run_once, table

# Size of all clips.
SIZE = (640, 360)

# Lengths of the clips, s, each in several copies: evenly spaced on a logarithmic scale.
SHORTEST, LONGEST, LENGTHS, COPIES = 2, 60, 10, 4

# Length of the long clip, and of its parts, s.
LONG, PART = 600, 60

# Jobs and a bare pipeline may differ by this much.
BAR = 0.05


def seconds_of_run(videos: list[Path], jobs: int, cores: str, *options: str) -> float:
    with tempfile.TemporaryDirectory() as out:
        command = ["facetrack", "run", *map(str, videos), "--out", out, "--jobs", str(jobs), *options]
        return run_once(command, cores)[0]


def seconds_of_pipeline(video: Path) -> float:
    with tempfile.TemporaryDirectory() as out:
        pipeline = f"filesrc location={video} ! decodebin ! facetrack ! trackjsonsink location={out}/track.json"
        return run_once(["gst-launch-1.0", "-q", *pipeline.split()], ONE_CORE)[0]


def take_turns(ways: dict[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Median seconds of each way."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            taken[name].append(way())
            print(f"  {name}: {taken[name][-1]:.1f} s", flush=True)
    return {name: statistics.median(times) for name, times in taken.items()}


def numbers_of_jobs() -> list[int]:
    """1, 2, 4 … and the number of cores."""
    powers = itertools.takewhile(lambda jobs: jobs < len(CORES), (2**power for power in itertools.count()))
    return [*powers, len(CORES)]


def many(args, folder: Path) -> str:
    lengths = [SHORTEST * (LONGEST / SHORTEST) ** (step / (LENGTHS - 1)) for step in range(LENGTHS)]
    clips = [prepare(args.clip, *SIZE, round(FPS * length / args.shorten)) for length in lengths]
    videos = []
    for number, clip in enumerate(COPIES * clips):
        videos.append(folder / f"{number}.mp4")
        videos[-1].symlink_to(clip.path)
    video_seconds = COPIES * sum(clip.frames for clip in clips) / FPS
    # One job has one core, as each of several has.
    ways = {
        str(jobs): lambda jobs=jobs: seconds_of_run(videos, jobs, ONE_CORE if jobs == 1 else ALL_CORES)
        for jobs in numbers_of_jobs()
    }
    taken = take_turns(ways, args.repeats)
    one = taken["1"]
    lines = [
        [
            jobs,
            f"{seconds:.1f}",
            f"{len(videos) / seconds:.2f}",
            f"{video_seconds / seconds:.1f}×",
            f"{one / seconds:.2f}×",
            f"{100 * one / seconds / int(jobs):.0f} %",
        ]
        for jobs, seconds in taken.items()
    ]
    title = (
        f"### {len(videos)} clips of {clips[0].frames / FPS:.1f} to {clips[-1].frames / FPS:.1f} s, in total {video_seconds:.0f} s"
    )
    columns = ["jobs", "s", "videos per second", "of real time", "ratio to one job", "efficiency"]
    return f"{title}\n\n{table(columns, lines)}"


def long(args) -> str:
    video = prepare(args.clip, *SIZE, round(FPS * LONG / args.shorten)).path
    jobs, part = len(CORES), f"{PART / args.shorten:g}s"
    pipeline, uncut = "`gst-launch-1.0`, one core", "`--jobs 1`, one core"
    cut = f"`--segment {part} --jobs {jobs}`, {jobs} cores"
    taken = take_turns(
        {
            pipeline: lambda: seconds_of_pipeline(video),
            uncut: lambda: seconds_of_run([video], 1, ONE_CORE),
            cut: lambda: seconds_of_run([video], jobs, ALL_CORES, "--segment", part),
        },
        args.repeats,
    )
    more = taken[uncut] / taken[pipeline] - 1
    lines = [[name, f"{seconds:.1f}", f"{taken[uncut] / seconds:.2f}×"] for name, seconds in taken.items()]
    verdict = "met" if more <= BAR else "**missed**"
    return (
        f"### One clip of {LONG / args.shorten:g} s\n\n{table(['', 's', 'ratio to `--jobs 1`'], lines)}\n\n"
        f"Time with `--jobs 1`, against the bare pipeline: {100 * more:+.1f} %. "
        f"The limit is {100 * BAR:+.0f} %: {verdict}."
    )


def section(args) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return "\n\n".join([INTRODUCTION, many(args, Path(folder)), long(args)])


INTRODUCTION = """\
`facetrack run` with the engine `mediapipe` and its defaults, 640×360, one face. Times include the start
of all processes. One job runs on one core, several on all cores. Efficiency is the rate of all jobs
divided by their number and by the rate of one job."""
