#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Speed of the engine `eos`: its fit against eos-py's on the same landmarks, and the whole engine, file to JSON.

The landmarks are those that the engine measures in the sample clip. Both sides fit each face by itself, in processes that
are pinned to one core and take turns; `follow` is our fit as the engine runs it by default, from frame to frame. How the
whole engine is timed is told in `race.py`; eos-py finds no faces, so nobody races against it there.

Building eos-py takes a C++ compiler, CMake and Python's headers; where it can't be built, the engine is timed all the
same. Run it through `make bench`, which sets the environment that GStreamer needs.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from race import CACHE, ROOT, SIZES, engine_table, environment_with, facetrack, measure, parser, prepare, run_once, table

REQUIREMENTS = ("eos-py==1.5.0", "numpy==2.2.6")

# Frames of the two clips: far enough apart for the difference to mean something.
FRAMES = (150, 900)

OURS = ("fit", "follow")


def our_fit(mode: str, landmarks: Path) -> list[str]:
    bench = "cargo bench --locked --quiet --bench eos_fit --manifest-path".split()
    return [*bench, str(ROOT / "Cargo.toml"), "--", mode, str(landmarks)]


def fits(python: Path, args, landmarks: Path) -> dict[str, float]:
    """Median milliseconds of a fit, by who made it; eos-py's is the first."""
    script = ROOT / "benches" / "eos_reference.py"
    commands = {"eos-py": [str(part) for part in (python, script, landmarks, args.models)]}
    commands |= {f"facetrack, {mode}": our_fit(mode, landmarks) for mode in OURS}
    times = {name: [] for name in commands}
    for turn in range(args.repeats):
        print(f"  round {turn + 1} of {args.repeats} …", flush=True)
        counts = set()
        for name, command in commands.items():
            _, _, printed = run_once(command, args.core)
            count, milliseconds = printed.split()[-2:]
            counts.add(count)
            times[name].append(float(milliseconds))
        if len(counts) > 1:
            sys.exit(f"not everybody fitted every face: {counts}")
    return {name: statistics.median(taken) for name, taken in times.items()}


def fit_table(times: dict[str, float]) -> str:
    original = times["eos-py"]
    lines = ["### Only the fit, one core, medians", "| | ms a face | speed-up |", "|---|--:|--:|"]
    lines += [f"| {name} | {taken:.2f} | {original / taken:.1f}× |" for name, taken in times.items()]
    return "\n".join(lines)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--models", type=Path, required=True, help="folder with the files of eos")
    args = arguments.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    python = environment_with("eos", *REQUIREMENTS)
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        if python:
            landmarks = Path(folder) / "landmarks.json"
            subprocess.run(our_fit("landmarks", landmarks), check=True)
            print("the fit:", flush=True)
            tables.append(fit_table(fits(python, args, landmarks)))
        track = Path(folder) / "track.json"
        for width, height in SIZES:
            title = f"eos, {width}×{height}"
            clips = [prepare(args.clip, width, height, frames) for frames in FRAMES]
            print(f"{title}, {' and '.join(map(str, FRAMES))} frames:", flush=True)
            results = measure(clips, [facetrack("engine=eos", track)], track, args)
            tables += [table(title, results), engine_table(title, results)]
    print("\n" + "\n\n".join(tables))


if __name__ == "__main__":
    main()
