# SPDX-License-Identifier: MPL-2.0
"""Decodes a video with OpenCV and runs InsightFace's model classes on it as its FaceAnalysis does, and nothing else.

Usage: insightface_reference.py <threads> <folder with a model pack> <modules, separated by commas> <video>
"""

import contextlib
import sys
from pathlib import Path

import cv2
import onnxruntime
from insightface.app.common import Face
from insightface.model_zoo import get_model

from reference import track

# Defaults of the engine and of FaceAnalysis.prepare.
DET_SIZES, DET_THRESH = [(128, 128), (640, 640)], 0.5


def models(threads: int, pack: str, modules: str) -> dict:
    """The first network of each module by file name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    found = {}
    with contextlib.redirect_stdout(sys.stderr):
        for file in sorted(Path(pack).glob("*.onnx")):
            model = get_model(str(file), providers=["CPUExecutionProvider"], sess_options=options)
            if model is not None and model.taskname in modules.split(","):
                found.setdefault(model.taskname, model)
        found["detection"].prepare(-1, input_size=DET_SIZES, det_thresh=DET_THRESH)
    return found


def look(detector, others: list, bgr) -> int:
    """Finds faces, and lets each of the `others` look at each; their number."""
    boxes, points = detector.detect(bgr)
    for box, kps in zip(boxes, points):
        face = Face(bbox=box[:4], kps=kps, det_score=box[4])
        for model in others:
            model.get(bgr, face)
    return len(boxes)


def main(threads: str, pack: str, modules: str, video: str) -> None:
    cv2.setNumThreads(int(threads))
    found = models(int(threads), pack, modules)
    detector = found.pop("detection")
    others = list(found.values())
    track(video, lambda bgr: look(detector, others, bgr))


main(*sys.argv[1:])
