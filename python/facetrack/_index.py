# SPDX-License-Identifier: MPL-2.0
"""Indexes of folders of records. They can be rebuilt from the status files and records at any time."""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, Union

import pyarrow as pa
import pyarrow.parquet as pq

from ._errors import Error, FileError, WrongArgument, file_errors, path_of
from ._files import open_regular, read_regular
from ._run import Status, log
from ._schema import find
from ._tables import FACE_COLUMNS, UnreadableRecord, read

Source = Union[str, "os.PathLike[str]"]

# Suffix of a status file. The rest of its path below the folder is the id of the video.
MARKER = ".json.done"

# How a Parquet file begins.
PARQUET = b"PAR1"

# Maximum size of a marker in bytes. Our choice: it has a few hundred.
MARKER_SIZE = 1 << 20

# Suffix of a folder that an interrupted run has left. Its status files are of parts of a video.
PARTS = ".json.parts"

# Statuses of videos with a record.
RECORDED = ("complete", "truncated")

# Status files that are values of Python at one time. Our choice.
BATCH = 10_000

# Types of the columns of an index, by the annotations of `Status`.
TYPES = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


def _type(annotation: str) -> pa.DataType:
    return TYPES[annotation.removeprefix("Optional[").removesuffix("]")]


# Columns of an index. Status files of later versions may have more keys.
VIDEO_COLUMNS = pa.schema([(it.name, _type(str(it.type))) for it in fields(Status) if it.name != "new"])


class UnreadableIndex(Error, ValueError):
    """The file is not an index, or it is damaged."""


def index(*sources: Source) -> pa.Table:
    """A row for each video with a status file below the folders, sorted by id. A source may also be an index in a file.

    `id` is the path of the record in its folder, without `.json`. Of rows with the same id, the row of the last source is
    kept. A marker that cannot be read has no status, and its message says why.
    """
    tables = [table for source in sources for table in _tables_of(Path(path_of(source, "a source")))]
    table = pa.concat_tables([VIDEO_COLUMNS.empty_table(), *tables])
    if len(sources) > 1:
        numbered = table.append_column("row", pa.array(range(len(table)), pa.int64()))
        table = table.take(numbered.group_by("id").aggregate([("row", "max")])["row_max"])
    return table.sort_by("id")


def _tables_of(source: Path) -> Iterator[pa.Table]:
    if not os.path.isdir(source):
        yield _table_of(source)
        return
    rows = (_row(source, marker) for marker in _markers(source))
    while batch := list(islice(rows, BATCH)):
        yield pa.Table.from_pylist(batch, VIDEO_COLUMNS)


def _table_of(path: Path) -> pa.Table:
    with open_regular(path) as file:
        try:
            table = pq.read_table(file, schema=VIDEO_COLUMNS)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise UnreadableIndex(f"{path}: it is not an index: {error}") from error
    if table["id"].null_count:
        raise UnreadableIndex(f"{path}: it is not an index: there is a row without an id")
    return table


def _markers(folder: Path) -> Iterator[str]:
    """Status files below a folder. An entry that cannot be read or named is left out with a warning."""

    def fail(error: OSError) -> None:
        if error.filename == os.fspath(folder):
            raise FileError(f"{folder}: {error.strerror}") from error
        log.warning("%s is left out: %s", ascii(error.filename), error.strerror)

    # The folders that lead to a folder, to notice links to one of them.
    above: dict[str, tuple[tuple[int, int] | None, ...]] = {}
    for parent, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        seen = (*above.pop(parent, ()), _identity(parent))
        folders[:] = [name for name in folders if not name.endswith(PARTS)]
        for name in list(folders):
            path = os.path.join(parent, name)
            if (identity := _identity(path)) and identity in seen:
                log.warning("%s is left out: it is a link to a folder above it", ascii(path))
                folders.remove(name)
            above[path] = seen
        for path in (os.path.join(parent, name) for name in names if name.endswith(MARKER)):
            if _is_text(path):
                yield path
            else:
                log.warning("%s is left out: its name is not UTF-8", ascii(path))


