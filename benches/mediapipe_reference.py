# SPDX-License-Identifier: MPL-2.0
"""Decodes a video with OpenCV and runs MediaPipe's FaceLandmarker on it, and nothing else.

Usage: mediapipe_reference.py <video> <face_landmarker.task>. Prints the number of frames and of frames with a face.
"""

import sys

import cv2
import mediapipe as mp
from mediapipe.tasks import python as tasks
from mediapipe.tasks.python import vision


def main(video: str, model: str) -> None:
    options = vision.FaceLandmarkerOptions(
        base_options=tasks.BaseOptions(model_asset_path=model),
        running_mode=vision.RunningMode.VIDEO,
        num_faces=1,
        output_face_blendshapes=True,
        output_facial_transformation_matrixes=True,
    )
    capture = cv2.VideoCapture(video)
    fps = capture.get(cv2.CAP_PROP_FPS) or 30.0
    frames = with_face = 0
    with vision.FaceLandmarker.create_from_options(options) as landmarker:
        while True:
            more, bgr = capture.read()
            if not more:
                break
            rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
            image = mp.Image(image_format=mp.ImageFormat.SRGB, data=rgb)
            result = landmarker.detect_for_video(image, round(1000 * frames / fps))
            frames += 1
            with_face += bool(result.face_landmarks)
    print(frames, with_face)


main(*sys.argv[1:])
