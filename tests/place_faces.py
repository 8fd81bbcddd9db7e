# SPDX-License-Identifier: MPL-2.0
"""Prints the box of the first face in pixels of the frame at the end of a launch line, with GStreamer's own bindings alone."""

import sys
from fractions import Fraction
from math import floor

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import Gst, GstVideo  # noqa: E402


def pixel_aspect_ratio(record):
    known, across, up = record.get_fraction("pixel-aspect-ratio")
    return Fraction(across, up) if known else Fraction(1)


def place(buffer, frame):
    """Left, top, width and height of the analysed picture in the frame, where scaling adds borders; None where there is no telling."""
    record = buffer.get_custom_meta("FaceTrackMeta").get_structure()
    witness = buffer.get_custom_meta("FaceTrackFrame")
    cropped = buffer.get_meta(GstVideo.video_crop_meta_api_get_type())
    if witness is None or cropped is not None:
        return None
    width, height = frame.width, frame.height
    analysed = record.get_value("width"), record.get_value("height")
    if not witness.get_structure().get_value("scaled"):
        return (0, 0, width, height) if (width, height) == analysed else None
    shape = Fraction(*analysed) * pixel_aspect_ratio(record) / Fraction(frame.par_n, frame.par_d)
    inner_width, inner_height = width, floor(width / shape)
    if inner_height > height:
        inner_width, inner_height = floor(height * shape), height
    return (width - inner_width) // 2, (height - inner_height) // 2, inner_width, inner_height


def main(line):
    Gst.init(None)
    pipeline = Gst.parse_launch(f"{line} ! appsink name=sink sync=false")
    pipeline.set_state(Gst.State.PLAYING)
    sample = pipeline.get_by_name("sink").emit("pull-sample")
    buffer = sample.get_buffer()
    placed = place(buffer, GstVideo.VideoInfo.new_from_caps(sample.get_caps()))
    if placed is None:
        print("stale")
    else:
        left, top, width, height = placed
        record = buffer.get_custom_meta("FaceTrackMeta").get_structure()
        face = record.get_value("face-0")
        x, y = face.get_value("x") * width + left, face.get_value("y") * height + top
        print(f"{x:.4f} {y:.4f} {face.get_value('width') * width:.4f} {face.get_value('height') * height:.4f}")
    pipeline.set_state(Gst.State.NULL)


main(sys.argv[1])