def _identity(path: str) -> tuple[int, int] | None:
    """Of a folder; `None` if it cannot be read, which `os.walk` reports."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _row(folder: Path, path: str) -> dict[str, Any]:
    record = path.removesuffix(".done")
    video = os.path.relpath(record, folder).removesuffix(".json")
    try:
        values = _values(json.loads(read_regular(path, MARKER_SIZE).decode()))
    except (OSError, ValueError, RecursionError) as error:
        values = {"message": f"the status file cannot be read ({error}). Run `facetrack run` again"}
    return {**values, "id": video, "record": record}


def _values(marker: Any) -> dict[str, Any]:
    """The values of a status file. pyarrow would change some that have another type than their column."""
    if not isinstance(marker, dict):
        raise ValueError("it is no object")
    values = {field.name: marker.get(field.name) for field in VIDEO_COLUMNS}
    for field in VIDEO_COLUMNS:
        value = values[field.name]
        if value is None:
            continue
        if not _fits(value, field.type):
            raise ValueError(f"`{field.name}` is {value!r}")
        if field.type == pa.float64():
            values[field.name] = float(value)
    return values


def _fits(value: Any, kind: pa.DataType) -> bool:
    if kind == pa.string():
        return isinstance(value, str) and _is_text(value)
    if kind == pa.int64():
        return type(value) is int and -(2**63) <= value < 2**63
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def write_index(
    out: Source,
    *sources: Source,
    faces: Source | None = None,
    columns: Mapping[str, pa.DataType] | None = None,
) -> None:
    """Writes the index of the sources to the Parquet file `out`, which is replaced when the new one is complete.

    faces: A second file, with a row per face and frame of all records. `video` is the id of the video.
    columns: Types of further columns of `faces`, such as `{"blendshapes.jawOpen": pyarrow.float32()}`. Their names are
        those of `facetrack.read`. They are null in records without them.
    """
    others = [Path(path_of(out, "`out`")), *(Path(path_of(source, "a source")) for source in sources)]
    if faces is not None and Path(path_of(faces, "`faces`")).resolve() in [other.resolve() for other in others]:
        raise WrongArgument(f"{faces}: `faces` is the index or a source. Name another file")
    schema = _schema(columns)
    videos = index(*sources)
    with _replaced(Path(out)) as path:
        pq.write_table(videos, path)
    if faces is None:
        return
    with _replaced(Path(faces)) as path, pq.ParquetWriter(path, schema) as writer:
        for row in videos.select(["id", "record", "status"]).to_pylist():
            if row["status"] in RECORDED:
                writer.write_table(_faces_of(row["id"], row["record"], schema))


def _schema(columns: Mapping[str, pa.DataType] | None) -> pa.Schema:
    """The schema of a file of faces with further columns."""
    if not isinstance(columns, (Mapping, type(None))):
        raise WrongArgument(f"`columns` is {columns!r}. Give types of pyarrow by their names")
    further = columns or {}
    for name, kind in further.items():
        key = find(name) if isinstance(name, str) else None
        if not name or key is None or "properties" in key or isinstance(key.get("additionalProperties"), dict):
            raise WrongArgument(f"`columns`: no face has the key {name!r}. Name keys of a face in the record, such as pose.yaw")
        if not isinstance(kind, pa.DataType):
            raise WrongArgument(f"`columns`: the type of {name!r} is {kind!r}. Give a type of pyarrow")
    return pa.schema({"video": pa.string(), **FACE_COLUMNS, **further})


def _faces_of(video: str, record: str, schema: pa.Schema) -> pa.Table:
    tables = read(record)
    if not tables.finished:
        raise UnreadableRecord(f"{record}: it is cut off. Track the video again")
    found = tables.faces
    found = found.add_column(0, "video", pa.repeat(video, len(found)))
    known = [name for name in schema.names if name in found.column_names]
    missing = [pa.field(name, pa.null()) for name in schema.names if name not in known]
    table = found.select(known)
    for field in missing:
        table = table.append_column(field, pa.nulls(len(table)))
    try:
        return table.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise WrongArgument(f"`columns`: the values in {record} have another type: {error}") from error


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """A path to write to. It becomes `path` at the end. A link there is kept, and its target is replaced."""
    with file_errors(path):
        path = path.resolve()
        if path.exists() and not path.is_file():
            raise WrongArgument(f"{path}: it is not a regular file. Name another one")
        if path.exists() and path.stat().st_size > 0:
            with open_regular(path) as file:
                if file.read(len(PARQUET)) != PARQUET:
                    raise WrongArgument(f"{path}: it exists, and is no Parquet file. Name another file")
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    with file_errors(path):
        try:
            yield partial
            with open(partial, "rb") as written:
                os.fsync(written.fileno())
            os.replace(partial, path)
        finally:
            # Errors of this clean-up must not hide errors of `yield`.
            with suppress(OSError):
                partial.unlink(missing_ok=True)
