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


def prepared(root: Path, pack: str, modules: str) -> FaceAnalysis:
    """It looks for packs by name below a folder of its own, opens their files when it needs them, and prints."""
    (root / "models").mkdir()
    (root / "models" / "pack").symlink_to(Path(pack).resolve())
    with contextlib.redirect_stdout(sys.stderr):
        analysis = FaceAnalysis("pack", str(root), modules.split(","), providers=["CPUExecutionProvider"])
        analysis.prepare(ctx_id=-1, det_size=DET_SIZE)
    return analysis


def main(pack: str, modules: str, video: str) -> None:
    cv2.setNumThreads(1)
    capture = cv2.VideoCapture(video)
    frames = with_face = seconds = 0
    with tempfile.TemporaryDirectory() as root:
        analysis = prepared(Path(root), pack, modules)
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
