#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Records what OpenCV's FaceDetectorYN makes of drawn faces, for
crates/facetrack/tests/engines/opencv_yunet.rs.

    python3 -m pip install opencv-python-headless==4.12.0.88
    python3 tests/golden/make_yunet.py FACE_DETECTION_YUNET_2023MAR_ONNX

Writes yunet.json: what to draw, and what was found in it, best first: box (left, top, width, height), five key points
and score. Scenes with a max_width were reduced by cv2.resize before, and what was found scaled back. The drawing is that
of drawing.py."""

import json
import sys
from pathlib import Path

import cv2
import numpy as np
from drawing import at, draw

TOP_K = 5000


def scene(name, width, height, faces, threshold=0.7, nms=0.3, max_width=0):
    return {
        "name": name,
        "width": width,
        "height": height,
        "max_width": max_width,
        "threshold": threshold,
        "nms": nms,
        "faces": faces,
    }


CROWD = [
    at(40 + 62 * column, 50 + 75 * row, 9 + 3 * row + column, 0.07 * (column - 3), 0.15 * column, 0.2 * row)
    for row in range(4)
    for column in range(7)
]

SCENES = [
    scene("one face", 320, 256, [at(150, 120, 60)]),
    scene("two faces, sides that are padded", 401, 203, [at(100, 100, 50), at(300, 95, 55, 0.1, 0.6)]),
    scene("a crowd", 463, 341, CROWD),
    scene("a crowd and every doubt", 463, 341, CROWD, threshold=0.05),
    scene("a crowd that may overlap", 463, 341, CROWD, threshold=0.3, nms=0.7),
    scene("a face at the border, a large and a small one", 640, 480, [at(8, 200, 70), at(330, 230, 160, -0.1), at(590, 60, 14)]),
    scene("turned faces", 360, 300, [at(90, 130, 60, 0.5), at(260, 160, 65, -0.6)], threshold=0.3),
    scene("no face", 333, 77, [], threshold=0.3),
    # At 32 px and less OpenCV's convolutions leave the definition of ONNX, which its reference evaluator and ONNX Runtime
    # follow.
    scene("a small frame", 33, 40, [at(17, 18, 11)], threshold=0.1),
    scene("halved", 640, 360, [at(200, 180, 90), at(470, 170, 70, 0.1)], max_width=320),
    scene("a third", 960, 540, [at(300, 260, 120), at(700, 270, 100, -0.1, 0.5)], max_width=320),
    scene("reduced by an odd ratio", 801, 457, [at(250, 220, 110), at(590, 230, 90, 0.15)], max_width=320),
    scene("never enlarged", 300, 240, [at(150, 120, 60)], max_width=640),
]


def detect(pixels, scene, model):
    height, width = pixels.shape[:2]
    image = pixels[:, :, ::-1]
    size = (width, height)
    if 0 < scene["max_width"] < width:
        size = (scene["max_width"], max(1, round(height * scene["max_width"] / width)))
        image = cv2.resize(image, size, interpolation=cv2.INTER_LINEAR)
    detector = cv2.FaceDetectorYN.create(model, "", size, scene["threshold"], scene["nms"], TOP_K)
    found = detector.detect(np.ascontiguousarray(image))[1]
    scale = [width / size[0], height / size[1]]
    return [] if found is None else [face(numbers, scale) for numbers in found]


def face(numbers, scale):
    """A face as OpenCV reports it: left, top, width, height, x and y of the key points, score."""
    pairs = (numbers[:14].reshape(7, 2) * scale).astype(np.float64).round(4).tolist()
    return {"bbox": pairs[0] + pairs[1], "landmarks": pairs[2:], "score": round(float(numbers[14]), 6)}


def main():
    for scene in SCENES:
        pixels = draw(scene["width"], scene["height"], scene["faces"])
        scene["pixel_sum"] = int(pixels.astype(np.int64).sum())
        scene["found"] = detect(pixels, scene, sys.argv[1])
        print(f"{scene['name']}: {len(scene['found'])} of {len(scene['faces'])}")
    lines = ",\n".join(json.dumps(scene) for scene in SCENES)
    (Path(__file__).parent / "yunet.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
