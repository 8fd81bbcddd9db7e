#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Records what OpenSeeFace's tracker.py makes of invented landmarks, for the tests beside its engine.

    python3 -m pip install opencv-python-headless==4.12.0.88 numpy==2.2.6
    git clone https://github.com/emilianavt/OpenSeeFace && git -C OpenSeeFace checkout dee5bb76
    python3 tests/golden/make_openseeface_fit.py OpenSeeFace

Writes openseeface_fit.json:
rotations: vectors with their matrices and derivatives (cv2.Rodrigues), quaternions (matrix_to_quaternion) and angles
    (cv2.RQDecomp3x3).
sequences: frames of one face from its first sight on, as Tracker.estimate_depth and FaceInfo.adjust_3d see them: landmarks
    and pupils as x and y; pose (0 once it was given up), error and points before and after they are normalised; what the
    features are made of.
features: sequences of measures and what Feature makes of them. With a limit, the time in seconds is the number of the
    measure.

No network runs; what tracker.py imports for them is replaced by nothing."""

import json
import math
import sys
from pathlib import Path
from unittest.mock import MagicMock

import cv2
import numpy as np

NAMES = [
    *("eye_l", "eye_r", "eyebrow_steepness_l", "eyebrow_updown_l", "eyebrow_quirk_l"),
    *("eyebrow_steepness_r", "eyebrow_updown_r", "eyebrow_quirk_r", "mouth_corner_updown_l", "mouth_corner_inout_l"),
    *("mouth_corner_updown_r", "mouth_corner_inout_r", "mouth_open", "mouth_wide"),
]


def numbers(array, digits=6):
    return np.asarray(array, np.float64).round(digits).tolist()


def significant(array):
    return [float(f"{value:.9g}") for value in np.asarray(array, np.float64).ravel()]


def rotations(tracker):
    half = math.pi / math.sqrt(2)
    vectors = [
        *([0, 0, 0], [1e-17, -2e-17, 1e-17], [1e-6, 2e-6, -1e-6], [0.1, -0.2, 0.3], [-2.34, -2.41, -0.04]),
        *([1.2, 0, 0], [0, -1.2, 0], [0, 0, 2.2], [0, 1.9, 0], [2.8, 0.1, -0.2], [0.1, 2.9, 0.2], [0.2, -0.1, 2.9]),
        *([half, 0, half], [math.pi, 0, 0], [0, math.pi, 0], [0, 0, math.pi], [-half, half, 0], [4, 1, -2]),
    ]
    cases = []
    for vector in vectors:
        matrix, derivatives = cv2.Rodrigues(np.array(vector, np.float64))
        cases.append(
            {
                "vector": vector,
                "matrix": numbers(matrix, 12),
                "derivatives": numbers(derivatives, 12),
                "quaternion": numbers(tracker.matrix_to_quaternion(matrix)),
                "euler": numbers(cv2.RQDecomp3x3(matrix)[0]),
            }
        )
    return cases


class Measures:
    """Stands in for a feature and keeps what it is made of."""

    def __init__(self):
        self.seen = 0.0

    def update(self, measure, now):
        self.seen = float(measure)
        return 0.0


def measures(extractor, points):
    for name in NAMES:
        setattr(extractor, name, Measures())
    extractor.update(points[:, 0:2].copy())
    return significant([getattr(extractor, name).seen for name in NAMES])


def seen_by(camera, face, rotation, translation):
    """Places of points as x and y, px."""
    rows_columns = cv2.projectPoints(face, np.array(rotation), np.array(translation), camera, None)[0][:, 0]
    return rows_columns[:, ::-1]


def sequence(tracker, name, size, poses, seed):
    rng = np.random.default_rng(seed)
    watcher = tracker.Tracker(*size, model_type=0, max_feature_updates=900, static_model=True, silent=True)
    info, frames = watcher.face_info[0], []
    for rotation, translation in poses:
        face = watcher.face_3d.astype(np.float64) + rng.normal(0, 0.01, (70, 3))
        places = np.float32(numbers(seen_by(watcher.camera.astype(np.float64), face[:68], rotation, translation), 3))
        landmarks = np.column_stack([places[:66, ::-1], np.ones(66)]).astype(np.float64)
        pupils = [[1.0, y, x, 0.9] for x, y in places[66:].astype(np.float64)]
        info.update((0.9, (landmarks, pupils)), None, len(frames))
        results = watcher.estimate_depth(info)
        info.success, info.quaternion, info.euler, info.pnp_error, info.pts_3d, info.lms = results
        frame = {
            "places": numbers(places, 3),
            "rotation": significant(np.zeros(3) if info.rotation is None else info.rotation),
            "translation": significant(info.translation),
            "quaternion": numbers(info.quaternion),
            "euler": numbers(info.euler, 4),
            "error": float(f"{info.pnp_error:.7g}"),
            "points": numbers(info.pts_3d, 5),
        }
        if info.pnp_error <= 300:
            frame["normalized"] = numbers(info.normalize_pts3d(info.pts_3d.copy()), 5)
            frame["measures"] = measures(info.features, np.array(frame["normalized"], np.float32))
        frames.append(frame)
    print(f"{name}: errors {[frame['error'] for frame in frames]}")
    return {"name": name, "width": size[0], "height": size[1], "frames": frames}


def sequences(tracker):
    near, far = [-2.34, -2.41, -0.04], [-2.2, -2.25, -0.56]
    return [
        sequence(tracker, "converges at once", (640, 360), [(near, [0.77, -0.84, -4.7]), (far, [0.8, -0.8, -4.5])], 0),
        sequence(tracker, "gets stuck", (640, 360), [([-2.64, -2.52, 0.07], [0.58, -1.38, -3.58])] * 4, 1),
        sequence(tracker, "another camera", (1024, 512), [([-2.65, -2.79, -0.1], [1.18, -2.49, -4.76])] * 7, 2),
    ]


def feature(tracker, name, values, threshold, limit=0):
    watched = tracker.Feature(threshold=threshold, max_feature_updates=limit)
    values = np.float32(numbers(values, 4))
    results = [float(watched.update(value, now)) for now, value in enumerate(values)]
    return {
        "name": name,
        "threshold": threshold,
        "limit": limit,
        "measures": numbers(values, 4),
        "values": numbers(results),
    }


def features(tracker):
    rng = np.random.default_rng(7)
    wave = 0.5 + 0.2 * np.sin(np.arange(300) / 9) + rng.normal(0, 0.02, 300)
    return [
        feature(tracker, "both ends", wave, 0.15),
        feature(tracker, "learned for a while", wave, 0.15, 40),
        feature(tracker, "never far enough", 0.5 + 0.01 * np.sin(np.arange(40)), 0.15),
        feature(tracker, "the upper end comes second", [0.5, 0.5, 0.9, 0.5, 0.2, 0.9, 0.5, 1.0, 0.6, 0.1, 0.4], 0.15),
        feature(tracker, "below 0", -wave[:80], 0.05),
        feature(tracker, "nothing at all", [0.0, 0.0, -0.1, 0.1, 0.0], 0.02),
    ]


def main():
    for module in ("onnxruntime", "retinaface"):
        sys.modules[module] = MagicMock()
    sys.path.insert(0, sys.argv[1])
    import tracker

    golden = {"rotations": rotations(tracker), "sequences": sequences(tracker), "features": features(tracker)}
    parts = []
    for key, cases in golden.items():
        lines = ",\n".join(json.dumps(case) for case in cases)
        parts.append(f'"{key}": [\n{lines}\n]')
    Path(__file__).with_name("openseeface_fit.json").write_text("{" + ",\n".join(parts) + "}\n")


if __name__ == "__main__":
    main()
