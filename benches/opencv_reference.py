# SPDX-License-Identifier: MPL-2.0
"""Decodes a video with OpenCV and runs an original of the OpenCV engines on it, and nothing else.

Usage: opencv_reference.py <threads> <original> <video> <model>…, where the original is one of

  opencv-haar         cv2.CascadeClassifier; <haarcascade_frontalface_default.xml>
  opencv-yunet        cv2.FaceDetectorYN at the video's own size; <face_detection_yunet_2023mar.onnx>
  opencv-yunet-pyfeat the same, then MediaPipe's landmark and blendshape networks on each face, run by LiteRT;
                      <face_detection_yunet_2023mar.onnx> <face_landmarker.task>
"""

import sys
import zipfile

import cv2
import numpy as np

from reference import track

# Defaults of the engines.
SCORE, NMS, TOP_K = 0.7, 0.3, 5000
SCALE_FACTOR, MIN_NEIGHBORS, MIN_SIZE = 1.1, 5, (30, 30)

# Side of the landmark network's input, px.
SIDE = 256
# Side of the region around a face, in distances of the eyes.
REGION = 4.0
# Landmarks that the blendshape network takes. Which they are makes no difference to its time.
SUBSET = 146


class Haar:
    def __init__(self, cascade: str):
        self.classifier = cv2.CascadeClassifier(cascade)

    def detect(self, bgr: np.ndarray):
        grey = cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY)
        return self.classifier.detectMultiScale(grey, SCALE_FACTOR, MIN_NEIGHBORS, minSize=MIN_SIZE)


class Yunet:
    def __init__(self, model: str):
        self.detector = cv2.FaceDetectorYN.create(model, "", (320, 320), SCORE, NMS, TOP_K)

    def detect(self, bgr: np.ndarray):
        height, width = bgr.shape[:2]
        self.detector.setInputSize((width, height))
        faces = self.detector.detect(bgr)[1]
        return [] if faces is None else faces


class YunetPyfeat:
    def __init__(self, model: str, bundle: str, threads: int):
        self.yunet = Yunet(model)
        with zipfile.ZipFile(bundle) as parts:
            self.landmarks = network(parts.read("face_landmarks_detector.tflite"), threads)
            self.blendshapes = network(parts.read("face_blendshapes.tflite"), threads)

    def detect(self, bgr: np.ndarray):
        return [self.measure(bgr, face[4:8].reshape(2, 2)) for face in self.yunet.detect(bgr)]

    def measure(self, bgr: np.ndarray, eyes: np.ndarray) -> np.ndarray:
        dx, dy = eyes[1] - eyes[0]
        center = eyes.mean(axis=0) + 0.5 * np.array([-dy, dx])
        angle = np.degrees(np.arctan2(dy, dx))
        scale = SIDE / (REGION * np.hypot(dx, dy))
        tensor_from_image = cv2.getRotationMatrix2D((float(center[0]), float(center[1])), angle, scale)
        tensor_from_image[:, 2] += SIDE / 2 - center
        crop = cv2.warpAffine(bgr, tensor_from_image, (SIDE, SIDE), flags=cv2.INTER_LINEAR)
        rgb = cv2.cvtColor(crop, cv2.COLOR_BGR2RGB).astype(np.float32) / 255
        points = run(self.landmarks, rgb[None]).reshape(-1, 3)
        return run(self.blendshapes, points[None, :SUBSET, :2])


def network(model: bytes, threads: int):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=model, num_threads=threads)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter, tensor: np.ndarray) -> np.ndarray:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.ascontiguousarray(tensor))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def main(threads: str, original: str, video: str, *models: str) -> None:
    cv2.setNumThreads(int(threads))
    engines = {
        "opencv-haar": Haar,
        "opencv-yunet": Yunet,
        "opencv-yunet-pyfeat": lambda *paths: YunetPyfeat(*paths, int(threads)),
    }
    engine = engines[original](*models)
    track(video, lambda bgr: len(engine.detect(bgr)))


main(*sys.argv[1:])
