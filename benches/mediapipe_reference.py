# SPDX-License-Identifier: MPL-2.0
"""Decodes a video with OpenCV and runs MediaPipe's FaceLandmarker on it, and nothing else.

Usage: mediapipe_reference.py <number of faces> <face_landmarker.task> <video>
"""

import itertools
import sys

import cv2
import mediapipe as mp
from mediapipe.tasks import python as tasks
from mediapipe.tasks.python import vision

from reference import track

FPS = 30


def main(faces: str, model: str, video: str) -> None:
    options = vision.FaceLandmarkerOptions(
        base_options=tasks.BaseOptions(model_asset_path=model),
        running_mode=vision.RunningMode.VIDEO,
        num_faces=int(faces),
        output_face_blendshapes=True,
        output_facial_transformation_matrixes=True,
    )
    numbers = itertools.count()
    with vision.FaceLandmarker.create_from_options(options) as landmarker:

        def look(bgr) -> int:
            rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
            image = mp.Image(image_format=mp.ImageFormat.SRGB, data=rgb)
            return len(landmarker.detect_for_video(image, round(1000 * next(numbers) / FPS)).face_landmarks)

        track(video, look)


main(*sys.argv[1:])
