# SPDX-License-Identifier: MPL-2.0
"""Measures how well MediaPipe's landmark network tells whether a tongue is out.

Usage: roc.py <face_landmarker.task> <folder>

The folder has one subfolder per repository of `sources.csv`, named `owner+name`, with the files of
`set.csv`. Nothing is downloaded. Files whose hash differs are an error. Needs the packages
mediapipe, ai-edge-litert, opencv-python-headless and numpy.
"""

import csv
import hashlib
import math
import sys
import zipfile
from pathlib import Path

import cv2
import mediapipe as mp
import numpy as np
from ai_edge_litert.interpreter import Interpreter
from mediapipe.tasks import python as tasks
from mediapipe.tasks.python import vision

HERE = Path(__file__).parent
SIDE = 256
EYES = (33, 263)
# Landmarks do not have this channel; it is the network's third output.
TONGUE = "Identity_2"
# MediaPipe's region is 1.5 times the larger side of the landmarks' box. The others are this box
# with level eyes, padded on each side and stretched to a square.
SQUARES = {"square 1.5 (MediaPipe's)": 1.5, "square 1.25": 1.25}
STRETCHED = {"stretched, 10 %": 1.2, "stretched, 20 %": 1.4, "stretched, 30 %": 1.6}
# Larger pictures are shrunk first, to save time.
MAX_PICTURE = 1600
# At least this share of tongues must be found, at most this share of other faces reported.
RECALL, FALSE_POSITIVES = 0.9, 0.01
# A mouth that is less open (`jawOpen`) has no tongue.
GATE = 0.1
RESAMPLES = 2000


def rows():
    with open(HERE / "sources.csv", newline="") as file:
        sources = {row["source"]: row for row in csv.DictReader(file)}
    with open(HERE / "set.csv", newline="") as file:
        for row in csv.DictReader(file):
            source = sources[row["source"]]
            folder = Path(source["repository"].replace("/", "+"), source["folder"])
            yield row, folder / row["path"]


def read(path: Path, frame: str):
    if not frame:
        picture = cv2.imread(str(path), cv2.IMREAD_COLOR)
    else:
        video = cv2.VideoCapture(str(path))
        for _ in range(int(frame) + 1):
            _, picture = video.read()
    picture = cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)
    scale = MAX_PICTURE / max(picture.shape[:2])
    if scale < 1:
        picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return picture


def regions(points):
    """Name, center, size and rotation of each region."""
    eye = points[EYES[1]] - points[EYES[0]]
    angle = math.atan2(eye[1], eye[0])
    low, high = points.min(0), points.max(0)
    for name, factor in SQUARES.items():
        yield name, (low + high) / 2, (max(high - low) * factor,) * 2, angle
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    level = points @ turn
    low, high = level.min(0), level.max(0)
    for name, factor in STRETCHED.items():
        yield name, turn @ (low + high) / 2, (high - low) * factor, angle


def crop(picture, center, size, angle):
    cos, sin = math.cos(angle), math.sin(angle)
    scale = np.array([[cos * size[0], -sin * size[1]], [sin * size[0], cos * size[1]]]) / SIDE
    offset = scale @ np.full(2, (1 - SIDE) / 2) + center - 0.5
    matrix = np.column_stack([scale, offset])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(picture, matrix, (SIDE, SIDE), flags=flags, borderMode=cv2.BORDER_REPLICATE)


class Network:
    def __init__(self, task: str):
        with zipfile.ZipFile(task) as archive:
            model = archive.read("face_landmarks_detector.tflite")
        self.network = Interpreter(model_content=model, num_threads=1)
        self.network.allocate_tensors()
        self.input = self.network.get_input_details()[0]["index"]
        outputs = self.network.get_output_details()
        self.output = next(o["index"] for o in outputs if o["name"] == TONGUE)

    def score(self, picture) -> float:
        self.network.set_tensor(self.input, picture[None].astype(np.float32) / 255)
        self.network.invoke()
        return self.network.get_tensor(self.output).item()


