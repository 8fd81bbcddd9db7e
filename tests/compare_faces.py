# SPDX-License-Identifier: MPL-2.0
"""Compares what the module `facetrack` reads from buffers with what trackjsonsink writes of the same stream.

Arguments: a launch line that ends with an element that attaches faces, and the file to write. Prints how often each value
was there on both sides.
"""

import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import facetrack.metadata  # noqa: E402
import gi  # noqa: E402
import numpy as np  # noqa: E402

gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp  # noqa: E402,F401

# The JSON has three decimals of most numbers, rounded from 32-bit floats of at most some thousands of pixels.
ROUNDING = 0.0005 + 0.0001

seen = Counter()


def same(name, value, expected, tolerance=ROUNDING):
    """Both are absent, or both are there and agree."""
    if isinstance(value, dict):
        assert list(value) == list(expected or {}), f"{name}: {list(value)} {expected}"
        value, expected = list(value.values()) or None, list((expected or {}).values()) or None
    if value is None or expected is None:
        assert value is None and expected is None, f"{name}: {value} {expected}"
        return
    seen[name] += 1
    if isinstance(expected, str | bool):
        assert value == expected, f"{name}: {value} {expected}"
        return
    value, expected = np.array(value, "f8"), np.array(expected, "f8")
    # Without points a table has no columns in JSON.
    if expected.size or value.size:
        assert value.shape == expected.shape, f"{name}: {value.shape} {expected.shape}"
        worst = np.abs(value - expected).max()
        assert worst <= tolerance, f"{name} differs by {worst}"


def compare_fit(face, written):
    fit, expected = face.fit, written.get("fit")
    assert (fit is None) == (expected is None), f"fit: {fit} {expected}"
    for name in expected or ():
        same(f"fit.{name}", getattr(fit, name), expected[name])


def compare_morphable(face, written):
    fit, expected = face.morphable, written.get("eos_fit")
    assert (fit is None) == (expected is None), f"morphable: {fit} {expected}"
    if isinstance(fit, facetrack.FailedFit):
        same("morphable.failure", fit.reason, expected["failure"])
    elif fit is not None:
        same("morphable.shape", fit.shape, written["eos"]["shape_coeffs"])
        same("morphable.expression", fit.expression, dict(zip(expected["expressions"], written["eos"]["expression_coeffs"])))
        for name in ("rotation", "origin", "scale", "residual", "contour"):
            same(f"morphable.{name}", getattr(fit, name), expected[name])
        compare_mesh(fit)


def compare_mesh(fit):
    """The JSON has no mesh, but the outline consists of some of its vertices."""
    if fit.mesh is not None:
        seen["morphable.mesh"] += 1
        vertices = {tuple(vertex) for vertex in fit.mesh[:, :2].round(2).tolist()}
        assert all(tuple(vertex) in vertices for vertex in fit.contour.round(2).tolist())


def compare(face, written):
    same("box", face.box, written["box"])
    same("origin", face.origin, written["origin"])
    same("confidence", face.confidence or 0.0, written["confidence"])
    same("landmarks", face.landmarks, written.get("landmarks"))
    same("landmark_confidences", face.landmark_confidences, written.get("landmark_confidence"))
    same("key_points", face.key_points, written.get("key_points"))
    same("blendshapes", face.blendshapes, written["blendshapes"], 1e-7)
    same("blendshape_source", face.blendshape_source, written.get("blendshapes_source"))
    same("raw_blendshapes", face.raw_blendshapes, written.get("blendshapes_raw"), 1e-7)
    assert face.is_corrected == written.get("blendshapes_corrected", False)
    for name in ("matrix", "yaw", "pitch", "roll"):
        same(f"pose.{name}", face.pose and getattr(face.pose, name), written.get("pose", {}).get(name))
    for side in ("right", "left"):
        pupil = written["gaze"][side] if "gaze" in written else None
        same(f"gaze.{side}", face.gaze and getattr(face.gaze, side), pupil and [pupil["x"], pupil["y"], pupil["confidence"]])
    same("features", face.features, written.get("features"))
    same("age", face.age, written.get("age"))
    same("gender", face.gender, written.get("gender"))
    same("embedding", face.embedding, written.get("embedding"), 1e-7)
    points = face.landmarks if face.landmark_scheme == "insightface-106" else face.secondary_landmarks
    same("landmarks_106", None if points is None else points[:, :2], written.get("landmarks_106"))
    compare_fit(face, written)
    compare_morphable(face, written)


def main(line, path):
    Gst.init(None)
    pipeline = Gst.parse_launch(
        f"{line} ! tee name=t t. ! queue ! appsink name=sink sync=false "
        f"t. ! queue ! trackjsonsink name=json sync=false verbose=true location={path}"
    )
    sink = pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    records = []
    while sample := sink.pull_sample():
        records.append(facetrack.read(sample.get_buffer()))
    end = pipeline.get_bus().timed_pop_filtered(60 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    assert end.type == Gst.MessageType.EOS, end.parse_error()
    pipeline.set_state(Gst.State.NULL)

    track = json.loads(Path(path).read_text(encoding="utf-8"))
    frames = track["frames"]
    assert len(frames) == len(records) > 0, f"{len(frames)} {len(records)}"
    for frame, record in zip(frames, records):
        same("status", record.status, frame["status"])
        same("engine", record.engine, track["metadata"]["tracking_engine"])
        written = {face["id"]: face for face in frame["tracked_objects"]}
        assert {f"obj_{face.id}" for face in record.faces} == set(written)
        for face in record.faces:
            compare(face, written[f"obj_{face.id}"])
    for name, count in seen.items():
        print(name, count)


main(*sys.argv[1:])
