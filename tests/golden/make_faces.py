#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Records what MediaPipe Tasks makes of drawn faces, for
crates/facetrack/tests/engines/mediapipe.rs.

    python3 -m pip install mediapipe==0.10.21
    python3 tests/golden/make_faces.py FACE_LANDMARKER_TASK

Writes faces.json (the scenes: what to draw when, and how many faces were found) and faces.bin (for each face found, in
order: 478 landmarks x, y, z in px, 52 blendshapes, the 4x4 transformation matrix row by row; f32 little endian).
The drawing is that of drawing.py."""

import json
import sys
from pathlib import Path

import mediapipe as mp
import numpy as np
from drawing import at, draw
from mediapipe.tasks.python import BaseOptions, vision

OUT = Path(__file__).parent


def moving(i):
    return {"x": 140 + 5 * i, "y": 120 + (i % 3), "size": 60 + i, "half_roll": 0.03 * i - 0.15, "jaw": 0.1 * (i % 8)}


def video(fps, frames):
    return [{"t_ms": round(1000 * i / fps), "faces": faces} for i, faces in enumerate(frames)]


SCENES = [
    {
        "name": "one face that goes and comes back",
        "width": 320,
        "height": 240,
        "running_mode": "video",
        "max_faces": 1,
        "frames": video(24, [[] if i in (5, 6) else [moving(i)] for i in range(10)]),
    },
    {
        "name": "two faces of three",
        "width": 400,
        "height": 200,
        "running_mode": "video",
        "max_faces": 3,
        "frames": video(25, [[at(100 + 4 * i, 100, 50), at(300 - 4 * i, 95, 55, 0.1)] for i in range(4)]),
    },
    {
        "name": "stills",
        "width": 360,
        "height": 300,
        "running_mode": "image",
        "max_faces": 4,
        "frames": [
            {"t_ms": 0, "faces": [at(180, 150, 90, 0.35)]},
            {"t_ms": 0, "faces": [at(90, 120, 45, -0.2, 0.7), at(260, 180, 60, 0.0, 0.0, 0.9)]},
            {"t_ms": 0, "faces": []},
        ],
    },
]


def landmarker(scene, bundle):
    is_video = scene["running_mode"] == "video"
    options = vision.FaceLandmarkerOptions(
        base_options=BaseOptions(model_asset_path=bundle),
        running_mode=vision.RunningMode.VIDEO if is_video else vision.RunningMode.IMAGE,
        num_faces=scene["max_faces"],
        output_face_blendshapes=True,
        output_facial_transformation_matrixes=True,
    )
    task = vision.FaceLandmarker.create_from_options(options)
    return (lambda image, t: task.detect_for_video(image, t)) if is_video else (lambda image, _: task.detect(image))


def main():
    record = open(OUT / "faces.bin", "wb")
    for scene in SCENES:
        width, height = scene["width"], scene["height"]
        detect = landmarker(scene, sys.argv[1])
        for frame in scene["frames"]:
            pixels = draw(width, height, frame["faces"])
            result = detect(mp.Image(image_format=mp.ImageFormat.SRGB, data=pixels), frame["t_ms"])
            frame["found"] = len(result.face_landmarks)
            frame["pixel_sum"] = int(pixels.astype(np.int64).sum())
            faces = zip(result.face_landmarks, result.face_blendshapes, result.facial_transformation_matrixes)
            for landmarks, blendshapes, matrix in faces:
                points = [[p.x * width, p.y * height, p.z * width] for p in landmarks]
                for values in (points, [b.score for b in blendshapes], matrix):
                    np.asarray(values, "<f4").tofile(record)
        print(scene["name"], [frame["found"] for frame in scene["frames"]])
    (OUT / "faces.json").write_text(json.dumps(SCENES, indent=1) + "\n")


if __name__ == "__main__":
    main()
