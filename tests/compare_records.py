# SPDX-License-Identifier: MPL-2.0
"""Compares two verbose records of the same frames, made on different processors.

Arguments: both records, and the number of frames to compare from the beginning on. Prints the largest differences, and fails if there are
other faces or if a value differs by more than LIMITS.
"""

import json
import sys

# Boxes and landmarks in pixels, blendshapes from 0 to 1.
LIMITS = {"box": 0.05, "landmarks": 0.05, "key_points": 0.05, "blendshapes": 0.005}


def flat(value):
    """The numbers of a list, a table or an object, without those that were not measured."""
    if value is None:
        return []
    if isinstance(value, dict):
        value = list(value.values())
    return [number for part in value for number in flat(part)] if isinstance(value, list) else [value]


def frames(path, count):
    with open(path) as file:
        frames = json.load(file)["frames"]
    assert len(frames) >= count, f"{path}: {len(frames)} frames"
    return [(frame["pts"], frame["tracked_objects"]) for frame in frames[:count]]


def main(one, other, count):
    worst = {}
    for (pts, a), (same_pts, b) in zip(frames(one, count), frames(other, count), strict=True):
        assert pts == same_pts, f"frames at {pts} and {same_pts}"
        assert a, f"frame at {pts}: no face"
        assert [face["id"] for face in a] == [face["id"] for face in b], f"frame at {pts}: other faces"
        for face, same in zip(a, b, strict=True):
            assert face.keys() == same.keys(), f"frame at {pts}: {face.keys() ^ same.keys()}"
            for name in LIMITS.keys() & face.keys():
                pairs = zip(flat(face[name]), flat(same[name]), strict=True)
                differences = [abs(x - y) for x, y in pairs]
                if differences:
                    worst[name] = max(worst.get(name, 0), *differences)
    assert worst, "nothing was compared"
    print("largest differences:", ", ".join(f"{name} {value:.6f}" for name, value in sorted(worst.items())))
    for name, value in worst.items():
        assert value <= LIMITS[name], f"{name}: {value}"


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
