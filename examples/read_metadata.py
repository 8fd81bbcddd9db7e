#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Prints what `facetrack` measures in a video: `eval "$(make -s env)"; examples/read_metadata.py video.mp4`."""

import sys
from pathlib import Path

# The module's folder in a checkout.
sys.path.append(str(Path(__file__).resolve().parents[1] / "python"))

try:
    import facetrack.metadata
    import gi

    gi.require_version("GstApp", "1.0")
    from gi.repository import Gst, GstApp  # noqa: F401
except (ImportError, ValueError) as error:
    sys.exit(str(error))


def describe(face: facetrack.Face) -> str:
    x, y, width, height = face.box
    line = f"  face {face.id} at {x + width / 2:.1f}, {y + height / 2:.1f}"
    if face.landmarks is not None:
        line += f", {len(face.landmarks)} landmarks"
    if face.key_points is not None:
        line += f", {len(face.key_points)} key points"
    if face.pose is not None:
        line += f", yaw {face.pose.yaw:.1f}°"
    if "jawOpen" in face.blendshapes:
        line += f", jawOpen {face.blendshapes['jawOpen']:.3f}"
    if face.age is not None:
        line += f", {face.gender}, {face.age:.0f} years"
    if isinstance(face.morphable, facetrack.MorphableFit):
        line += f", happiness {face.morphable.expression['happiness']:.3f}"
    return line


def show(buffer: Gst.Buffer) -> None:
    record = facetrack.read(buffer)
    if record is None:
        return
    print(f"{buffer.pts / Gst.SECOND:.3f} s {record.status}")
    for face in record.faces:
        print(describe(face))


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
