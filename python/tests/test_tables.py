# SPDX-License-Identifier: MPL-2.0
"""`facetrack.read`, compared with the JSON."""

import json
import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any, Optional

import numpy as np
import polars
import pyarrow as pa
import pytest
from videos import SCRIPTED, SLOW, clip, sample

import facetrack


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """The values of an object by the names of their columns."""
    values: dict[str, Any] = {}
    for key, it in value.items():
        if isinstance(it, dict):
            values |= flat(it, f"{prefix}{key}.")
        elif it is not None:
            values[prefix + key] = it
    return values


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list) and not any(isinstance(it, str) for it in wanted):
        rounded = np.array([number for row in wanted for number in (row if isinstance(row, list) else [row])], "f4")
        return bool(np.array_equal(np.array(found, "f4"), rounded))
    return bool(found == wanted and type(found) is type(wanted))


def check_place(row: dict[str, Any], frame: dict[str, Any]) -> None:
    """Checks and removes the columns that are no keys of the record."""
    assert row.pop("video") and row.pop("seconds") == frame["pts"] / 1e9


def compare(tables: facetrack.Tables[pa.Table], frames: list[Any]) -> None:
    rows = tables.frames.to_pylist()
    assert len(rows) == len(frames)
    for row, frame in zip(rows, frames):
        faces = frame.pop("tracked_objects")
        assert row.pop("faces") == len(faces)
        check_place(row, frame)
        assert flat(row) == flat(frame)
        frame["tracked_objects"] = faces
    faces = [(frame, face) for frame in frames for face in frame["tracked_objects"]]
    rows = tables.faces.to_pylist()
    assert len(rows) == len(faces)
    for row, (frame, face) in zip(rows, faces):
        wanted = flat({**face, "frame": frame["frame"], "pts": frame["pts"]})
        check_place(row, frame)
        found = {name: value for name, value in row.items() if value is not None}
        assert set(found) == set(wanted)
        for name, value in wanted.items():
            assert same(found[name], value), (name, found[name], value)


def record(out: Path, video: Optional[Path] = None, **options: Any) -> Path:
    """Tracks a video. Skips if the models of the engine are missing."""
    try:
        (status,) = facetrack.run(video or sample(), out=out, **options)
    except facetrack.RunError as error:
        pytest.skip(str(error))
    return Path(status.record)


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("engine", ["mediapipe", "opencv-yunet", "openseeface", "eos", "insightface"])
def test_tables_have_every_value(tmp_path: Path, engine: str, verbose: bool) -> None:
    path = record(tmp_path, engine=engine, set={"verbose": verbose})
    tables = facetrack.read(path, columns="*")
    written = json.loads(path.read_text())
    assert tables.finished and tables.metadata == written["metadata"]
    compare(tables, written["frames"])
    empty = [{**frame, "tracked_objects": []} for frame in written["frames"]]
    path.write_text(json.dumps({**written, "frames": empty}))
    assert facetrack.read(path, columns="*").faces.schema == tables.faces.schema
    if verbose and engine == "mediapipe":
        assert len(tables.faces["landmarks"][0]) == 3 * 478
        assert tables.faces.schema.field("landmarks").type == pa.list_(pa.float32())


def test_every_library_and_format(tmp_path: Path) -> None:
    dense = facetrack.read(record(tmp_path / "dense", set={"verbose": True}))
    path = record(tmp_path / "lines", set={"verbose": True, "format": "jsonl"})
    lines = facetrack.read(path)
    assert lines.finished and lines.faces.equals(dense.faces) and lines.frames.equals(dense.frames)
    assert lines.metadata["total_frames"] == dense.metadata["total_frames"] == len(lines.frames)
    frame = facetrack.read(path, to="pandas").faces
    assert frame["landmarks"][0].reshape(-1, 3).shape == (478, 3)
    assert polars.from_arrow(lines.faces).equals(facetrack.read(path, to="polars").faces)
    with pytest.raises(ValueError, match="not 'excel'"):
        facetrack.read(path, to="excel")  # type: ignore[call-overload]


