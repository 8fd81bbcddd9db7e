# SPDX-License-Identifier: MPL-2.0
"""Shared by the programs that run the originals."""

import time
from collections.abc import Callable

import cv2


def track(video: str, look: Callable) -> None:
    """Decodes a video with OpenCV and prints, for each frame, the number of faces that `look` finds and its time, ms."""
    capture = cv2.VideoCapture(video)
    while True:
        more, bgr = capture.read()
        if not more:
            return
        start = time.perf_counter()
        faces = look(bgr)
        print(f"frame: {faces} faces in {1000 * (time.perf_counter() - start):.3f} ms", flush=True)
