# SPDX-License-Identifier: MPL-2.0
"""examples/blender_shape_keys.py in Blender, on a mesh that the test creates."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path

from videos import sample

import facetrack

SCRIPT = Path(__file__).parents[3] / "examples/blender_shape_keys.py"

# Frame rate of the scene.
FPS = 60

MAKE = f"""
import bpy, json, os
bpy.ops.mesh.primitive_cube_add()
face = bpy.context.object
face.name = "Face"
face.shape_key_add(name="Basis")
for name in json.load(open("names.json")):
    face.shape_key_add(name=name)
bpy.context.scene.render.fps = {FPS}
bpy.ops.wm.save_as_mainfile(filepath=os.path.abspath("face.blend"))
"""

# The value of each shape key in each frame of the scene.
READ = """
import bpy, json, os
scene = bpy.context.scene
values = {}
for frame in range(1, scene.frame_end + 1):
    scene.frame_set(frame)
    keys = bpy.data.objects["Face"].data.shape_keys.key_blocks
    values[frame] = {key.name: key.value for key in keys}
json.dump(values, open("values.json", "w"))
"""


def blender(*line: str) -> subprocess.CompletedProcess[str]:
    command = ["blender", "--background", "--factory-startup", "--python-exit-code", "1", *line]
    # Relative paths start from this variable, not from the working directory.
    environment = {**os.environ, "PWD": os.getcwd()}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_every_channel_of_every_frame_is_a_keyframe(tmp_path: Path) -> None:
    with facetrack.run(sample(), out=tmp_path) as run:
        (status,) = run
    line = ["facetrack", "export", "--format", "livelink-csv", status.record, "--out", "clip.csv"]
    # One keyframe for each frame of the scene, so that no value is interpolated.
    subprocess.run([*line, "--fps", str(FPS)], check=True)
    with open("clip.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])[2:54]
    spelled = [name[0].lower() + name[1:] for name in names]
    Path("names.json").write_text(json.dumps(spelled))
    assert blender("--python-expr", MAKE).returncode == 0

    options = ["clip.csv", "--object", "Face", "--save", "animated.blend"]
    done = blender("face.blend", "--python", str(SCRIPT), "--", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    read = blender("animated.blend", "--python-expr", READ)
    assert read.returncode == 0, read.stderr
    values = json.loads(Path("values.json").read_text())
    assert len(rows) > 100 and len(values) >= len(rows)
    for number, row in enumerate(rows, start=1):
        assert int(row["BlendShapeCount"]) > 0
        for name, key in zip(names, spelled):
            assert abs(values[str(number)][key] - float(row[name])) < 1e-5, (number, name)


def test_what_cannot_be_animated_is_named(tmp_path: Path) -> None:
    Path("names.json").write_text('["Smile"]')
    assert blender("--python-expr", MAKE).returncode == 0
    Path("clip.csv").write_text("Timecode,BlendShapeCount,JawOpen\n00:00:00:00.000,61,0.5\n")
    for options, part in (
        (["clip.csv", "--object", "Nose"], "there is no object Nose"),
        (["clip.csv", "--object", "Face"], "no shape key has the name"),
    ):
        done = blender("face.blend", "--python", str(SCRIPT), "--", *options)
        assert done.returncode != 0 and part in done.stdout + done.stderr
