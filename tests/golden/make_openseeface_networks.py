#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Records what ONNX Runtime computes with OpenSeeFace's published networks, as they are, of drawn faces, for
crates/facetrack/tests/engines/openseeface_networks.rs.

    python3 -m pip install onnxruntime==1.31.1 numpy
    ORT_DISABLE_TELEMETRY=1 python3 tests/golden/make_openseeface_networks.py FOLDER_OF_THE_MODELS

Writes openseeface_networks.json (the pictures: what to draw) and, of each network, networks/openseeface_<network>.bin
(for each picture, f32 little endian). Of the landmark network's maps that is recorded which tracker.py reads: of each
landmark the greatest value of the heat map, its first cell, and the two offsets there. Graphs are not optimised. The
drawing is that of drawing.py; brightnesses are scaled as tracker.py does it."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from drawing import at, draw

OUT = Path(__file__).parent

MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])

# An eye of a face that is drawn around it.
RIGHT, LEFT = at(16 + 20, 16 + 8, 60), at(16 - 20, 16 + 8, 60)

PICTURES = {
    "detector": [
        {"width": 224, "height": 224, "faces": [at(120, 100, 45)]},
        {"width": 224, "height": 224, "faces": [at(60, 120, 30, 0.1), at(150, 90, 40, -0.1, 0.6)]},
    ],
    "landmarks": [
        {"width": 224, "height": 224, "faces": [at(112, 118, 95)]},
        {"width": 224, "height": 224, "faces": [at(105, 120, 88, 0.08, 0.7)]},
        {"width": 224, "height": 224, "faces": [at(118, 110, 100, -0.1, 0.2, 0.9)]},
        {"width": 224, "height": 224, "faces": [at(20, 200, 90)]},
    ],
    "gaze": [
        {"width": 32, "height": 32, "faces": [RIGHT]},
        {"width": 32, "height": 32, "faces": [LEFT]},
        {"width": 32, "height": 32, "faces": [{**RIGHT, "blink": 0.6}]},
        {"width": 32, "height": 32, "faces": [{**LEFT, "half_roll": 0.1}]},
    ],
}

FILES = {
    "detector": "mnv3_detection_opt.onnx",
    "landmarks": "lm_model0_opt.onnx",
    "gaze": "mnv3_gaze32_split_opt.onnx",
}


def tensor(picture):
    image = draw(picture["width"], picture["height"], picture["faces"])
    return ((image / 255.0 - MEAN) / DEVIATION).astype(np.float32).transpose(2, 0, 1)[None]


def peaks(maps):
    """Value, cell and offsets of each landmark."""
    heat, rows, columns = maps[0].reshape(3, 66, -1)
    ordered = np.sort(heat)
    margin = (ordered[:, -1] - ordered[:, -2]).min()
    assert margin > 1e-5, f"a peak is {margin} above another cell"
    cells = heat.argmax(1)
    each = np.arange(66)
    return np.stack([heat[each, cells], cells, rows[each, cells], columns[each, cells]])


def main(folder):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for network, pictures in PICTURES.items():
        session = onnxruntime.InferenceSession(str(Path(folder) / FILES[network]), options)
        recorded = []
        for picture in pictures:
            outputs = session.run(None, {"input": tensor(picture)})
            if network == "landmarks":
                outputs = [peaks(outputs[0])]
                print(f"confidence {outputs[0][0].mean():.2f}")
            recorded += outputs[:1]
        np.stack(recorded).astype("<f4").tofile(OUT / "networks" / f"openseeface_{network}.bin")
    (OUT / "openseeface_networks.json").write_text(json.dumps(PICTURES, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
