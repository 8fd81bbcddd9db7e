# SPDX-License-Identifier: MPL-2.0
"""`facetrack export`, read back with pandas and pyarrow, and compared with the record."""

import csv
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import lupa
import nkparser
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from videos import clip, sample

import facetrack

ENGINES = ("mediapipe", "eos", "openseeface", "opencv-yunet", "insightface")

# As in recordings of the app.
LIVE_LINK = [
    "Timecode",
    "BlendShapeCount",
    "EyeBlinkLeft",
    "EyeLookDownLeft",
    "EyeLookInLeft",
    "EyeLookOutLeft",
    "EyeLookUpLeft",
    "EyeSquintLeft",
    "EyeWideLeft",
    "EyeBlinkRight",
    "EyeLookDownRight",
    "EyeLookInRight",
    "EyeLookOutRight",
    "EyeLookUpRight",
    "EyeSquintRight",
    "EyeWideRight",
    "JawForward",
    "JawRight",
    "JawLeft",
    "JawOpen",
    "MouthClose",
    "MouthFunnel",
    "MouthPucker",
    "MouthRight",
    "MouthLeft",
    "MouthSmileLeft",
    "MouthSmileRight",
    "MouthFrownLeft",
    "MouthFrownRight",
    "MouthDimpleLeft",
    "MouthDimpleRight",
    "MouthStretchLeft",
    "MouthStretchRight",
    "MouthRollLower",
    "MouthRollUpper",
    "MouthShrugLower",
    "MouthShrugUpper",
    "MouthPressLeft",
    "MouthPressRight",
    "MouthLowerDownLeft",
    "MouthLowerDownRight",
    "MouthUpperUpLeft",
    "MouthUpperUpRight",
    "BrowDownLeft",
    "BrowDownRight",
    "BrowInnerUp",
    "BrowOuterUpLeft",
    "BrowOuterUpRight",
    "CheekPuff",
    "CheekSquintLeft",
    "CheekSquintRight",
    "NoseSneerLeft",
    "NoseSneerRight",
    "TongueOut",
    "HeadYaw",
    "HeadPitch",
    "HeadRoll",
    "LeftEyeYaw",
    "LeftEyePitch",
    "LeftEyeRoll",
    "RightEyeYaw",
    "RightEyePitch",
    "RightEyeRoll",
]


def export(record: Path, form: str, *options: Any) -> Path:
    """Exports a record next to it."""
    out = record.with_name(f"out.{form}")
    subprocess.run(["facetrack", "export", record, "--format", form, "--out", out, *map(str, options)], check=True)
    return out


