# SPDX-License-Identifier: MPL-2.0
"""Fits eos' morphable model to landmarks with eos-py, and nothing else.

Usage: eos_reference.py <landmarks, JSON> <folder with the files of eos>

Prints the number of faces and the mean time of a fit, ms.
"""

import json
import sys
import time
from pathlib import Path

import eos

# Where a fit is does not matter, nor does the size of the image.
SIZE = (640, 360)


def main(landmarks: str, models: str) -> None:
    folder = Path(models)
    mapping = str(folder / "ibug_to_sfm.txt")
    shape = eos.morphablemodel.load_model(str(folder / "sfm_shape_3448.bin"))
    model = eos.morphablemodel.MorphableModel(
        shape.get_shape_model(),
        eos.morphablemodel.load_blendshapes(str(folder / "expression_blendshapes_3448.bin")),
        color_model=eos.morphablemodel.PcaModel(),
        vertex_definitions=None,
        texture_coordinates=shape.get_texture_coordinates(),
    )
    rest = (
        *SIZE,
        eos.morphablemodel.load_edge_topology(str(folder / "sfm_3448_edge_topology.json")),
        eos.fitting.ContourLandmarks.load(mapping),
        eos.fitting.ModelContour.load(str(folder / "sfm_model_contours.json")),
    )
    mapper = eos.core.LandmarkMapper(mapping)
    faces = [
        [eos.core.Landmark(str(number), point) for number, point in enumerate(face, 1)]
        for face in json.loads(Path(landmarks).read_text())
    ]
    start = time.perf_counter()
    for face in faces:
        eos.fitting.fit_shape_and_pose(model, face, mapper, *rest)
    print(len(faces), 1000 * (time.perf_counter() - start) / len(faces))


main(*sys.argv[1:])
