# SPDX-License-Identifier: MPL-2.0
"""Writes warp.json and warp.bin: what OpenCV's warpPerspective, called the way MediaPipe's
image_to_tensor_converter_opencv.cc calls it, makes of regions of a noise image.

python3 tests/golden/warp.py    (numpy and opencv-python; made with opencv-python 4.11.0)
"""

import json
import math
import pathlib

import cv2
import numpy

WIDTH, HEIGHT = 160, 120

# center x, center y, width, height, rotation, columns, rows, border
CASES = [
    ("whole frame, letterboxed", 80, 60, 160, 160, 0.0, 32, 32, "black"),
    ("ties between 32nds", 80.5, 60.25, 25, 25, 0.0, 64, 64, "replicate"),
    ("rotated", 70.3, 55.7, 61.2, 61.2, 0.3, 64, 64, "replicate"),
    ("rotated, not square", 90.125, 60.0, 100.0, 40.0, -2.2, 48, 40, "black"),
    ("over a corner, replicated", 12.0, 9.0, 60.0, 60.0, -1.1, 48, 48, "replicate"),
    ("over a corner, black", 150.0, 111.0, 60.0, 60.0, 2.5, 48, 48, "black"),
    ("shrunk", 80.0, 60.0, 500.0, 400.0, 0.77, 40, 40, "black"),
    ("all outside", 300.0, -100.0, 50.0, 50.0, 0.1, 8, 8, "replicate"),
]


def noise(count):
    """The upper bytes of Knuth's MMIX linear congruential generator."""
    state, out = 1, bytearray()
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(state >> 56)
    return bytes(out)


def warp(image, x, y, width, height, rotation, columns, rows, border):
    degrees = float(numpy.float32(rotation) * numpy.float32(180.0 / math.pi))
    corners = cv2.boxPoints(((x, y), (width, height), degrees))
    tensor = numpy.float32([[0, rows], [0, 0], [columns, 0], [columns, rows]])
    mode = {"black": cv2.BORDER_CONSTANT, "replicate": cv2.BORDER_REPLICATE}[border]
    matrix = cv2.getPerspectiveTransform(corners, tensor)
    return cv2.warpPerspective(image, matrix, (columns, rows), flags=cv2.INTER_LINEAR, borderMode=mode)


def main():
    here = pathlib.Path(__file__).parent
    image = numpy.frombuffer(noise(WIDTH * HEIGHT * 3), numpy.uint8).reshape(HEIGHT, WIDTH, 3)
    keys = ("name", "x", "y", "width", "height", "rotation", "columns", "rows", "border")
    cases = [dict(zip(keys, case)) for case in CASES]
    golden = {"opencv": cv2.__version__, "image": [WIDTH, HEIGHT], "cases": cases}
    (here / "warp.json").write_text(json.dumps(golden, indent=1) + "\n")
    (here / "warp.bin").write_bytes(b"".join(warp(image, *case[1:]).tobytes() for case in CASES))


if __name__ == "__main__":
    main()
