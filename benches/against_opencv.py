#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Speed and memory of the OpenCV engines, file to JSON, against their originals in Python.

How the race is run is told in `race.py`. The originals' side decodes with OpenCV, runs with one thread, and writes no
JSON; it is `cv2.CascadeClassifier`, `cv2.FaceDetectorYN`, and the latter with MediaPipe's landmark and blendshape networks
run by LiteRT. Both sides look at frames of full size.

Run it through `make bench`, which sets the environment that GStreamer needs.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from race import (
    CACHE,
    ROOT,
    SIZES,
    Clip,
    Contestant,
    engine_table,
    environment_with,
    facetrack,
    measure,
    parser,
    prepare,
    table,
)

REQUIREMENTS = ("opencv-python-headless==4.12.0.88", "ai-edge-litert==2.3.0")


@dataclass(frozen=True)
class Race:
    """An engine against its original."""

    engine: str
    options: str
    original: str
    models: tuple[Path, ...]
    # Frames of the two clips: far enough apart for the difference to mean something.
    frames: tuple[int, int]


def races(args) -> list[Race]:
    full_size = "detect-max-width=0"
    return [
        Race("opencv-yunet", full_size, "cv2.FaceDetectorYN", (args.yunet,), (100, 600)),
        Race("opencv-haar", "", "cv2.CascadeClassifier", (args.cascade,), (30, 150)),
        Race(
            "opencv-yunet-pyfeat",
            full_size,
            "cv2.FaceDetectorYN + MediaPipe's networks",
            (args.yunet, args.bundle),
            (100, 600),
        ),
    ]


def contestants(race: Race, python: Path, track: Path) -> list[Contestant]:
    def theirs(clip: Clip) -> list[str]:
        script = ROOT / "benches" / "opencv_reference.py"
        return [str(part) for part in (python, script, race.engine, clip.path, *race.models)]

    return [
        facetrack(f"engine={race.engine} {race.options}", track),
        Contestant(race.original, theirs, lambda printed: float(printed.split()[-1])),
    ]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--yunet", type=Path, required=True, help="face_detection_yunet_2023mar.onnx")
    arguments.add_argument("--cascade", type=Path, required=True, help="haarcascade_frontalface_default.xml")
    arguments.add_argument("--bundle", type=Path, required=True, help="face_landmarker.task")
    args = arguments.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    python = environment_with("opencv-4.12.0", *REQUIREMENTS)
    if not python:
        sys.exit("there is nothing to race against")
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        track = Path(folder) / "track.json"
        for race in races(args):
            for width, height in SIZES:
                title = f"{race.engine}, {width}×{height}"
                clips = [prepare(args.clip, width, height, frames) for frames in race.frames]
                print(f"{title}, {' and '.join(map(str, race.frames))} frames:", flush=True)
                results = measure(clips, contestants(race, python, track), track, args)
                tables += [table(title, results), engine_table(title, results)]
    print("\n" + "\n\n".join(tables))


if __name__ == "__main__":
    main()
