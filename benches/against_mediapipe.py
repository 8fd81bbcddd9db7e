#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Speed and memory of the whole pipeline, file to JSON, against MediaPipe in Python.

How the race is run is told in `race.py`. MediaPipe's side decodes with OpenCV and calls `detect_for_video`; it writes no
JSON.

Run it through `make bench`, which sets the environment that GStreamer needs.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from race import CACHE, OURS, ROOT, SIZES, Clip, Contestant, environment_with, measure, parser, prepare, table

MEDIAPIPE = ("0.10.21", "1.2.2")
# Frames of the two clips: far enough apart for the difference to mean something.
SHORT, LONG = 150, 900


def contestants(pythons: dict[str, Path], model: Path, track: Path) -> list[Contestant]:
    def ours(clip: Clip) -> list[str]:
        pipeline = (
            f"filesrc location={clip.path} ! decodebin ! facetrack max-faces=1 "
            f"! trackjsonsink location={track} overwrite=true"
        )
        return ["gst-launch-1.0", "-q", *pipeline.split()]

    def theirs(python: Path) -> Callable[[Clip], list[str]]:
        script = ROOT / "benches" / "mediapipe_reference.py"
        return lambda clip: [str(python), str(script), str(clip.path), str(model)]

    return [
        Contestant(OURS, ours),
        *(Contestant(f"MediaPipe {version}", theirs(python)) for version, python in pythons.items()),
    ]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--model", type=Path, required=True, help="face_landmarker.task, for MediaPipe's side")
    args = arguments.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    environments = {version: environment_with(f"mediapipe-{version}", f"mediapipe=={version}") for version in MEDIAPIPE}
    pythons = {version: python for version, python in environments.items() if python}
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
