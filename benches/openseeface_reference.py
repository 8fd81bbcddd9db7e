# SPDX-License-Identifier: MPL-2.0
"""Decodes a video with OpenCV and runs OpenSeeFace's tracker on it with facetracker.py's settings, and nothing else.

Usage: openseeface_reference.py <checkout of OpenSeeFace> <landmark model, -3…4> <video>

Prints the number of frames, of frames with a face, and the mean time of a frame without decoding, ms.
"""

import sys
import time

import cv2


def main(checkout: str, model: str, video: str) -> None:
    sys.path.insert(0, checkout)
    from tracker import Tracker

    cv2.setNumThreads(1)
    capture = cv2.VideoCapture(video)
    tracker = Tracker(
        int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)),
        int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT)),
        model_type=int(model),
        max_threads=1,
        max_faces=1,
        discard_after=10,
        scan_every=3,
        silent=True,
        max_feature_updates=900,
        static_model=True,
    )
    frames = with_face = seconds = 0
    while True:
        more, bgr = capture.read()
        if not more:
            break
        start = time.perf_counter()
        faces = tracker.predict(bgr)
        seconds += time.perf_counter() - start
        frames += 1
        with_face += len(faces) > 0
    print(frames, with_face, 1000 * seconds / frames)


main(*sys.argv[1:])
