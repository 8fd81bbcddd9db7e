# SPDX-License-Identifier: MPL-2.0
"""Indexes and tables of real runs, by the package and the command."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from videos import SCRIPTED, clips, forty

import facetrack


def command(*words: Any) -> str:
    """Runs `facetrack index`, and returns its output or its error."""
    done = subprocess.run(["facetrack", "index", *map(str, words)], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else done.stderr


def test_an_index_has_the_statuses_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    forty(tmp_path / "in" / "deep")
    statuses = sorted(facetrack.run(tmp_path / "in", out=tmp_path / "out", **SCRIPTED), key=lambda status: status.id)
    table = facetrack.index(tmp_path / "out")
    assert table["id"][0].as_py() == "deep/clip0" and len(table) == 40
    for name in table.column_names:
        assert table[name].to_pylist() == [getattr(status, name) for status in statuses], name


def test_parts_are_merged(tmp_path: Path) -> None:
    folder = clips(tmp_path / "in", 6)
    parts = []
    for shard in range(2):
        list(facetrack.run(folder, out=tmp_path / f"out{shard}", shard=f"{shard}/2", **SCRIPTED))
        parts.append(tmp_path / f"part{shard}.parquet")
        command(tmp_path / f"out{shard}", "--to", parts[shard])
    merged = facetrack.index(*parts)
    assert merged["id"].to_pylist() == [f"clip{number}" for number in range(6)]
    assert facetrack.index(*parts, *parts).equals(merged)
    # A folder after its part: its rows are newer.
    list(facetrack.run(folder, out=tmp_path / "out0", shard="0/2", force=True, **SCRIPTED))
    newer = facetrack.index(*parts, tmp_path / "out0")
    own = facetrack.index(tmp_path / "out0")
    assert newer["id"].equals(merged["id"]) and not newer.equals(merged)
    assert newer.filter(pc.is_in(newer["id"], own["id"])).equals(own)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = clips(tmp_path / "in", 2)
    out = tmp_path / "out"
    list(facetrack.run(folder, out=out, **SCRIPTED))
    (out / "clip0.json.done").write_text('{"key":')
    table = facetrack.index(out)
    assert table["status"].to_pylist() == [None, "complete"]
    assert "cannot be read" in table["message"][0].as_py()
    (out / "clip0.json.done").write_text('{"status": "complete", "frames": "many"}')
    table = facetrack.index(out)
    assert table["status"].to_pylist() == [None, "complete"]
    assert "cannot be read" in table["message"][0].as_py()
    with pytest.raises(facetrack.FileError):
        facetrack.index(tmp_path / "nowhere")


def test_only_markers_of_videos_are_indexed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    list(facetrack.run(clips(tmp_path / "in", 1), out=out, **SCRIPTED))
    # As an interrupted run in parts leaves it.
    parts = out / "clip1.json.parts"
    parts.mkdir()
    shutil.copy(out / "clip0.json.done", parts / "00001.json.done")
    for name in ("gone.json.done", "gone"):
        (out / name).symlink_to("nowhere")
    ours, path = facetrack.index(out), tmp_path / "videos.parquet"
    command(out, "--to", path)
    for table in (ours, pq.read_table(path)):
        assert table.select(["id", "status"]).to_pylist() == [
            {"id": "clip0", "status": "complete"},
            {"id": "gone", "status": None},
        ]
        assert "cannot be read" in table["message"][1].as_py()


# Values that a status file cannot have.
WRONG = (
    f'"frames":{"9" * 30}',
    '"frames":1.5',
    '"frames":true',
    '"frames":"3"',
    '"seconds":true',
    '"seconds":NaN',
    '"seconds":1e999',
    '"message":["x"]',
    '"message":"\\ud800"',
    '"status":7',
)


def nest(folder: Path, count: int) -> None:
    """Makes folders in one another. The path of the last one is too long for the system."""
    name = "d" * 200
    above = os.open(folder, os.O_RDONLY)
    for _ in range(count):
        os.mkdir(name, dir_fd=above)
        below = os.open(name, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)


def test_one_odd_entry_does_not_stop_an_index(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    out = tmp_path / "out"
    list(facetrack.run(clips(tmp_path / "in", 1), out=out, **SCRIPTED))
    for name in ("one", "other"):
        (out / name).mkdir()
        (out / name / "loop").symlink_to(out)
    marker = (out / "clip0.json.done").read_bytes()
    Path(os.fsdecode(os.fsencode(out) + b"/\xff.json.done")).write_bytes(marker)
    os.mkfifo(out / "pipe.json.done")
    (out / "zero.json.done").symlink_to("/dev/zero")
    (out / "nested.json.done").write_text("[" * 100_000)
    for number, value in enumerate(WRONG):
        (out / f"wrong{number}.json.done").write_text(f'{{"key":"k",{value}}}')
    nest(out, 40)
    table = facetrack.index(out)
    statuses = dict(zip(table["id"].to_pylist(), table["status"].to_pylist()))
    wrong = {f"wrong{number}": None for number in range(len(WRONG))}
    assert statuses == {"clip0": "complete", "nested": None, "pipe": None, "zero": None, **wrong}
    command(out, "--to", tmp_path / "videos.parquet")
    for unread in (table, pq.read_table(tmp_path / "videos.parquet")):
        messages = unread["message"].to_pylist()
        assert sum("cannot be read" in str(message) for message in messages) == len(statuses) - 1
    assert caplog.text.count("File name too long") == 1
    assert caplog.text.count("a link to a folder above it") == 2
    assert caplog.text.count("its name is not UTF-8") == 1


def test_a_cut_record_is_not_indexed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    list(facetrack.run(clips(tmp_path / "in", 1), out=out, **SCRIPTED))
    record = out / "clip0.json"
    record.write_bytes(record.read_bytes()[:-300])
    faces = tmp_path / "faces.parquet"
    assert "it is cut off" in command(out, "--faces", faces)
    assert not faces.exists()


def test_only_parquet_files_are_replaced(tmp_path: Path) -> None:
    link = tmp_path / "link.parquet"
    link.symlink_to("target.parquet")
    (tmp_path / "out").mkdir()
    command(tmp_path / "out", "--to", link)
    assert link.is_symlink() and len(pq.read_table(tmp_path / "target.parquet")) == 0
    assert "not a regular file" in command(tmp_path / "out", "--to", "/dev/null")
    record = tmp_path / "clip.json"
    record.write_text("{}")
    assert "no Parquet file" in command(tmp_path / "out", "--to", record)
    assert record.read_text() == "{}"


def test_the_package_reads_what_the_command_writes(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    forty(tmp_path / "in" / "deep")
    out = tmp_path / "out"
    list(facetrack.run(tmp_path / "in", out=out, **SCRIPTED))
    path = tmp_path / "videos.parquet"
    assert command(out, "--to", path) == f"40 videos in {path}\n"
    ours = facetrack.index(out)
    assert pq.read_table(path).equals(ours)
    assert facetrack.index(path).equals(ours)
    # An index can be made of an index.
    command(path, "--to", tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()
    # A damaged status file has only a place and a message.
    (out / "deep/clip0.json.done").write_text('{"key":')
    command(out, "--to", path)
    rows, wanted = (table.drop_columns("message").to_pylist() for table in (pq.read_table(path), facetrack.index(out)))
    assert rows == wanted and rows[0]["status"] is None
    assert "cannot be read" in pq.read_table(path)["message"][0].as_py()


def test_the_command_merges_parts(tmp_path: Path) -> None:
    folder = clips(tmp_path / "in", 4)
    parts = []
    for shard in range(2):
        list(facetrack.run(folder, out=tmp_path / f"out{shard}", shard=f"{shard}/2", **SCRIPTED))
        parts.append(tmp_path / f"part{shard}.parquet")
        command(tmp_path / f"out{shard}", "--to", parts[shard])
    list(facetrack.run(folder, out=tmp_path / "out0", shard="0/2", force=True, **SCRIPTED))
    sources = [*parts, tmp_path / "out0"]
    command(*sources, "--to", tmp_path / "merged.parquet")
    assert pq.read_table(tmp_path / "merged.parquet").equals(facetrack.index(*sources))


def wanted_faces(videos: pa.Table, columns: list[str]) -> pa.Table:
    """The faces of all videos with a record, read one by one."""
    recorded = videos.filter(pc.is_in(videos["status"], pa.array(["complete", "truncated"])))
    tables = [facetrack.read(record, columns=columns).faces for record in recorded["record"].to_pylist()]
    return pa.concat_tables(tables, promote_options="permissive")


@pytest.mark.parametrize("columns", [[], ["blendshapes.*", "pose.*", "origin", "landmarks"], ["*"]])
def test_the_faces_of_all_videos_are_one_table(tmp_path: Path, columns: list[str]) -> None:
    folder, _ = forty(tmp_path / "in")
    out, path = tmp_path / "out", tmp_path / "faces.parquet"
    list(facetrack.run(folder, out=out, set={"script": "face; landmarks", "verbose": True}, engine="scripted"))
    options = ["--columns", *columns] if columns else ["--landmarks"]
    said = command(out, "--to", tmp_path / "videos.parquet", "--faces", path, *options)
    videos = pq.read_table(tmp_path / "videos.parquet")
    faces, wanted = pq.read_table(path), wanted_faces(videos, columns or ["*"])
    if not columns:
        older = ("source", "label", "is_speaking", "speaking_confidence", "speaking_method")
        wanted = wanted.drop_columns([name for name in wanted.column_names if name.startswith(("speaking_", *older))])
    assert f"{len(wanted)} faces in {path}" in said and len(faces) == sum(videos["faces"].to_pylist()) > 34
    assert faces.column_names[:5] == ["video", "frame", "seconds", "pts", "id"]
    assert faces.equals(wanted)


def test_the_table_of_a_run_is_one_of_all_videos(tmp_path: Path) -> None:
    """30 clips and 6 files that are no video, as one table in Arrow, pandas and polars."""
    folder, broken = forty(tmp_path / "in")
    for number in range(30, 34):
        (folder / f"clip{number}.mp4").unlink()
    path = tmp_path / "study.parquet"
    options: dict[str, Any] = {"out": tmp_path / "out", "engine": "scripted", "set": {"script": "face; landmarks"}}
    options |= {"table": path, "columns": "blendshapes.*,pose.*"}
    with facetrack.run(folder, **options) as run:
        list(run)
    assert run.summary is not None and run.summary.table == str(path) and run.exit_code == 1
    found = pq.read_table(path)
    videos = set(found["video"].to_pylist())
    assert {f"clip{number}" for number in range(30)} <= videos and len(videos - broken) == 30
    assert found.column_names[:6] == ["video", "frame", "seconds", "pts", "id", "pose.yaw"]
    assert found.column_names[-1].startswith("blendshapes.")
    for table in (pd.read_parquet(path), polars.read_parquet(path)):
        assert list(table.columns) == found.column_names and len(table) == len(found)
        assert table["seconds"].to_list() == [pts / 1e9 for pts in found["pts"].to_pylist()]
        assert table["blendshapes.jawOpen"].to_list() == found["blendshapes.jawOpen"].to_pylist()
    # `facetrack index` writes the same file.
    again = tmp_path / "again.parquet"
    command(tmp_path / "out", "--to", tmp_path / "videos.parquet", "--faces", again, "--columns", "blendshapes.*", "pose.*")
    assert again.read_bytes() == path.read_bytes()
    # Another run renews it, with the videos of the earlier one.
    list(facetrack.run(folder, **options))
    assert again.read_bytes() == path.read_bytes()


# Options of a run with a table, and a part of the message that refuses them.
NO_TABLES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"shard": "0/2"}, "each shard would replace the table of the others"),
    ({"columns": "jawOpen"}, "Near: blendshapes.jawOpen"),
    ({"columns": "gaze.*"}, "--columns gaze.*: the engine did not measure it"),
    ({"set": {"format": "reduced"}}, "Leave out format=reduced"),
    ({"table": "nowhere/study.parquet"}, "there is no such folder"),
    ({"table": "notes.parquet"}, "it exists, and is no Parquet file with these columns"),
)


@pytest.mark.parametrize("options,message", NO_TABLES)
def test_a_table_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.parquet").write_text("my notes")
    clips(tmp_path / "in", 1)
    with pytest.raises(facetrack.Refused, match=re.escape(message)):
        list(facetrack.run("in", **{"out": "out", "table": "study.parquet", **SCRIPTED, **options}))
    assert not (tmp_path / "out").exists() and not (tmp_path / "study.parquet").exists()


def test_the_command_names_what_cannot_be_read(tmp_path: Path) -> None:
    out = tmp_path / "out"
    list(facetrack.run(clips(tmp_path / "in", 2), out=out, **SCRIPTED))
    path = tmp_path / "faces.parquet"
    command(out, "--faces", path)
    older = path.read_bytes()
    (out / "clip1.json").unlink()
    assert f"{out / 'clip1.json'}: No such file" in command(out, "--faces", path)
    assert path.read_bytes() == older and not list(tmp_path.glob("*.partial"))
    assert "nowhere: " in command(tmp_path / "nowhere")
    assert "no column matches" in command(out, "--faces", path, "--columns", "jawOpen")
