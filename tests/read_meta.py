# SPDX-License-Identifier: MPL-2.0
"""Prints a line for each frame of a launch line, as tests/elements/meta.rs expects it, with only GStreamer's own
bindings."""

import struct
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402


def floats(face, field):
    return [value for (value,) in struct.iter_unpack("<f", face.get_value(field).get_data())]


def describe(face, width, height):
    names = face.get_value("blendshape-names").split(",")
    blendshapes = dict(zip(names, floats(face, "blendshapes"), strict=True))
    xs, ys = floats(face, "landmarks")[0::3], floats(face, "landmarks")[1::3]
    spread = (max(xs) - min(xs)) * width
    return (
        f"face {face.get_value('id')} {face.get_value('origin')} box {face.get_value('width') * width:.3f}x"
        f"{face.get_value('height') * height:.3f} {face.get_value('landmark-scheme')} {len(xs)} landmarks over {spread:.3f} "
        f"from {abs(min(ys) - face.get_value('y')):.3f} {len(blendshapes)} blendshapes jawOpen {blendshapes['jawOpen']:.3f} "
        f"pose {floats(face, 'pose')[0]:.1f}"
    )


def main(line):
    Gst.init(None)
    pipeline = Gst.parse_launch(f"{line} ! appsink name=sink sync=false")
    sink = pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    while sample := sink.emit("pull-sample"):
        record = sample.get_buffer().get_custom_meta("FaceTrackMeta").get_structure()
        width, height = record.get_value("width"), record.get_value("height")
        faces = [record.get_value(f"face-{i}") for i in range(record.get_value("faces"))]
        print(
            f"version {record.get_value('version')} {width}x{height} {record.get_value('status')} "
            f"{record.get_value('engine')}",
            *(describe(face, width, height) for face in faces),
        )
    pipeline.set_state(Gst.State.NULL)


main(sys.argv[1])
