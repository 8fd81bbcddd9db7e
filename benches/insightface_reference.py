# SPDX-License-Identifier: MPL-2.0
"""Decodes a video with OpenCV and runs InsightFace's FaceAnalysis on it, and nothing else.

Usage: insightface_reference.py <folder with a model pack> <modules, separated by commas> <video>

Prints the number of frames, of frames with a face, and the mean time of a frame without decoding, ms.
"""

import contextlib
import sys
import tempfile
import time
from pathlib import Path

import cv2
from insightface.app import FaceAnalysis

DET_SIZE = (640, 640)


def main(pack: str, modules: str, video: str) -> None:
    cv2.setNumThreads(1)
    # It looks for packs by name below a folder of its own, and tells of them on standard output.
    with tempfile.TemporaryDirectory() as root, contextlib.redirect_stdout(sys.stderr):
        (Path(root) / "models").mkdir()
        (Path(root) / "models" / "pack").symlink_to(Path(pack).resolve())
        analysis = FaceAnalysis("pack", root, modules.split(","), providers=["CPUExecutionProvider"])
        analysis.prepare(ctx_id=-1, det_size=DET_SIZE)
    capture = cv2.VideoCapture(video)
    frames = with_face = seconds = 0
    while True:
        more, bgr = capture.read()
        if not more:
            break
        start = time.perf_counter()
        faces = analysis.get(bgr)
        seconds += time.perf_counter() - start
        frames += 1
        with_face += len(faces) > 0
    print(frames, with_face, 1000 * seconds / frames)


main(*sys.argv[1:])
