#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Has eos write small files in its formats, and records what it reads from them, for
crates/facetrack/src/morphable/.

    python3 -m pip install eos-py==1.5.0 numpy
    python3 tests/golden/make_eos_files.py

The geometry is invented: a pyramid without a base. eos writes models of version 4 alone, and reads 1 to 4; the older
ones are made of the same bytes and shown to it. Nothing comes from the Surrey Face Model."""

import json
import struct
from pathlib import Path

import eos
import numpy as np

OUT = Path(__file__).parent / "eos"
MEAN = [[-2, -1, 0], [2, -1, 0], [1.5, 1, 0.25], [-1.5, 1, 0.25], [0.125, 0, 3]]
TRIANGLES = [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]
TEXTURE = [[0, 1], [1, 1], [0.875, 0], [0.125, 0], [0.5, 0.375]]
TEXTURE_TRIANGLES = [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]
EIGENVALUES = [6.25, 0.5]
MAPPING = """# Landmarks and vertices.
[landmark_mappings]
 9 = 0     # an integer
18 = "1"   # digits
27 = 2
31 = 4
[contour_landmarks]
right = [1, 2, "8"]
left = [10]
"""


def flat(values):
    return np.asarray(values, np.float32).ravel()


def pca(triangles):
    basis = np.linalg.qr(np.random.default_rng(5).normal(size=(3 * len(MEAN), len(EIGENVALUES))))[0]
    return eos.morphablemodel.PcaModel(flat(MEAN), basis.astype(np.float32), flat(EIGENVALUES), triangles)


def expressions():
    up, out = np.zeros((2, len(MEAN), 3))
    up[2:4, 1], out[4] = 0.75, [0.1, 0.2, -0.3]
    pairs = [("brows up", up), ("nez retroussé", out)]
    return [eos.morphablemodel.Blendshape(name, flat(offsets)) for name, offsets in pairs]


def save(name, *parts):
    eos.morphablemodel.save_model(eos.morphablemodel.MorphableModel(*parts), str(OUT / name))
    return (OUT / name).read_bytes()


def older(version, model, expressions, definitions, texture):
    """The same parts as eos wrote them before version 4."""
    parts = [struct.pack("<I", version), model, expressions if version > 1 else b""]
    parts += [definitions if version > 2 else b"", texture]
    name = f"version{version}.bin"
    (OUT / name).write_bytes(b"".join(parts))
    return eos.morphablemodel.load_model(str(OUT / name))


def main():
    OUT.mkdir(exist_ok=True)
    shape, colours = pca(TRIANGLES), pca([])
    definitions = {"nose.tip": 4}
    none = eos.morphablemodel.PcaModel()
    plain = save("version4.bin", shape, none, None, TEXTURE)
    save("coloured.bin", shape, colours, definitions, TEXTURE)
    save("textured.bin", shape, colours, None, TEXTURE[:3], TEXTURE_TRIANGLES[:1] * 4)
    save("own_expressions.bin", shape, expressions(), none, definitions, TEXTURE)
    save("pca_expressions.bin", shape, shape, none, None, TEXTURE)
    eos.morphablemodel.save_blendshapes(expressions(), str(OUT / "expressions.bin"))

    # Version 4 ends with two flags for nothing, the coordinates, and the number of the texture's triangles.
    texture = plain[-8 - 8 - 16 * len(TEXTURE) : -8]
    model = plain[4 : -8 - len(texture) - 2]
    own = b"\0" + struct.pack("<i", 1) + (OUT / "expressions.bin").read_bytes()
    named = b"\0" + struct.pack("<QQ", 1, 8) + b"nose.tip" + struct.pack("<i", 4)
    for version in (1, 2, 3):
        read = older(version, model, own, named, texture)
        assert (read.get_shape_model().get_mean() == flat(MEAN)).all()
        assert read.get_texture_coordinates() == TEXTURE
        assert read.has_separate_expression_model() == (version > 1)
        assert read.get_landmark_definitions() == (definitions if version > 2 else None)

    (OUT / "mapping.txt").write_text(MAPPING)
    assert eos.core.LandmarkMapper(str(OUT / "mapping.txt")).convert("18") == "1"
    contours = {"model_contour": {"right_contour": [0, 3], "left_contour": [1, 2]}}
    (OUT / "contours.json").write_text(json.dumps(contours, indent=4) + "\n")
    eos.fitting.ModelContour.load(str(OUT / "contours.json"))

    basis = np.asarray(shape.get_rescaled_pca_basis())
    expected = {
        "mean": flat(MEAN).tolist(),
        "basis": basis.ravel().tolist(),
        "triangles": TRIANGLES,
        "texture_coordinates": TEXTURE,
        "expressions": {e.name: flat(e.deformation).tolist() for e in expressions()},
        "sample": {"coefficients": [1.5, -0.5], "shape": shape.draw_sample([1.5, -0.5]).tolist()},
    }
    (OUT / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
