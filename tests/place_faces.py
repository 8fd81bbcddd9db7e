# SPDX-License-Identifier: MPL-2.0
"""Prints the box of the first face in pixels of the frame at the end of a launch line."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import facetrack.metadata  # noqa: E402
import gi  # noqa: E402

gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402,F401


def main(line):
    Gst.init(None)
    pipeline = Gst.parse_launch(f"{line} ! appsink name=sink sync=false")
    pipeline.set_state(Gst.State.PLAYING)
    sample = pipeline.get_by_name("sink").pull_sample()
    try:
        print(*(f"{side:.4f}" for side in facetrack.faces(sample.get_buffer(), sample.get_caps())[0].box))
    except facetrack.Stale:
        print("stale")
    pipeline.set_state(Gst.State.NULL)


main(sys.argv[1])
