# SPDX-License-Identifier: MPL-2.0
"""Indexes of folders of records, which `facetrack index` writes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, Union

import pyarrow as pa
import pyarrow.parquet as pq

from ._errors import Error, FileError, path_of
from ._files import open_regular, read_regular
from ._run import Status, log

Source = Union[str, "os.PathLike[str]"]

# Suffix of a status file. The rest of its path below the folder is the id of the video.
MARKER = ".json.done"

# Maximum size of a marker in bytes. Our choice: it has a few hundred.
MARKER_SIZE = 1 << 20

# Suffix of a folder that an interrupted run has left. Its status files are of parts of a video.
PARTS = ".json.parts"

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
