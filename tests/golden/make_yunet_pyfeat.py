#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Records what cv2's YuNet and, on its faces, MediaPipe's networks in LiteRT make of drawn faces, for
crates/facetrack/tests/engines/opencv_yunet_pyfeat.rs.

    python3 -m pip install opencv-python-headless==4.11.0.86 ai-edge-litert numpy
    python3 tests/golden/make_yunet_pyfeat.py FACE_DETECTION_YUNET_2023MAR_ONNX FACE_LANDMARKER_TASK

Writes yunet_pyfeat.json (the pictures: what to draw, how many faces were found) and yunet_pyfeat.bin (for each face
found, best first: x, y, width, height, score, 5 key points, 478 landmarks x, y, 52 blendshapes; f32 little endian; px).
The drawing is that of drawing.py. The region of a face is that of
crates/facetrack/src/engine/opencv/yunet_mesh/region.rs; it is warped as MediaPipe's
image_to_tensor_converter_opencv.cc does it, and the landmarks go back as in
landmark_projection_calculator.cc."""

import json
import math
import re
import sys
import zipfile
from pathlib import Path

import cv2
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from drawing import at, draw

OUT = Path(__file__).parent
RUST = OUT.parent.parent / "crates/facetrack/src/engine"

# Of region.rs.
SIDE, DOWN, TURNED = 1.25, 0.07, 0.2

PICTURES = [
    {"name": "one face, rolled a little", "width": 360, "height": 300, "faces": [at(180, 150, 90, 0.1, 0.4)]},
    {"name": "two faces", "width": 400, "height": 240, "faces": [at(110, 110, 55, -0.12), at(290, 120, 65, 0.08, 0.8)]},
    {
        "name": "a face rolled so far that it takes a second look",
        "width": 360,
        "height": 360,
        "faces": [at(180, 180, 90, 0.5)],
    },
    {"name": "reduced for the detector", "width": 960, "height": 540, "faces": [at(400, 270, 150, 0.0, 0.2, 0.5)]},
    {"name": "nobody", "width": 320, "height": 240, "faces": []},
]


class Network:
    def __init__(self, bytes_):
        self.interpreter = Interpreter(model_content=bytes_)
        self.interpreter.allocate_tensors()

    def run(self, tensor):
        self.interpreter.set_tensor(self.interpreter.get_input_details()[0]["index"], tensor.astype(np.float32))
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(output["index"]).ravel() for output in self.interpreter.get_output_details()]


def region_around(box, points):
    (x, y, width, height), rotation = box, angle(points[0], points[1])
    longer = max(width, height)
    down = DOWN * longer * np.array([-math.sin(rotation), math.cos(rotation)])
    return np.array([x + width / 2, y + height / 2]) + down, SIDE * longer, rotation


def region_of(landmarks):
    low, high = landmarks.min(0), landmarks.max(0)
    return (low + high) / 2, (high - low).max() * 1.5, angle(landmarks[33], landmarks[263])


def angle(a, b):
    return math.atan2(b[1] - a[1], b[0] - a[0])


def landmarks_in(network, rgb, region):
    center, side, rotation = region
    across = np.array([math.cos(rotation), math.sin(rotation)]) * side
    down = np.array([-math.sin(rotation), math.cos(rotation)]) * side
    image_from_unit = np.column_stack([across, down, center - (across + down) / 2])
    image_from_tensor = image_from_unit @ np.diag([1 / 256, 1 / 256, 1])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    crop = cv2.warpAffine(rgb, image_from_tensor, (256, 256), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    outputs = network.run(crop[None] / 255)
    points = next(output for output in outputs if output.size == 478 * 3).reshape(478, 3)[:, :2]
    return points @ image_from_tensor[:, :2].T + image_from_tensor[:, 2]


def subset():
    source = (RUST / "mediapipe/blendshapes.rs").read_text()
    numbers = re.search(r"const SUBSET: \[usize; 146\] = \[(.*?)\];", source, re.S).group(1)
    return [int(number) for number in numbers.replace(",", " ").split()]


def main():
    indices = subset()
    detector = cv2.FaceDetectorYN.create(sys.argv[1], "", (320, 320), 0.7, 0.3, 5000)
    bundle = zipfile.ZipFile(sys.argv[2])
    landmark_network = Network(bundle.read("face_landmarks_detector.tflite"))
    blendshape_network = Network(bundle.read("face_blendshapes.tflite"))
    record = open(OUT / "yunet_pyfeat.bin", "wb")
    for picture in PICTURES:
        width, height = picture["width"], picture["height"]
        rgb = draw(width, height, picture["faces"])
        reduced = cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR)
        if width > 640:
            reduced = cv2.resize(reduced, (640, round(height * 640 / width)))
        detector.setInputSize(reduced.shape[1::-1])
        found = detector.detect(reduced)[1]
        found = [] if found is None else found
        picture["found"] = len(found)
        picture["pixel_sum"] = int(rgb.astype(np.int64).sum())
        for face in found:
            scale = [width / reduced.shape[1], height / reduced.shape[0]]
            face[:14] *= np.tile(scale, 7)
            region = region_around(face[:4], face[4:14].reshape(5, 2))
            landmarks = landmarks_in(landmark_network, rgb, region)
            straight = region_of(landmarks)
            looks = 1
            if math.cos(straight[2] - region[2]) < math.cos(TURNED):
                landmarks, looks = landmarks_in(landmark_network, rgb, straight), 2
            blendshapes = blendshape_network.run(landmarks[indices][None])[0]
            for values in (face[:4], face[14:], face[4:14], landmarks, blendshapes):
                np.asarray(values, "<f4").tofile(record)
            print(picture["name"], "score", face[14], "looks", looks)
    (OUT / "yunet_pyfeat.json").write_text(json.dumps(PICTURES, indent=1) + "\n")


if __name__ == "__main__":
    main()
