#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Prints what `facetrack` measures in a video: `eval "$(make -s env)"; examples/read_metadata.py video.mp4`."""

import sys

import gi
import numpy as np

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402,F401


def array(structure: Gst.Structure, field: str, *shape: int) -> np.ndarray:
    """A field's little-endian 32-bit floats. The bindings copy them once, out of the GBytes; numpy looks at that copy."""
    return np.frombuffer(structure.get_value(field).get_data(), "<f4").reshape(*shape)


def named(structure: Gst.Structure, names: str, values: str) -> dict[str, float]:
    """Values by the names that another field has for them, separated by commas."""
    return dict(zip(structure.get_value(names).split(","), array(structure, values, -1)))


def yaw(face: Gst.Structure) -> float:
    """How far a head is turned to the right of the picture, degrees."""
    pose = array(face, "pose", 4, 4)
    return np.degrees(np.arctan2(pose[0, 2], pose[2, 2]))


def show(buffer: Gst.Buffer) -> None:
    meta = buffer.get_custom_meta("FaceTrackMeta")
    if meta is None:
        return
    record = meta.get_structure()
    # Coordinates are fractions of the frame that was analysed, z of its width.
    size = np.array([record.get_value("width"), record.get_value("height")])
    print(f"{buffer.pts / Gst.SECOND:.3f} s {record.get_value('status')}")
    for index in range(record.get_value("faces")):
        face = record.get_value(f"face-{index}")
        corner = np.array([face.get_value("x"), face.get_value("y")])
        extent = np.array([face.get_value("width"), face.get_value("height")])
        x, y = (corner + extent / 2) * size
        line = f"  face {face.get_value('id')} at {x:.1f}, {y:.1f}"
        if face.has_field("landmarks"):
            line += f", {len(array(face, 'landmarks', -1, 3))} landmarks"
        if face.has_field("key-points"):
            line += f", {len(array(face, 'key-points', -1, 2))} key points"
        if face.has_field("pose"):
            line += f", yaw {yaw(face):.1f}°"
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
        "filesrc name=source ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack"
        " ! appsink name=sink sync=false"
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
