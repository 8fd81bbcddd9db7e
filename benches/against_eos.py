# SPDX-License-Identifier: MPL-2.0
"""Our fit of eos' model against eos-py's on the same landmarks.

The landmarks are those that the engine measures in the sample clip. Both sides fit each face by itself; `follow` is our fit
as the engine runs it by default, from frame to frame. eos-py finds no faces, so the whole engine has no original.

Building eos-py takes a C++ compiler, CMake and Python's headers, and ours takes cargo.
"""

import statistics
import tempfile
from pathlib import Path

from race import ALL_CORES, ONE_CORE, ROOT, Unavailable, environment_with, model, run_once, table

REQUIREMENTS = ("eos-py==1.5.0", "numpy==2.2.6")

OURS = ("fit", "follow")


def our_fit(mode: str, landmarks: Path) -> list[str]:
    bench = ["cargo", "bench", "--locked", "--quiet", "--bench", "eos_fit", "--manifest-path"]
    return [*bench, str(ROOT / "Cargo.toml"), "--", mode, str(landmarks)]


def section(args) -> str:
    models = model(args, "sfm_shape_3448.bin").parent
    python = environment_with("eos", *REQUIREMENTS)
    with tempfile.TemporaryDirectory() as folder:
        landmarks = Path(folder) / "landmarks.json"
        # This also builds the program.
        run_once(our_fit("landmarks", landmarks), ALL_CORES)
        script = ROOT / "benches" / "eos_reference.py"
        original = [str(part) for part in (python, script, landmarks, models)]
        commands = {"eos-py 1.5.0": original} | {f"facetrack, {mode}": our_fit(mode, landmarks) for mode in OURS}
        times: dict[str, list[float]] = {name: [] for name in commands}
        counts = set()
        for _ in range(args.repeats):
            for name, command in commands.items():
                count, milliseconds = run_once(command, ONE_CORE)[2].split()[-2:]
                counts.add(count)
                times[name].append(float(milliseconds))
    if len(counts) > 1:
        raise Unavailable(f"the programs fitted different numbers of faces: {counts}")
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    lines = [[name, f"{taken:.2f}", f"{medians['eos-py 1.5.0'] / taken:.1f}×"] for name, taken in medians.items()]
    return f"A fit of the 68 landmarks of a face, on one core.\n\n{table(['', 'ms per face', 'ratio'], lines)}"
