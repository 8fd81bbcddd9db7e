# SPDX-License-Identifier: MPL-2.0
"""Keeps faces when their buffers and pipeline are gone, and reads buffers without faces."""

import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import facetrack.metadata  # noqa: E402
import gi  # noqa: E402

gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402,F401


def samples(line):
    pipeline = Gst.parse_launch(f"{line} ! appsink name=sink sync=false")
    pipeline.set_state(Gst.State.PLAYING)
    while sample := pipeline.get_by_name("sink").pull_sample():
        yield sample
    pipeline.set_state(Gst.State.NULL)


def main():
    Gst.init(None)
    source = "videotestsrc num-buffers=6 ! video/x-raw,width=640,height=360"
    scripted = 'facetrack engine=scripted script="face x=0.3 size=0.25; face x=0.7 size=0.25; landmarks"'
    kept = []
    for sample in samples(f"{source} ! {scripted}"):
        kept += facetrack.faces(sample.get_buffer())
    gc.collect()
    for face in kept:
        assert face.landmarks.shape == (478, 3) and face.landmarks.dtype == "float32"
        x, y, width, height = face.box
        # The box is the extent of the landmarks.
        assert abs(face.landmarks[:, 0].min() - x) < 0.01 and abs(face.landmarks[:, 1].max() - y - height) < 0.01
        assert 0 <= face.blendshapes["jawOpen"] <= 1 and width > 0
        assert (face.pose.yaw, face.pose.pitch, face.pose.roll) == (0, 0, 0)
        assert face.gaze is face.key_points is face.age is face.fit is face.morphable is None
        assert face.features == {}

    # With caps the positions are those in the frame at hand, which videoscale has put between borders.
    for sample in samples(f"{source} ! {scripted} ! videoscale ! video/x-raw,width=640,height=640,pixel-aspect-ratio=1/1"):
        buffer, caps = sample.get_buffer(), sample.get_caps()
        for here, there in zip(facetrack.faces(buffer, caps), facetrack.faces(buffer)):
            assert abs(here.landmarks - there.landmarks - [0, 140, 0]).max() < 0.01
        for here, there in zip(facetrack.faces(buffer, caps, add_borders=False), facetrack.faces(buffer)):
            assert abs(here.box.height / there.box.height - 640 / 360) < 0.001

    (record,) = {facetrack.read(sample.get_buffer()) for sample in samples(source)}
    assert record is None
    for sample in samples(source):
        assert facetrack.faces(sample.get_buffer()) == []
    for sample in samples(f'{source} ! facetrack engine=scripted script="face from=100"'):
        record = facetrack.read(sample.get_buffer())
        assert (record.status, record.engine, record.faces) == ("no-face", "scripted", [])
    print(f"{len(kept)} faces kept")


main()
