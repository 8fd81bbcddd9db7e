# SPDX-License-Identifier: MPL-2.0
"""Speeds that py-feat's documentation states for other tools, and ours on the same clips."""

import os
import tempfile
from pathlib import Path

from race import ONE_CORE, Clip, facetrack, table, take_turns

SOURCE = "https://github.com/cosanlab/py-feat/tree/5d235ef6/docs/benchmarks"

SHORT, LONG = "single_face.mp4", "WolfgangLanger_Pexels.mp4"

# Tool, device, clip, frames per second, and the file of the source.
PUBLISHED = (
    ("py-feat, Detectorv2", "RTX 3090", LONG, 38.4, "competitors/speed_3090_batch1.json"),
    ("OpenFace 3.0", "RTX 3090", LONG, 18.3, "competitors/speed_3090_batch1.json"),
    ("LibreFace", "RTX 3090", LONG, 4.7, "competitors/speed_3090_batch1.json"),
    ("OpenFace 3.0", "RTX 3090", SHORT, 17.5, "competitors/openface3_speed.json, withdrawn"),
    ("OpenFace 3.0", "RTX PRO 6000 Blackwell", SHORT, 18.7, "competitors/openface3_speed.json, withdrawn"),
    ("LibreFace", "CPU", SHORT, 2.7, "competitors/libreface_speed.json, withdrawn"),
)

COLUMNS = ["", "device", "clip", "source", "frames per second"]

OURS = ("mediapipe", "opencv-yunet-pyfeat")


def clips(args) -> dict[str, Path]:
    found = {SHORT: args.clip}
    reference = os.environ.get("FACETRACK_REFERENCE_DIR")
    if reference and (path := Path(reference) / "media" / f"pyfeat_{LONG}").exists():
        found[LONG] = path
    return found


def section(args) -> str:
    lines = [[tool, device, clip, source, f"{fps:.1f}"] for tool, device, clip, fps, source in PUBLISHED]
    found = clips(args)
    with tempfile.TemporaryDirectory() as folder:
        track = Path(folder) / "track.json"
        for name, path in found.items():
            programs = [facetrack(engine, Clip(path, 0), f"engine={engine} max-faces=1", track, ONE_CORE) for engine in OURS]
            for it in take_turns(programs, args.repeats):
                lines.append([f"facetrack, `{it.name}`", "one CPU core", name, "measured", f"{1000 / it.mean:.1f}"])
                print(f"  {lines[-1]}", flush=True)
    note = "" if LONG in found else f"\n\nNot measured: {LONG}, which is not in `$FACETRACK_REFERENCE_DIR/media`."
    return f"{INTRODUCTION}\n\n{table(COLUMNS, lines, texts=4)}{note}"


INTRODUCTION = f"""\
[py-feat's documentation]({SOURCE})
states speeds of other tools on the same clips, from decoding to action units. Action units are not
blendshapes, and the machines differ. py-feat has withdrawn its figures for `{SHORT}` as
unreliable. They are listed because there are no others for a CPU and for a Blackwell GPU."""
