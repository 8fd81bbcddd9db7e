#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Speed and memory of the engine `openseeface`, file to JSON, against OpenSeeFace itself.

How the race is run is told in `race.py`. `tracker.py` is OpenSeeFace's tracker behind OpenCV's decoder and nothing else;
`facetracker.py` is its program, which also sends each frame's packet. Both run with one thread and one landmark model.

OpenSeeFace is no package: `--openseeface` is a checkout of emilianavt/OpenSeeFace at dee5bb76. Run it through `make bench
OPENSEEFACE=<checkout>`, which sets the environment that GStreamer needs.
"""

import re
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

REQUIREMENTS = ("opencv-python-headless==4.12.0.88", "onnxruntime==1.31.1", "pillow==11.3.0")

# Frames of the two clips: far enough apart for the difference to mean something.
FRAMES = (150, 900)

# Destination of facetracker.py's packets: the discard port, where no program listens.
PORT = 9


def contestants(args, python: Path, track: Path) -> list[Contestant]:
    def tracker(clip: Clip) -> list[str]:
        script = ROOT / "benches" / "openseeface_reference.py"
        return [str(part) for part in (python, script, args.openseeface, args.model, clip.path)]

    def facetracker(clip: Clip) -> list[str]:
        program = args.openseeface / "facetracker.py"
        options = f"--model {args.model} --port {PORT} --max-threads 1"
        return [str(part) for part in (python, program, "--capture", clip.path, *options.split())]

    def seconds_in_facetracker(printed: str) -> float:
        seconds = float(re.search(r"Tracking time: ([\d.]+) s", printed)[1])
        return 1000 * seconds / int(re.search(r"Frames: (\d+)", printed)[1])

    return [
        facetrack(f"engine=openseeface landmark-model={args.model}", track),
        Contestant("tracker.py", tracker, lambda printed: float(printed.split()[-1])),
        Contestant("facetracker.py", facetracker, seconds_in_facetracker),
    ]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--openseeface", type=Path, required=True, help="checkout of OpenSeeFace")
    arguments.add_argument("--model", type=int, default=0, help="landmark model, -3…4 (0)")
    args = arguments.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    python = environment_with("openseeface", *REQUIREMENTS)
    if not python:
        sys.exit("there is nothing to race against")
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        track = Path(folder) / "track.json"
        for width, height in SIZES:
            title = f"openseeface, model {args.model}, {width}×{height}"
            clips = [prepare(args.clip, width, height, frames) for frames in FRAMES]
            print(f"{title}, {' and '.join(map(str, FRAMES))} frames:", flush=True)
            results = measure(clips, contestants(args, python, track), track, args)
            tables += [table(title, results), engine_table(title, results)]
    print("\n" + "\n\n".join(tables))


if __name__ == "__main__":
    main()
