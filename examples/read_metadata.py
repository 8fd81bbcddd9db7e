#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Prints what `facetrack` measures in a video: `eval "$(make -s env)"; examples/read_metadata.py video.mp4`."""

import struct
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402,F401


def floats(value) -> list[float]:
    """Little-endian 32-bit floats of a GBytes."""
    data = value.get_data()
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def named(structure, names: str, values: str) -> dict[str, float]:
    """Values by the names that another field has for them, separated by commas."""
    return dict(zip(structure.get_value(names).split(","), floats(structure.get_value(values))))


def show(buffer: Gst.Buffer) -> None:
    meta = buffer.get_custom_meta("FaceTrackMeta")
    if meta is None:
        return
    record = meta.get_structure()
    width, height = record.get_value("width"), record.get_value("height")
    print(f"{buffer.pts / Gst.SECOND:.3f} s {record.get_value('status')}")
    for index in range(record.get_value("faces")):
        face = record.get_value(f"face-{index}")
        # Coordinates are fractions of the frame that was analysed.
        x = (face.get_value("x") + face.get_value("width") / 2) * width
        y = (face.get_value("y") + face.get_value("height") / 2) * height
        line = f"  face {face.get_value('id')} at {x:.1f}, {y:.1f}"
        if face.has_field("landmarks"):
            line += f", {len(floats(face.get_value('landmarks'))) // 3} landmarks"
        if face.has_field("key-points"):
            line += f", {len(floats(face.get_value('key-points'))) // 2} key points"
        if face.has_field("blendshapes"):
            blendshapes = named(face, "blendshape-names", "blendshapes")
            line += f", jawOpen {blendshapes.get('jawOpen', float('nan')):.3f}"
        if face.has_field("age"):
            line += f", {face.get_value('gender')}, {face.get_value('age'):.0f} years"
        fit = face.get_value("morphable")
        if fit is not None and fit.has_field("expression"):
            expression = named(fit, "expression-names", "expression")
            line += f", happiness {expression.get('happiness', float('nan')):.3f}"
        print(line)


# How long a frame is waited for before the bus is asked whether there is an error.
PATIENCE = 100 * Gst.MSECOND


def main(video: str) -> int:
    Gst.init(None)
    pipeline = Gst.parse_launch(
        "filesrc name=source ! decodebin ! facetrack ! appsink name=sink sync=false"
    )
    pipeline.get_by_name("source").set_property("location", video)
    sink = pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    bus = pipeline.get_bus()
    failure = None
    while not failure:
        if sample := sink.try_pull_sample(PATIENCE):
            show(sample.get_buffer())
        elif not (failure := bus.pop_filtered(Gst.MessageType.ERROR)) and sink.get_property("eos"):
            break
    pipeline.set_state(Gst.State.NULL)
    if failure:
        print(failure.parse_error().gerror.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: read_metadata.py <video file>")
    sys.exit(main(sys.argv[1]))
