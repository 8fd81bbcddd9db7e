# SPDX-License-Identifier: MPL-2.0
"""Faces drawn from ellipses, as crates/facetrack/tests/common/drawn.rs draws them, operation for operation."""

import numpy as np


def ellipses(face):
    lid, gap = 1.0 - 0.9 * face.get("blink", 0.0), 0.3 * face.get("jaw", 0.0)
    skin, brow, white = (215, 165, 138), (60, 40, 30), (245, 240, 238)
    return [
        ((0.0, -0.25, 0.98, 1.15), (50, 35, 28)),
        ((0.0, 1.5, 0.45, 0.8), (190, 140, 115)),
        ((0.0, 0.05 + gap * 0.5, 0.8, 1.1 + gap * 0.5), skin),
        ((-0.35, -0.33, 0.24, 0.045), brow),
        ((0.35, -0.33, 0.24, 0.045), brow),
        ((-0.33, -0.13, 0.17, 0.085 * lid), white),
        ((0.33, -0.13, 0.17, 0.085 * lid), white),
        ((-0.33, -0.13, 0.075, 0.08 * lid), brow),
        ((0.33, -0.13, 0.075, 0.08 * lid), brow),
        ((0.0, 0.28, 0.13, 0.07), (175, 120, 98)),
        ((0.0, 0.12, 0.06, 0.2), (228, 180, 152)),
        ((0.0, 0.58 + gap, 0.3, 0.075 + gap), (165, 75, 75)),
        ((0.0, 0.57 + gap, 0.26, 0.012 + gap), (90, 35, 35)),
    ]


def draw(width, height, faces):
    y, x = np.mgrid[0:height, 0:width].astype(np.float64) + 0.5
    image = np.empty((height, width, 3))
    image[:] = (90, 110, 130)
    for face in faces:
        t = face.get("half_roll", 0.0)
        norm = 1.0 + t * t
        cos, sin = (1.0 - t * t) / norm, 2.0 * t / norm
        dx, dy = (x - face["x"]) / face["size"], (y - face["y"]) / face["size"]
        fx, fy = cos * dx + sin * dy, cos * dy - sin * dx
        for (cx, cy, rx, ry), ink in ellipses(face):
            u, v = (fx - cx) / rx, (fy - cy) / ry
            share = np.clip((1.0 - np.sqrt(u * u + v * v)) / 0.08 + 0.5, 0.0, 1.0)[..., None]
            image = image * (1.0 - share) + np.array(ink, np.float64) * share
    return np.floor(image + 0.5).astype(np.uint8)


def at(x, y, size, half_roll=0.0, jaw=0.0, blink=0.0):
    return {"x": x, "y": y, "size": size, "half_roll": half_roll, "jaw": jaw, "blink": blink}