@pytest.mark.parametrize("form", ["dense", "jsonl"])
def test_cut_records_are_read_as_far_as_they_go(tmp_path: Path, form: str) -> None:
    clip(tmp_path / "clip.mp4", 30)
    path = record(tmp_path, tmp_path / "clip.mp4", engine="scripted", set={"format": form, "script": "face; landmarks"})
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    for length in range(start, len(whole) - 1, len(whole) // 40):
        path.write_bytes(whole[:length])
        tables = facetrack.read(path, columns="*")
        complete = [json.loads(line.rstrip(b",")) for line in whole[start:length].split(b"\n")[:-1]]
        assert not tables.finished
        # A line without its end may be complete.
        assert len(tables.frames) - len(complete) in (0, 1)
        tables = facetrack.Tables(tables.metadata, tables.frames[: len(complete)], tables.faces[: len(complete)], False)
        compare(tables, complete)


def test_a_killed_record_is_read(tmp_path: Path) -> None:
    clip(tmp_path / "clip.mp4", 500)
    run = facetrack.run(tmp_path / "clip.mp4", out=tmp_path, **SLOW)
    partial = tmp_path / "clip.json.parts/record.json.partial"
    # The line of a frame has about 500 bytes, and 64 kB are written at once.
    while not partial.exists() or partial.stat().st_size < 80_000:
        assert run._process is not None and run._process.poll() is None
    run._process.send_signal(signal.SIGKILL)
    with pytest.raises(facetrack.RunError):
        next(run)
    tables = facetrack.read(partial)
    assert not tables.finished and 100 < len(tables.frames) < 500


def test_other_files_are_refused(tmp_path: Path) -> None:
    large = '{"metadata":{"fps":' + "9" * 5000 + "}}"
    for text in ("", "This is no record.\n", '{"frames_analysis":[\n]}', "[1]\n", '{"metadata":', large):
        (tmp_path / "file.json").write_text(text)
        with pytest.raises(facetrack.UnreadableRecord, match="format=dense"):
            facetrack.read(tmp_path / "file.json")


# Metadata and frames with wrong values.
WRONG = (
    ('{"fps":"fast"}', ""),
    ('{"total_frames":-1}', ""),
    ("{}", "5"),
    ("{}", '{"frame":0}'),
    ("{}", '{"frame":0,"tracked_objects":null}'),
    ("{}", '{"frame":0,"tracked_objects":[5]}'),
    ("{}", '{"frame":0,"tracked_objects":[{"id":"obj_1"}]}'),
)


@pytest.mark.parametrize("metadata,frame", WRONG)
def test_wrong_values_are_refused_as_by_the_command(tmp_path: Path, metadata: str, frame: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(f'{{"metadata":{metadata},"frames":[{frame}]}}')
    with pytest.raises(facetrack.UnreadableRecord, match=r"wrong\.json"):
        facetrack.read(path)
    command = ["facetrack", "export", path, "--format", "csv", "--out", tmp_path / "faces.csv"]
    assert subprocess.run(command).returncode == 1


def changed(content: bytes, noise: random.Random) -> bytes:
    """One to three bytes of a record replaced, half of the time by ones that JSON has."""
    text = bytearray(content)
    for _ in range(noise.randint(1, 3)):
        any_byte, of_json = noise.randrange(256), ord(noise.choice('0123456789{}[]",:.-eE'))
        text[noise.randrange(len(text))] = noise.choice((any_byte, of_json))
    return bytes(text)


@pytest.mark.parametrize("form", ["dense", "jsonl"])
def test_damaged_records_are_refused_as_by_the_command(tmp_path: Path, form: str) -> None:
    clip(tmp_path / "clip.mp4", 12)
    options = {"format": form, "verbose": True, "script": "face; landmarks"}
    whole = record(tmp_path, tmp_path / "clip.mp4", engine="scripted", set=options).read_bytes()
    noise, path = random.Random(1), tmp_path / "damaged.json"
    verdicts = set()
    for number in range(300):
        path.write_bytes(changed(whole, noise))
        command = ["facetrack", "export", path, "--format", "csv", "--out", tmp_path / "faces.csv"]
        done = subprocess.run(command, capture_output=True, text=True)
        try:
            tables = facetrack.read(path)
        except facetrack.UnreadableRecord as error:
            assert done.returncode == 1 and str(path) in str(error), (number, error, done.stderr)
            verdicts.add("refused")
            continue
        assert done.returncode == 0, (number, done.stderr)
        assert tables.finished == ("cut off" not in done.stderr), (number, done.stderr)
        assert len(tables.faces) == len((tmp_path / "faces.csv").read_text().splitlines()) - 1, number
        verdicts.add("read")
    assert verdicts == {"refused", "read"}


def test_removed_lines_are_noticed(tmp_path: Path) -> None:
    clip(tmp_path / "clip.mp4", 5)
    path = record(tmp_path, tmp_path / "clip.mp4", **SCRIPTED)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(facetrack.UnreadableRecord, match="it has 4 frames, but its metadata says 5"):
        facetrack.read(path)
    # Without its count it is a record that was not finished.
    path.write_bytes(b"".join(lines).replace(b'"total_frames":5', b'"total_frames":0'))
    assert not facetrack.read(path).finished


def test_a_reformatted_record_is_the_same(tmp_path: Path) -> None:
    clip(tmp_path / "clip.mp4", 5)
    path = record(tmp_path, tmp_path / "clip.mp4", **SCRIPTED)
    whole = facetrack.read(path)
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=2))
    assert facetrack.read(path) == whole


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "pipe.json", Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            facetrack.read(path)