def measure(task: str, folder: str):
    """Label, person, `jawOpen` and scores of each face that the landmarker finds."""
    network = Network(task)
    options = vision.FaceLandmarkerOptions(
        base_options=tasks.BaseOptions(model_asset_path=task), output_face_blendshapes=True
    )
    with vision.FaceLandmarker.create_from_options(options) as landmarker:
        for row, path in rows():
            path = Path(folder, path)
            if hashlib.sha256(path.read_bytes()).hexdigest()[: len(row["sha256"])] != row["sha256"]:
                sys.exit(f"{path} is another file")
            picture = read(path, row["frame"])
            found = landmarker.detect(mp.Image(image_format=mp.ImageFormat.SRGB, data=picture))
            if not found.face_landmarks:
                continue
            extent = np.array(picture.shape[1::-1])
            points = np.array([(p.x, p.y) for p in found.face_landmarks[0]]) * extent
            jaw = next(b.score for b in found.face_blendshapes[0] if b.category_name == "jawOpen")
            scores = {name: network.score(crop(picture, *region)) for name, *region in regions(points)}
            yield row, jaw, scores


def figures(scores, labels, weights):
    """AUC, false positives at the required recall, and recall at the allowed false positives."""
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.diff(scores[order]) != 0, True)
    hits = np.append(0, np.cumsum((weights * labels)[order])[ends]) / (weights * labels).sum()
    alarms = np.append(0, np.cumsum((weights * ~labels)[order])[ends]) / (weights * ~labels).sum()
    reached = np.searchsorted(hits, RECALL - 1e-9)
    allowed = np.searchsorted(alarms, FALSE_POSITIVES + 1e-9, side="right") - 1
    return np.trapezoid(hits, alarms), alarms[reached], hits[allowed]


def weights_of(labels, groups, balanced: bool):
    """1 per frame, or, where people count alike, 1 per person and label."""
    if not balanced:
        return np.ones(len(labels))
    _, number, count = np.unique(groups * 2 + labels, return_inverse=True, return_counts=True)
    return 1 / count[number]


def line(name, scores, labels, groups, balanced):
    weights = weights_of(labels, groups, balanced)
    best = figures(scores, labels, weights)
    random = np.random.default_rng(0)
    people = groups.max() + 1
    sets = []
    for _ in range(RESAMPLES):
        drawn = np.bincount(random.integers(people, size=people), minlength=people)[groups] * weights
        if (drawn * labels).any():
            sets.append(figures(scores, labels, drawn))
    low, high = np.percentile(sets, (2.5, 97.5), axis=0)
    cells = [f"{best[0]:.3f} ({low[0]:.3f}…{high[0]:.3f})"]
    cells += [f"{100 * best[i]:.1f} % ({100 * low[i]:.1f}…{100 * high[i]:.1f})" for i in (1, 2)]
    print(f"| {name} |", " | ".join(cells), "|")


def main(task: str, folder: str) -> None:
    faces = [face for face in measure(task, folder) if face[0]["label"] in ("0", "1")]
    labels = np.array([row["label"] == "1" for row, _, _ in faces])
    groups = np.unique([row["person"] or row["source"] + row["path"] for row, _, _ in faces], return_inverse=True)[1]
    jaw = np.array([jaw for _, jaw, _ in faces])
    print(f"{labels.sum()} faces with a tongue, of {len(set(groups[labels]))} people; {(~labels).sum()} without")
    for title, balanced in (("Each frame counts alike", False), ("Each person counts alike", True)):
        print(f"\n{title}\n| region | AUC | false positives at 90 % recall | recall at 1 % false positives |")
        print("|---|---|---|---|")
        for name in (*SQUARES, *STRETCHED):
            scores = np.array([scores[name] for _, _, scores in faces])
            line(name, scores, labels, groups, balanced)
            line(f"{name}, jawOpen > {GATE}", np.where(jaw > GATE, scores, -1), labels, groups, balanced)


main(*sys.argv[1:])
