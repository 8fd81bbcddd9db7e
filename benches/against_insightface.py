#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Speed and memory of the engine `insightface` on the processor, file to JSON, against InsightFace itself.

How the race is run is told in `race.py`. Both sides run the same models of the pack with detection size 640: those that
find landmarks, and with them the embedding, the attributes, and both. The original's side decodes with OpenCV, runs with
one thread, and writes no JSON.

The weights are for non-commercial research only; `--pack` is a folder with them. Run it through `make bench`, which sets the
environment that GStreamer needs.
"""

import sys
import tempfile
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

# InsightFace is installed without dependencies: it requires an OpenCV with windows, which would replace this one.
INSIGHTFACE = ("insightface==2.1",)
REQUIREMENTS = (
    "onnxruntime==1.31.1",
    "opencv-python-headless==4.12.0.88",
    "numpy==2.2.6",
    "onnx>=1.13",
    "requests",
    "scikit-image",
    "scipy",
    "tqdm",
)

# Frames of the two clips: far enough apart for the difference to mean something.
FRAMES = (60, 300)

# The runs, and the options that make our engine run the same.
RACES = (
    ("landmarks", "detection,landmark_2d_106", ""),
    ("landmarks and embedding", "detection,landmark_2d_106,recognition", "embedding=true"),
    ("landmarks, age and gender", "detection,landmark_2d_106,genderage", ""),
    ("everything", "detection,landmark_2d_106,genderage,recognition", "embedding=true"),
)


def contestants(args, modules: str, options: str, python: Path, track: Path) -> list[Contestant]:
    def theirs(clip: Clip) -> list[str]:
        script = ROOT / "benches" / "insightface_reference.py"
        return [str(part) for part in (python, script, args.pack, modules, clip.path)]

    ours = f"engine=insightface device=auto gpu-fallback=true model={args.pack} allowed-modules={modules} {options}"
    return [
        facetrack(ours, track),
        Contestant("insightface", theirs, lambda printed: float(printed.split()[-1])),
    ]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--pack", type=Path, required=True, help="folder with a model pack")
    args = arguments.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    python = environment_with("insightface", *REQUIREMENTS, alone=INSIGHTFACE)
    if not python:
        sys.exit("there is nothing to race against")
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        track = Path(folder) / "track.json"
        for what, modules, options in RACES:
            if "genderage" in modules and not (args.pack / "genderage.onnx").exists():
                print(f"{what}: left out, since the pack has no genderage.onnx")
                continue
            for width, height in SIZES:
                title = f"insightface, {what}, {width}×{height}"
                clips = [prepare(args.clip, width, height, frames) for frames in FRAMES]
                print(f"{title}, {' and '.join(map(str, FRAMES))} frames:", flush=True)
                results = measure(clips, contestants(args, modules, options, python, track), track, args)
                tables += [table(title, results), engine_table(title, results)]
    print("\n" + "\n\n".join(tables))


if __name__ == "__main__":
    main()
