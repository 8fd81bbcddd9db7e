# SPDX-License-Identifier: MPL-2.0
"""Wrong arguments, rows and files raise the exceptions of the package, with a message that names them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import facetrack

HEAD = '{"metadata":{"tracking_engine":"mediapipe"},"frames":[\n'

# Content of files, by their names.
FILES: dict[str, bytes] = {
    "empty": b"",
    "cut.json": b'{"metadata":{"tracking_eng',
    "latin1.json": b'{"metadata":{"video_path":"\xe9t\xe9"},"frames":[\n]}',
    "deep.json": b"[" * 100_000,
    "list.json": b"[1, 2]",
    "number.json": b'{"metadata":5,"frames":[]}',
    "no-frames.json": b'{"metadata":{},"frames":{"a":1}}',
    "options.json": b'{"metadata":{"tracking_engine":"mediapipe","options":[]},"frames":[\n]}',
    "face.json": HEAD.encode() + b'{"frame":1,"tracked_objects":[{"id":5}],"pts":0,"status":"tracked"}\n]}',
    "cut.parquet": b"PAR1\x15\x04",
    "zeros": bytes(5000),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    (tmp_path / "program").write_text("#!/bin/sh\necho all is well\n")
    (tmp_path / "event").write_text('#!/bin/sh\necho \'{"event":"finished","id":5}\'\n')
    for name in ("program", "event"):
        (tmp_path / name).chmod(0o755)
    return tmp_path


# Paths below the folder that no file can be read from, and a part of the message.
NO_FILES = {
    "nowhere": "No such file",
    "folder": "not a regular file",
    "pipe": "not a regular file",
    "loop": "symbolic links",
    "empty/below": "Not a directory",
    "a" * 300: "too long",
    "\ud800": "surrogates",
}

# Values that are no path.
NO_PATHS = (None, 5, b"clip.json", ["clip.json"], {}, "", "a\0b")


@pytest.mark.parametrize("name", NO_FILES)
def test_files_that_cannot_be_opened_are_named(folder: Path, name: str) -> None:
    for read in (facetrack.read, facetrack.index):
        if read is facetrack.index and name == "folder":
            continue
        with pytest.raises(facetrack.FileError, match=NO_FILES[name]) as raised:
            read(folder / name)
        assert name in str(raised.value)


@pytest.mark.parametrize("name", FILES)
def test_files_with_other_content_are_named(folder: Path, name: str) -> None:
    for read, error in ((facetrack.read, facetrack.UnreadableRecord), (facetrack.index, facetrack.UnreadableIndex)):
        with pytest.raises(error) as raised:
            read(folder / name)
        assert str(folder / name) in str(raised.value)


@pytest.mark.parametrize("path", NO_PATHS, ids=repr)
def test_values_that_are_no_path_are_shown(folder: Path, path: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: facetrack.read(path),
        lambda: facetrack.index(path),
        lambda: facetrack.run([path]),
        lambda: facetrack.run([{"uri": path}]),
        lambda: facetrack.run("clip.mp4", command=path),
    ]
    for number, call in enumerate(calls):
        # A row, whose `uri` is missing.
        if number == 2 and isinstance(path, dict):
            continue
        with pytest.raises(facetrack.WrongArgument) as raised:
            call()
        assert repr(path) in str(raised.value), number
    assert not (folder / "out").exists()


# Arguments of `facetrack.run`, and a part of the message.
RUNS: tuple[tuple[Any, dict[str, Any], str], ...] = (
    (5, {}, "`videos` is 5"),
    (None, {}, "`videos` is None"),
    (b"clip.mp4", {}, "`videos` is b'clip.mp4'"),
    ([{"id": "a"}], {}, "row 1 has no `uri`, but 'id'"),
    ([{"uri": "a"}, {}], {}, "row 2 has no `uri`"),
    ([{"uri": "a", "start": float("nan")}], {}, "row 1"),
    ([{"uri": "a", "id": {1}}], {}, "row 1"),
    ("clip.mp4", {"out": ["tracks"]}, r"`out` is \['tracks'\]"),
    ("clip.mp4", {"set": {"max-faces": None}}, "`set` is None"),
    ("clip.mp4", {"out": "a\0b"}, "null"),
    ("clip.mp4", {"dry_run": True}, "dry_run"),
)


@pytest.mark.parametrize("videos,options,message", RUNS)
def test_wrong_arguments_of_a_run_are_shown(videos: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(facetrack.WrongArgument, match=message):
        facetrack.run(videos, **options)


def test_other_commands_are_no_facetrack(folder: Path) -> None:
    for name, message in (("folder", "Permission denied"), ("empty", "Permission denied"), ("nowhere", "make install")):
        with pytest.raises(facetrack.RunError, match=message):
            facetrack.run("clip.mp4", command=str(folder / name))
    for name in ("program", "event"):
        with pytest.raises(facetrack.RunError, match="no event of `facetrack run"):
            list(facetrack.run("clip.mp4", command=str(folder / name)))
    with pytest.raises(facetrack.RunError, match="no event of `facetrack run"):
        list(facetrack.run("clip.mp4", help=True))


@pytest.mark.parametrize("columns", ["jawOpen", ["pose"], [5]])
def test_columns_that_a_record_lacks_are_shown(folder: Path, columns: Any) -> None:
    (folder / "clip.json").write_text(HEAD + "]}")
    with pytest.raises(facetrack.WrongArgument, match="no column of this record matches"):
        facetrack.read(folder / "clip.json", columns=columns)


def test_files_that_may_not_be_read_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root, every file may be read: the system is asked to refuse."""

    def refuse(path: Any, *_: Any, **__: Any) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "open", refuse)
    for read in (facetrack.read, facetrack.index):
        with pytest.raises(facetrack.FileError, match=r"list\.json: Permission denied"):
            read(folder / "list.json")


def test_a_buffer_is_needed_for_metadata() -> None:
    for source in (None, 5, b"clip.json"):
        with pytest.raises(facetrack.WrongArgument, match="a buffer of GStreamer"):
            facetrack.read(source)


def test_every_exception_has_one_base() -> None:
    """Those of the metadata need GStreamer's bindings."""
    found = [getattr(facetrack, name) for name in facetrack._MODULES]
    errors = [it for it in found if isinstance(it, type) and issubclass(it, Exception)]
    assert len(errors) == 9 and all(issubclass(it, facetrack.Error) for it in errors)
