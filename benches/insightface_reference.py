# SPDX-License-Identifier: MPL-2.0
"""Decodes a video with OpenCV and runs InsightFace's model classes on it as its FaceAnalysis does, and nothing else.

Usage: insightface_reference.py <folder with a model pack> <modules, separated by commas> <video>

Prints the number of frames, of frames with a face, and the mean time of a frame without decoding, ms.
"""

import contextlib
import sys
import time
from pathlib import Path

import cv2
import onnxruntime
from insightface.app.common import Face
from insightface.model_zoo import get_model

# Defaults of the engine and of FaceAnalysis.prepare.
DET_SIZE, DET_THRESH = (640, 640), 0.5


def models(pack: str, modules: str) -> dict:
    """The first network of each module by file name, each run only by the calling thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    found = {}
    with contextlib.redirect_stdout(sys.stderr):
        for file in sorted(Path(pack).glob("*.onnx")):
            model = get_model(str(file), providers=["CPUExecutionProvider"], sess_options=options)
            if model is not None and model.taskname in modules.split(","):
                found.setdefault(model.taskname, model)
        found["detection"].prepare(-1, input_size=DET_SIZE, det_thresh=DET_THRESH)
    return found


def look(detector, others: list, bgr) -> int:
    """Finds faces, and lets each of the `others` look at each; their number."""
    boxes, points = detector.detect(bgr)
    for box, kps in zip(boxes, points):
        face = Face(bbox=box[:4], kps=kps, det_score=box[4])
        for model in others:
            model.get(bgr, face)
    return len(boxes)


def main(pack: str, modules: str, video: str) -> None:
    cv2.setNumThreads(1)
    found = models(pack, modules)
    detector = found.pop("detection")
    others = list(found.values())
    capture = cv2.VideoCapture(video)
    frames = with_face = seconds = 0
    while True:
        more, bgr = capture.read()
        if not more:
            break
        start = time.perf_counter()
        faces = look(detector, others, bgr)
        seconds += time.perf_counter() - start
        frames += 1
        with_face += faces > 0
    print(frames, with_face, 1000 * seconds / frames)


main(*sys.argv[1:])
