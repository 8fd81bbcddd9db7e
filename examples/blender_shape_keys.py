# SPDX-License-Identifier: MPL-2.0
"""Animates the shape keys of a mesh in Blender from a Live Link Face CSV file.

    facetrack export --format livelink-csv clip.json --out clip.csv
    blender --background face.blend --python examples/blender_shape_keys.py -- \
        clip.csv --object Face --save animated.blend

Shape keys have the names of ARKit's channels, such as jawOpen. Case does not matter. Each row of the file becomes a
keyframe, at its timecode relative to the first row. Rows without a face have no keyframes.
"""

import argparse
import csv
import os
import sys

import bpy


def parse():
    """The arguments after `--`, which Blender passes on."""
    parser = argparse.ArgumentParser(prog="blender_shape_keys.py", description=__doc__.splitlines()[0])
    parser.add_argument("csv", help="Live Link Face CSV file")
    parser.add_argument("--object", help="name of the mesh (the active object)")
    parser.add_argument("--fps", type=float, default=60, help="frames per second of the timecodes (60, as the app writes)")
    parser.add_argument("--start", type=float, default=1, help="frame of the first row (1)")
    parser.add_argument("--save", help="file to save to; without it, nothing is saved")
    return parser.parse_args(sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else [])


def seconds(timecode, fps):
    """The time of hh:mm:ss:ff.sss, where ff.sss counts frames."""
    hours, minutes, whole, frames = timecode.split(":")
    return 3600 * int(hours) + 60 * int(minutes) + int(whole) + float(frames) / fps


def rows(path, fps):
    """The time of each row with a face, relative to the first row, and its values by lower-case channel."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        first = None
        for row in csv.DictReader(file):
            time = seconds(row.pop("Timecode"), fps)
            first = time if first is None else first
            if int(row.pop("BlendShapeCount")) > 0:
                yield time - first, {name.lower(): float(value) for name, value in row.items()}


def mesh(name):
    if name and name not in bpy.data.objects:
        sys.exit(f"there is no object {name}. There are: {', '.join(bpy.data.objects.keys())}")
    found = bpy.data.objects[name] if name else bpy.context.view_layer.objects.active
    if found is None or found.type != "MESH" or not found.data.shape_keys:
        sys.exit("the object has no shape keys. Name a mesh that has some with --object")
    return found


def animate(path, key_blocks, scene_fps, fps, start):
    """Inserts the keyframes. Returns the last frame, or None if no row or no channel was used."""
    keys = {key.name.lower(): key for key in key_blocks}
    last = None
    for time, values in rows(path, fps):
        for name in keys.keys() & values.keys():
            last = start + time * scene_fps
            keys[name].value = values[name]
            keys[name].keyframe_insert("value", frame=last)
    return last


def main():
    arguments = parse()
    scene = bpy.context.scene
    scene_fps = scene.render.fps / scene.render.fps_base
    key_blocks = mesh(arguments.object).data.shape_keys.key_blocks
    last = animate(arguments.csv, key_blocks, scene_fps, arguments.fps, arguments.start)
    if last is None:
        sys.exit(f"{arguments.csv} has no face, or no shape key has the name of one of its channels, such as jawOpen")
    scene.frame_end = max(scene.frame_end, round(last))
    if arguments.save:
        bpy.ops.wm.save_as_mainfile(filepath=os.path.abspath(arguments.save))


main()
