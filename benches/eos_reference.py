# SPDX-License-Identifier: MPL-2.0
"""Fits eos' morphable model to landmarks with eos-py, and nothing else.

Usage: eos_reference.py <landmarks, JSON> <folder with the files of eos>

Prints the number of faces and the mean time of a fit, ms.
"""

import itertools
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import eos

# Where a fit is does not matter, nor does the size of the image.
SIZE = (640, 360)


def topology(triangles):
    """The edges between two triangles: those of sfm_3448_edge_topology.json without the edges at the rim, which a fit
    does not use. eos counts triangles and vertices from 1."""
    sides = defaultdict(list)
    for number, corners in enumerate(triangles, 1):
        for side in itertools.combinations(sorted(corner + 1 for corner in corners), 2):
            sides[side].append(number)
    edges = {side: pair for side, pair in sides.items() if len(pair) == 2}
    return eos.morphablemodel.EdgeTopology(list(edges.values()), [list(side) for side in edges])


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
        topology(shape.get_shape_model().get_triangle_list()),
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
