#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Records what OpenCV's cascade classifier and its parts make of drawn faces, for
crates/facetrack/tests/engines/opencv_haar.rs and the tests in crates/facetrack/src/engine/opencv/haar/.

    python3 -m pip install opencv-python-headless==4.12.0.88
    python3 tests/golden/make_haar.py HAARCASCADE_FRONTALFACE_DEFAULT_XML

Writes haar_small.xml, a cascade of random upright and tilted features, stumps and trees that finds nothing in
particular, but often; and haar.json:

- scenes: what to draw, and the boxes [x, y, width, height] that were found in it with each cascade and settings
- groups: rectangles, least neighbours, and what groupRectangles leaves of them
- sizes: a noise image, row by row in hexadecimal, and what INTER_LINEAR_EXACT makes of it
- greys: red, green, blue, and COLOR_RGB2GRAY of them"""

import json
import random
import sys
from pathlib import Path

import cv2
import numpy as np
from drawing import at, draw

OUT = Path(__file__).parent
SMALL = OUT / "haar_small.xml"

# With it the small cascade finds something in every drawing of a face, and not everywhere.
SEED = 16

# Window of the small cascade; not square, so that axes can't be mistaken for one another.
WIDTH, HEIGHT = 12, 16

SCENES = [
    (320, 240, [at(140, 120, 60, 0.05, 0.3)]),
    (400, 200, [at(100, 100, 50), at(300, 95, 55, 0.1)]),
    (333, 251, [at(90, 120, 45, -0.1, 0.7), at(240, 140, 60, 0.0, 0.0, 0.9)]),
    (640, 360, [at(150, 180, 60), at(330, 170, 80, 0.02), at(520, 170, 40, -0.04)]),
    (97, 61, []),
]

# Cascade, scale factor, least neighbours, least and greatest size; 0 for no limit.
SETTINGS = [
    ("frontal", 1.1, 5, 30, 0),
    ("frontal", 1.1, 0, 30, 0),
    ("frontal", 1.05, 3, 0, 0),
    ("frontal", 1.3, 1, 0, 120),
    ("frontal", 1.2, 2, 90, 90),
    ("frontal", 1.1, 2, 3000, 0),
    ("small", 1.2, 0, 0, 0),
    ("small", 1.1, 3, 20, 60),
]


def feature(rng):
    """Two or three rectangles, one inside the other or next to it; upright or tilted."""
    tilted = rng.random() < 0.35
    while True:
        w, h, k = rng.randint(1, 4), rng.randint(1, 4), rng.choice([2, 3])
        x, y = rng.randint(0, WIDTH - 1), rng.randint(0, HEIGHT - 1)
        outer, inner = (x, y, w * k, h, -1), (x + w * (k // 2), y, w, h, k)
        if tilted:
            inner = (x + w * (k // 2), y + w * (k // 2), w, h, k)
        rects = [outer, inner]
        if rng.random() < 0.3 and not tilted:
            rects = [(x, y, 2 * w, 2 * h, -1), (x, y, w, h, 2), (x + w, y + h, w, h, 2)]
        if all(fits(rect, tilted) for rect in rects):
            return rects, tilted


def fits(rect, tilted):
    x, y, w, h, _ = rect
    if tilted:
        return x >= h and x + w <= WIDTH and y + w + h <= HEIGHT
    return x + w <= WIDTH and y + h <= HEIGHT


def small_cascade(seed):
    rng = random.Random(seed)
    features, stages = [], []

    def node(left, right):
        features.append(feature(rng))
        return f"{left} {right} {len(features) - 1} {rng.uniform(-0.03, 0.03):.6f}"

    for size in (3, 4, 6):
        trees = []
        for _ in range(size):
            nodes = rng.choice([[(0, -1)], [(1, 0), (-1, -2)], [(1, 2), (0, -1), (-2, -3)]])
            leaves = " ".join(f"{rng.uniform(-1, 1):.6f}" for _ in range(len(nodes) + 1))
            trees.append((" ".join(node(*children) for children in nodes), leaves))
        stages.append((rng.uniform(-0.6, 0.0), trees))
    return cascade_xml(features, stages)


def cascade_xml(features, stages):
    lines = ['<?xml version="1.0"?>', "<opencv_storage>", '<cascade type_id="opencv-cascade-classifier">']
    lines += ["<stageType>BOOST</stageType>", "<featureType>HAAR</featureType>"]
    lines += [f"<height>{HEIGHT}</height>", f"<width>{WIDTH}</width>"]
    lines += ["<stageParams><maxWeakCount>6</maxWeakCount></stageParams>"]
    lines += ["<featureParams><maxCatCount>0</maxCatCount></featureParams>"]
    lines += [f"<stageNum>{len(stages)}</stageNum>", "<stages>"]
    for threshold, trees in stages:
        lines += [f"<_><maxWeakCount>{len(trees)}</maxWeakCount><stageThreshold>{threshold:.6f}</stageThreshold>"]
        lines += ["<weakClassifiers>"]
        for nodes, leaves in trees:
            lines += [f"<_><internalNodes>{nodes}</internalNodes><leafValues>{leaves}</leafValues></_>"]
        lines += ["</weakClassifiers></_>"]
    lines += ["</stages>", "<features>"]
    for rects, tilted in features:
        rects = "".join(f"<_>{x} {y} {w} {h} {weight}.</_>" for x, y, w, h, weight in rects)
        lines += [f"<_><rects>{rects}</rects><tilted>{int(tilted)}</tilted></_>"]
    return "\n".join([*lines, "</features>", "</cascade>", "</opencv_storage>", ""])


def scenes(cascades):
    for width, height, faces in SCENES:
        pixels = draw(width, height, faces)
        found = []
        for name, factor, neighbors, least, most in SETTINGS:
            bgr = np.ascontiguousarray(pixels[..., ::-1])
            sizes = {"minSize": (least, least), "maxSize": (most, most)}
            boxes = cascades[name].detectMultiScale(bgr, factor, neighbors, **sizes)
            search = {"scale_factor": factor, "min_neighbors": neighbors, "min_size": least, "max_size": most}
            found.append({"cascade": name, **search, "boxes": np.asarray(boxes, int).reshape(-1, 4).tolist()})
        print(width, height, [len(f["boxes"]) for f in found])
        total = int(pixels.astype(np.int64).sum())
        yield {"width": width, "height": height, "faces": faces, "pixel_sum": total, "found": found}


def groups(rng):
    """Clusters with members of every distance, one within another, and strays."""
    for count in range(24):
        rects = []
        for _ in range(rng.randint(0, 6)):
            x, y, size = rng.randint(0, 300), rng.randint(0, 200), rng.randint(20, 150)
            spread = rng.choice([2, 6, 15])
            for _ in range(rng.randint(1, 9)):
                dx, dy, ds = (rng.randint(-spread, spread) for _ in range(3))
                rects.append([x + dx, y + dy, size + ds, size + ds // 2])
            if rng.random() < 0.6:
                inner = [x + size // 4, y + size // 4, size // 2, size // 2]
                rects += [[v + rng.randint(-1, 1) for v in inner] for _ in range(rng.randint(1, 12))]
        rng.shuffle(rects)
        neighbors = count % 5
        left, _ = cv2.groupRectangles(list(map(tuple, rects)), neighbors, 0.2)
        yield {"rects": rects, "min_neighbors": neighbors, "left": np.asarray(left, int).reshape(-1, 4).tolist()}


def sizes(rng):
    for source, target in [((13, 9), (13, 9)), ((24, 16), (12, 8)), ((31, 22), (17, 20)), ((29, 40), (8, 11))]:
        image = rng.integers(0, 256, source[::-1], dtype=np.uint8)
        resized = cv2.resize(image, target, interpolation=cv2.INTER_LINEAR_EXACT)
        yield {"from": source, "to": target, "image": image.tobytes().hex(), "resized": resized.tobytes().hex()}


def greys(rng):
    colors = np.concatenate([rng.integers(0, 256, (60, 3)), [[0, 0, 0], [255, 255, 255]]]).astype(np.uint8)
    greys = cv2.cvtColor(colors[None], cv2.COLOR_RGB2GRAY)[0]
    return [[*map(int, color), int(grey)] for color, grey in zip(colors, greys)]


def main():
    # Several threads find the same in another order.
    cv2.setNumThreads(1)
    SMALL.write_text(small_cascade(SEED))
    cascades = {name: cv2.CascadeClassifier(str(path)) for name, path in (("frontal", sys.argv[1]), ("small", SMALL))}
    record = {
        "scenes": list(scenes(cascades)),
        "groups": list(groups(random.Random(1))),
        "sizes": list(sizes(np.random.default_rng(1))),
        "greys": greys(np.random.default_rng(2)),
    }
    lists = [f' "{name}": [\n  ' + ",\n  ".join(map(json.dumps, items)) + "\n ]" for name, items in record.items()]
    (OUT / "haar.json").write_text("{\n" + ",\n".join(lists) + "\n}\n")


if __name__ == "__main__":
    main()