def refusal(record: Path, form: str, *options: Any) -> str:
    """The error of an export, which leaves no file."""
    out = record.with_name("refused")
    line = ["facetrack", "export", record, "--format", form, "--out", out, *map(str, options)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode != 0 and not list(record.parent.glob("refused*"))
    return done.stderr


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Verbose records of a real video, by engine. Engines whose models are missing are left out."""
    found = {}
    for engine in ENGINES:
        try:
            out = tmp_path_factory.mktemp(engine)
            (status,) = facetrack.run(sample(), out=out, engine=engine, set={"verbose": True})
            found[engine] = Path(status.record)
        except facetrack.RunError as error:
            print(f"SKIPPED: {error}")
    return found


def of(records: dict[str, Path], engine: str) -> Path:
    if engine not in records:
        pytest.skip(f"the models of {engine} are missing")
    return records[engine]


def scripted(folder: Path, script: str, frames: int = 20, **settings: Any) -> Path:
    """The record of a script."""
    folder.mkdir(exist_ok=True)
    clip(folder / "clip.mp4", frames)
    options = {"script": script, "verbose": True, **settings}
    (status,) = facetrack.run(folder / "clip.mp4", out=folder, engine="scripted", set=options)
    return Path(status.record)


def faces_of(record: Path) -> list[tuple[Any, Any]]:
    """Each frame of a record with each of its faces."""
    frames = json.loads(record.read_text())["frames"]
    return [(frame, face) for frame in frames for face in frame["tracked_objects"]]


@pytest.mark.parametrize("engine", ENGINES)
def test_tidy_tables_are_those_of_the_package(records: dict[str, Path], engine: str) -> None:
    record = of(records, engine)
    wanted = facetrack.read(record).faces
    found = pq.read_table(export(record, "parquet", "--landmarks"))
    assert found.column_names == wanted.column_names
    for name in wanted.column_names:
        assert found[name].type == wanted[name].type and found[name].to_pylist() == wanted[name].to_pylist(), name
    # CSV has the same values. A list has a column for each of its numbers.
    table = pd.read_csv(export(record, "csv", "--landmarks"))
    for name in found.column_names:
        values = found[name].to_pylist()
        if not any(value is not None and value != [] for value in values):
            assert any(column == name or column.startswith(f"{name}.") for column in table.columns), name
        elif pa.types.is_list(found[name].type):
            columns = table[[column for column in table.columns if column.startswith(f"{name}.")]]
            # Decimal notation has fewer digits than the binary number that it stands for.
            numbers = columns.to_numpy("float32" if pa.types.is_float32(found[name].type.value_type) else None)
            rows = [row for row, value in zip(numbers.tolist(), values) if value and len(value) == columns.shape[1]]
            assert rows and rows == [value for value in values if value and len(value) == columns.shape[1]], name
        else:
            same = pd.Series(values, name=name)
            pd.testing.assert_series_equal(table[name], same, check_dtype=False, rtol=1e-12)


@pytest.mark.parametrize("form", ["parquet", "csv", "openface-csv"])
@pytest.mark.parametrize("engine", ENGINES)
def test_columns_do_not_depend_on_what_was_found(records: dict[str, Path], tmp_path: Path, engine: str, form: str) -> None:
    content = json.loads(of(records, engine).read_text())
    headers = []
    for name in ("whole", "empty"):
        record = tmp_path / f"{name}.json"
        record.write_text(json.dumps(content))
        options = ["--landmarks"] if form != "openface-csv" else []
        out = export(record, form, *options)
        headers.append(pq.read_schema(out) if form == "parquet" else out.read_text().partition("\n")[0])
        for frame in content["frames"]:
            frame["tracked_objects"] = []
    assert headers[0] == headers[1]


@pytest.mark.parametrize("verbose", [False, True])
def test_the_tables_of_a_folder_are_read_as_one(tmp_path: Path, verbose: bool) -> None:
    """`a` has no face, `b` has one."""
    clip(tmp_path / "a.mp4", 5)
    (tmp_path / "b.mp4").symlink_to(sample())
    try:
        videos = [tmp_path / "a.mp4", tmp_path / "b.mp4"]
        statuses = list(facetrack.run(videos, out=tmp_path / "out", set={"verbose": verbose}))
    except facetrack.RunError as error:
        pytest.skip(str(error))
    assert [status.faces > 0 for status in sorted(statuses, key=lambda it: it.id)] == [False, True]
    tables = export(tmp_path / "out", "parquet", "--landmarks")
    wanted = facetrack.read(tmp_path / "out/b.json").faces
    assert facetrack.read(tmp_path / "out/a.json").faces.schema == wanted.schema
    for found in (pd.read_parquet(tables), polars.read_parquet(tables)):
        assert list(found.columns) == wanted.column_names and set(found["video"].to_list()) == {"b"}
        assert found["blendshapes.jawOpen"].to_list() == wanted["blendshapes.jawOpen"].to_pylist()
        assert found["pose.yaw"].to_list() == wanted["pose.yaw"].to_pylist()
        assert ("origin" in found.columns) == verbose


def test_landmarks_are_written_on_request(records: dict[str, Path]) -> None:
    for engine, records_landmarks in (("mediapipe", {"landmarks"}), ("openseeface", {"landmarks", "landmark_confidence"})):
        less, all_ = (pq.read_table(export(of(records, engine), "parquet", *more)) for more in ((), ("--landmarks",)))
        assert set(all_.column_names) - set(less.column_names) == records_landmarks


def test_columns_are_chosen(records: dict[str, Path]) -> None:
    record = of(records, "mediapipe")
    patterns = ["blendshapes.*", "pose.*", "is_speaking"]
    found = pq.read_table(export(record, "parquet", "--columns", *patterns))
    wanted = facetrack.read(record, columns=patterns).faces
    assert found.equals(wanted) and found["video"][0].as_py() == record.stem
    assert found.column_names[4:9] == ["id", "pose.yaw", "pose.pitch", "pose.roll", "pose.matrix"]
    assert found.column_names[-1] == "is_speaking"
    assert "--columns age: the engine did not measure it" in refusal(record, "csv", "--columns", "age")
    assert "only for csv and parquet" in refusal(record, "nuke", "--columns", "pose.*")


def test_folders_are_exported(tmp_path: Path) -> None:
    for name in ("a/one.mp4", "two.mp4"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        clip(tmp_path / "in" / name, 5)
    list(facetrack.run(tmp_path / "in", out=tmp_path / "out", engine="scripted", set={"script": "face"}))
    export(tmp_path / "out", "csv")
    tables = tmp_path / "out.csv"
    assert sorted(str(path.relative_to(tables)) for path in tables.rglob("*.csv")) == ["a/one.csv", "two.csv"]
    assert len(pd.read_csv(tables / "a/one.csv")) == 5
    # A record that cannot be exported is left out.
    (tmp_path / "out/two.json").write_text("{}")
    line = ["facetrack", "export", tmp_path / "out", "--format", "parquet", "--out", tmp_path / "more"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 1 and "left out: " in done.stderr and "two.json" in done.stderr
    assert [path.name for path in (tmp_path / "more").rglob("*.parquet")] == ["one.parquet"]


def test_landmarks_are_a_list_or_columns(records: dict[str, Path]) -> None:
    record = of(records, "mediapipe")
    table = pq.read_table(export(record, "parquet", "--landmarks"))
    wanted = facetrack.read(record).faces["landmarks"].to_pylist()
    assert np.allclose(table["landmarks"].to_pylist(), wanted, atol=1e-3)
    columns = pd.read_csv(export(record, "csv", "--landmarks")).filter(like="landmarks.")
    assert list(columns.columns[-3:]) == ["landmarks.477.x", "landmarks.477.y", "landmarks.477.z"]
    assert np.allclose(columns.to_numpy(), wanted, atol=1e-3)
    assert "only for csv and parquet" in refusal(record, "openface-csv", "--landmarks")


def test_live_link_has_the_columns_of_the_app(records: dict[str, Path]) -> None:
    record = of(records, "mediapipe")
    table = pd.read_csv(export(record, "livelink-csv"))
    assert list(table.columns) == LIVE_LINK
    faces = faces_of(record)
    assert len(table) == len(faces) and set(table["BlendShapeCount"]) == {61}
    for row, (frame, face) in zip(table.to_dict("records"), faces):
        hours, minutes, seconds, frames = map(float, row["Timecode"].split(":"))
        time = hours * 3600 + minutes * 60 + seconds + frames / 60
        assert time == pytest.approx(frame["pts"] / 1e9, abs=1e-5)
        shapes = face["blendshapes"]
        for name in LIVE_LINK[2:53]:
            assert row[name] == pytest.approx(shapes[name[0].lower() + name[1:]], abs=1e-7), name
        assert row["TongueOut"] == 0
        pose = face["pose"]
        head = [row["HeadYaw"], row["HeadPitch"], row["HeadRoll"]]
        assert np.allclose(head, np.radians([pose["yaw"], -pose["pitch"], pose["roll"]]), atol=1e-4)
        yaw = 0.61 * (shapes["eyeLookInLeft"] - shapes["eyeLookOutLeft"])
        pitch = 0.61 * (shapes["eyeLookDownRight"] - shapes["eyeLookUpRight"])
        assert np.allclose([row["LeftEyeYaw"], row["RightEyePitch"]], [yaw, pitch], atol=1e-6)


def test_live_link_rows_without_a_face_are_those_of_the_app(tmp_path: Path) -> None:
    path = export(scripted(tmp_path, "face from=3 to=5; landmarks", 8), "livelink-csv")
    with path.open(newline="") as file:
        _, *rows = csv.reader(file)
    assert [row[1] for row in rows] == ["0", "0", "61", "61", "61", "0", "0", "0"]
    assert [len(row) for row in rows] == [2, 2, 63, 63, 63, 2, 2, 2]
    assert rows[7][0] == "00:00:00:16.800"
    assert len(pd.read_csv(path)) == 8


def test_live_link_without_a_pose_warns(tmp_path: Path) -> None:
    for name, has_pose in (("bare", False), ("whole", True)):
        record = scripted(tmp_path / name, "face; landmarks", verbose=False)
        if not has_pose:
            record.write_text(re.sub(r',"pose":\{[^}]*\}', "", record.read_text()))
        line = ["facetrack", "export", record, "--format", "livelink-csv", "--out", tmp_path / "out.csv"]
        said = subprocess.run(line, capture_output=True, text=True, check=True).stderr
        assert ("it has no head pose" in said) != has_pose, said


def test_live_link_needs_one_face_and_blendshapes(tmp_path: Path, records: dict[str, Path]) -> None:
    record = scripted(tmp_path, "face x=0.2 size=0.2; face x=0.7; landmarks")
    said = refusal(record, "livelink-csv", "--faces", "all")
    assert "2 are selected: obj_1, obj_2" in said
    boxes = {face["id"]: face["bbox_width"] for _, face in faces_of(record)}
    largest = max(boxes, key=lambda id: boxes[id])
    wanted = export(record, "livelink-csv", "--faces", largest).read_bytes()
    assert export(record, "livelink-csv").read_bytes() == wanted
    assert "there is no obj_7, but obj_1, obj_2" in refusal(record, "csv", "--faces", "obj_7")
    assert "has no blendshapes" in refusal(of(records, "opencv-yunet"), "livelink-csv")


def openface_rotation(matrix: Any) -> list[float]:
    """Rx, Ry, Rz of a rotation in OpenFace's axes, as its RotationMatrix2Euler computes them."""
    flip = np.diag([1, -1, -1])
    turned = flip @ np.array(matrix)[:3, :3] @ flip
    turned /= np.linalg.norm(turned[:, 0])
    q0 = np.sqrt(1 + turned.trace()) / 2
    q1, q2, q3 = ((turned[i, j] - turned[j, i]) / (4 * q0) for i, j in ((2, 1), (0, 2), (1, 0)))
    pitch = np.arctan2(2 * (q0 * q1 - q2 * q3), q0**2 - q1**2 - q2**2 + q3**2)
    roll = np.arctan2(2 * (q0 * q3 - q1 * q2), q0**2 + q1**2 - q2**2 - q3**2)
    return [pitch, np.arcsin(2 * (q0 * q2 + q1 * q3)), roll]


def test_openface_has_its_columns(records: dict[str, Path]) -> None:
    record = of(records, "mediapipe")
    table = pd.read_csv(export(record, "openface-csv"))
    position, rotation = (["pose_Tx", "pose_Ty", "pose_Tz"], ["pose_Rx", "pose_Ry", "pose_Rz"])
    assert list(table.columns) == ["frame", "face_id", "timestamp", "confidence", "success", *position, *rotation]
    faces = faces_of(record)
    assert len(table) == len(faces) and set(table["face_id"]) == {0} and set(table["success"]) == {1}
    for row, (frame, face) in zip(table.to_dict("records"), faces):
        matrix = face["pose"]["matrix"]
        x, y, z = (matrix[axis][3] * 10 for axis in range(3))
        assert np.allclose([row[name] for name in position], [x, -y, -z], rtol=1e-5)
        assert np.allclose([row[name] for name in rotation], openface_rotation(matrix), atol=1e-3)
        assert row["confidence"] == pytest.approx(face["confidence"], abs=1e-3)
        assert row["timestamp"] == pytest.approx(frame["pts"] / 1e9)
    # A face in front of the camera.
    assert (table["pose_Tz"] > 0).all()


def test_openface_landmarks_are_those_of_ibug(records: dict[str, Path]) -> None:
    record = of(records, "eos")
    table = pd.read_csv(export(record, "openface-csv"))
    points = [f"{axis}_{point}" for axis in "xy" for point in range(68)]
    assert list(table.columns)[-136:] == points and "pose_Tx" not in table
    face = faces_of(record)[0][1]
    assert np.allclose(table.loc[0, points].to_numpy(float).reshape(2, 68).T, np.array(face["landmarks"])[:, :2], atol=1e-3)


def test_openface_frames_without_a_face_have_no_success(tmp_path: Path) -> None:
    table = pd.read_csv(export(scripted(tmp_path, "face from=3; landmarks", 5), "openface-csv"))
    assert table["success"].tolist() == [0, 0, 1, 1, 1]
    assert table["pose_Rx"].isna().tolist() == [True, True, False, False, False]


@pytest.mark.parametrize("form, options", [("openface-csv", []), ("csv", ["--landmarks"]), ("nuke", []), ("csv", [])])
def test_missing_landmarks_are_named(tmp_path: Path, form: str, options: list[str]) -> None:
    for script, verbose, lacks in [("face; landmarks", True, False), ("face; landmarks", False, True)]:
        record = scripted(tmp_path / str(verbose), script, 3, verbose=verbose)
        line = ["facetrack", "export", record, "--format", form, "--out", record.with_name("out"), *options]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        is_named = "recorded without landmarks" in done.stderr
        assert is_named == (lacks and (form, options) != ("csv", []))


def columns_of(path: Path) -> pd.DataFrame:
    return pd.read_csv(path).select_dtypes("number").drop(columns=["frame", "pts"])


def test_values_are_interpolated(records: dict[str, Path]) -> None:
    record = of(records, "mediapipe")
    before = pd.read_csv(export(record, "csv"))
    for rate in (60, 24, 10):
        after = pd.read_csv(export(record, "csv", "--fps", rate))
        times = before["pts"][0] + np.arange(len(after)) / rate * 1e9
        assert np.allclose(after["pts"], times, atol=1) and after["frame"].tolist() == list(range(1, len(after) + 1))
        assert before["pts"].iloc[-1] - times[-1] < 1e9 / rate
        # Times within a millisecond are the same.
        for name in ("blendshapes.jawOpen", "box.0", "pose.yaw"):
            wanted = np.interp(times, before["pts"], before[name])
            step = before[name].diff().abs().max()
            assert np.allclose(after[name], wanted, atol=0.05 * step + 1e-5), name


def test_smoothing_is_a_gaussian(records: dict[str, Path]) -> None:
    record = of(records, "mediapipe")
    before, after = (columns_of(export(record, "csv", *options)) for options in ((), ("--smooth", 0.05)))
    times = pd.read_csv(export(record, "csv"))["pts"].to_numpy() / 1e9
    distance = np.abs(times[:, None] - times)
    assert before["confidence"].equals(after["confidence"])
    for name in before.filter(regex=r"^(box\.|pose\.|blendshapes\.)"):
        deviation = 0.0125 if name.startswith("blendshapes.") else 0.05
        weights = np.where(distance <= 3 * deviation, np.exp(-0.5 * (distance / deviation) ** 2), 0)
        wanted = (weights / weights.sum(axis=1, keepdims=True)) @ before[name].to_numpy()
        assert np.allclose(after[name].to_numpy(), wanted, atol=1e-3), name
    assert after["box.0"].diff().abs().sum() < before["box.0"].diff().abs().sum()


def test_unfinished_and_other_records(tmp_path: Path) -> None:
    record = scripted(tmp_path, "face; landmarks")
    whole = export(record, "csv").read_text()
    partial = tmp_path / "clip.json.partial"
    partial.write_bytes(record.read_bytes()[:-400])
    cut = export(partial, "csv").read_text()
    assert whole.startswith(cut) and len(cut.splitlines()) == 20
    lines = scripted(tmp_path / "lines", "face; landmarks", format="jsonl")
    assert export(lines, "csv").read_text() == whole
    reduced = scripted(tmp_path / "reduced", "face; landmarks", format="reduced")
    assert "it is a reduced record" in refusal(reduced, "csv")
    assert "No such file" in refusal(tmp_path / "nowhere.json", "csv")
    bare = pd.read_csv(export(scripted(tmp_path / "bare", "face", verbose=False), "csv"))
    assert "origin" not in bare and len(bare) == 20


@pytest.mark.parametrize("option", ["--fps", "--smooth"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "fast"])
def test_numbers_are_checked(tmp_path: Path, option: str, value: str) -> None:
    assert "it is not a number above 0" in refusal(tmp_path / "any.json", "csv", f"{option}={value}")


POINTS = ("right-eye", "left-eye", "nose", "mouth-right", "mouth-left", "chin")


def with_faces(record: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The metadata of a record with one face, and its frames with the face."""
    text = json.loads(record.read_text())
    frames = [frame for frame in text["frames"] if frame["tracked_objects"]]
    assert all(len(frame["tracked_objects"]) == 1 for frame in frames)
    return text["metadata"], frames


def boxes(frames: list[dict[str, Any]]) -> np.ndarray:
    return np.array([frame["tracked_objects"][0]["box"] for frame in frames])


def curves_of_nuke(text: str) -> list[dict[int, float]]:
    """The curves of a knob as values by frame."""
    curves = []
    for curve in re.findall(r"\{curve(?: K)?([^}]*)\}", text):
        keys, frame = {}, 0
        for word in curve.split():
            if word.startswith("x"):
                frame = int(word[1:]) - 1
            else:
                frame += 1
                keys[frame] = float(word)
        curves.append(keys)
    return curves


@pytest.mark.parametrize("engine", ["mediapipe", "opencv-yunet"])
def test_nuke_reads_boxes_and_poses(records: dict[str, Path], engine: str) -> None:
    record = of(records, engine)
    metadata, frames = with_faces(record)
    script = nkparser.Script.from_file(export(record, "nuke", "--margin", 0.5))
    nodes = {node.class_name: node for node in script.all_nodes()}
    left, bottom, right, top = curves_of_nuke(nodes["Crop"].get_string("box"))
    assert list(left) == [frame["frame"] for frame in frames]
    x, y, width, height = boxes(frames).T
    for curve, want in (
        (left, x - width / 2),
        (right, x + 1.5 * width),
        (top, metadata["height"] - (y - height / 2)),
        (bottom, metadata["height"] - (y + 1.5 * height)),
    ):
        assert np.allclose(list(curve.values()), want, atol=0.001)
    if engine == "mediapipe":
        poses = [frame["tracked_objects"][0]["pose"] for frame in frames]
        turned = curves_of_nuke(nodes["Axis2"].get_string("rotate"))
        for curve, name in zip(turned, ("pitch", "yaw", "roll"), strict=True):
            assert np.allclose(list(curve.values()), [pose[name] for pose in poses], atol=0.001)


def settings(path: Path) -> Any:
    """The tools of Fusion's setting, read by Lua."""
    lua = lupa.LuaRuntime()
    lua.execute("""
        local function tagged(value) return value end
        setmetatable(_G, { __index = function() return tagged end })
        function ordered() return tagged end
    """)
    return lua.eval(path.read_text()).Tools


@pytest.mark.parametrize("engine", ["mediapipe", "openseeface", "eos", "insightface", "opencv-yunet"])
def test_fusion_reads_points_on_a_face(records: dict[str, Path], engine: str) -> None:
    record = of(records, engine)
    metadata, frames = with_faces(record)
    tools = settings(export(record, "fusion"))

    def values(name: str, scale: float) -> np.ndarray:
        keys = {frame: key[1] * scale for frame, key in tools[name].KeyFrames.items()}
        assert sorted(keys) == [frame["frame"] - 1 for frame in frames]
        return np.array([keys[frame] for frame in sorted(keys)])

    x, y, width, height = boxes(frames).T
    center = values("obj_1_box_X", metadata["width"])
    assert np.allclose(center, x + width / 2, atol=0.001)
    assert np.allclose(values("obj_1_box_Width", metadata["width"]), width, atol=0.001)
    down = metadata["height"] - values("obj_1_box_Y", metadata["height"])
    assert np.allclose(down, y + height / 2, atol=0.001)
    assert tools["obj_1_box"].Inputs.Center.SourceOp == "obj_1_box_path"
    names = [name for name in POINTS if f"obj_1_{name.replace('-', '_')}" in tools]
    assert names == list(POINTS if engine != "opencv-yunet" else POINTS[:-1])
    across, up = {}, {}
    for name in names:
        tool = f"obj_1_{name.replace('-', '_')}"
        across[name], up[name] = values(f"{tool}_X", 1), values(f"{tool}_Y", 1)
    assert np.all(across["right-eye"] < across["nose"]) and np.all(across["nose"] < across["left-eye"])
    assert np.all(across["mouth-right"] < across["mouth-left"])
    order = ["right-eye", "nose", "mouth-left", "chin"][: len(names) - 2]
    for above, below in zip(order, order[1:], strict=False):
        assert np.all(up[above] > up[below]), (above, below)


def test_after_effects_has_the_frames_of_the_record(records: dict[str, Path]) -> None:
    record = of(records, "mediapipe")
    metadata, frames = with_faces(record)
    text = export(record, "after-effects", "--points", "box,1", "--first-frame", 10).read_text()
    blocks = {block.split("\n", 1)[0]: block.split("\n")[2:] for block in text.split("\n\n")[2:]}
    keys = {name: np.array([line.split() for line in lines if line.strip()], float) for name, lines in blocks.items()}
    position, scale = keys["Transform\tPosition"], keys["Transform\tScale"]
    assert list(position[:, 0]) == [frame["frame"] + 9 for frame in frames]
    x, y, width, height = boxes(frames).T
    assert np.allclose(position[:, 1:3], np.array([x + width / 2, y + height / 2]).T, atol=0.001)
    size = scale[:, 1:3] / 100 * [metadata["width"], metadata["height"]]
    assert np.allclose(size, np.array([width, height]).T, atol=0.01)
    nose = [frame["tracked_objects"][0]["landmarks"][1][:2] for frame in frames]
    assert np.allclose(keys["Effects\tPoint Control #1\tPoint #2"][:, 1:], nose, atol=0.001)
