# SPDX-License-Identifier: MPL-2.0
"""JSON records as tables."""

from __future__ import annotations

import io
import json
import os
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import simdjson

from ._checks import Damage, check_count, check_faces, check_frames, check_head
from ._errors import Error, WrongArgument, file_errors, path_of
from ._files import open_regular
from ._schema import FACE, FRAME, expected, find, find_type, is_older, rank

T = TypeVar("T")

# Between the metadata and the frames of a dense record.
FRAMES = b',"frames":['

# Size of a double.
DOUBLE = 8

# Bytes that are read at once. Lines of verbose records have more than the default, 8 kB.
BUFFER = 1 << 20

# Rows of a part of a table. Our choice: larger parts are not faster.
ROWS = 512

TYPES = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}


def _type(name: str) -> pa.DataType:
    """The type of a column of faces."""
    kind = find_type(name) or "string"
    if kind == "array":
        key = find(name) or {}
        return pa.list_(pa.string() if key["items"].get("type") == "string" else pa.float32())
    return TYPES[kind]


# Columns of the frame that a face is in.
PLACE = {"frame": pa.int64(), "pts": pa.int64()}
FRAME_COLUMNS = {
    **PLACE,
    "status": pa.string(),
    "faces": pa.int64(),
    **{name: TYPES[key.get("type", "string")] for name, key in FRAME["properties"].items() if name not in FRAME["required"]},
}
# Columns of every record. Others follow from its metadata.
FACE_COLUMNS = {**PLACE, **{name: _type(name) for name in FACE["required"] if find_type(name) in TYPES}}

# Columns that are in every table of faces.
PLACED = ("video", "frame", "seconds", "pts", "id")

# Suffix of a record that is being written.
UNFINISHED = ".partial"

# Nanoseconds in a second.
SECOND = 1e9

# Maximum size in bytes of a record that does not have a frame per line.
LIMIT = 256 << 20

# Errors of the libraries about values that a record cannot have.
DAMAGE = (ValueError, KeyError, TypeError, IndexError, OverflowError, RuntimeError, pa.ArrowException)

NoneType = type(None)


class UnreadableRecord(Error, ValueError):
    """The file is not a dense or jsonl record, or it is damaged."""


@dataclass(frozen=True)
class Tables(Generic[T]):
    """A record as tables. Columns have the names of docs/json-record.md: `pose.yaw` is the key yaw of the object pose.

    metadata: The video and how it was analysed.
    frames: A row per frame. `faces` is the number of faces.
    faces: A row per face and frame. docs/columns.md lists the columns in their order. They follow from `metadata`. Lists of
        numbers are flat lists of 32-bit floats: `landmarks` is x, y, z, x, y, z, …
    finished: Whether the record was finished. Without it the tables have all that could be read. Whether the video was
        complete is `metadata["complete"]`.
    """

    metadata: dict[str, Any]
    frames: T
    faces: T
    finished: bool


class _Rows:
    """Rows that may have different keys, as Arrow tables of `ROWS` rows: values of Python take more memory."""

    def __init__(self, types: dict[str, pa.DataType]):
        self.types = types
        self.tables = [pa.table({name: pa.array([], kind) for name, kind in types.items()})]
        self.begin()

    def begin(self) -> None:
        self.rows = 0
        self.columns: dict[str, list[Any]] = {name: [] for name in self.types}

    def add(self, row: simdjson.Object, more: dict[str, Any], without: str = "") -> None:
        """Adds an object, without one of its keys and with `more` values, as a row."""
        for name, value in more.items():
            self.columns[name].append(value)
        # `items` would make all numbers of a list values of Python.
        for name in row:
            if name == without or name in more:
                continue
            column = self.columns.get(name)
            if column is None:
                column = self.columns[name] = []
            if len(column) > self.rows:
                raise Damage(f"`{name}` comes twice in an object")
            if len(column) != self.rows:
                column.extend([None] * (self.rows - len(column)))
            column.append(_detached(row[name]))
        self.rows += 1
        if self.rows == ROWS:
            self.flush()

    def flush(self) -> None:
        found: dict[str, pa.Array] = {}
        for name, values in self.columns.items():
            values.extend([None] * (self.rows - len(values)))
            _add_columns(found, name, values, self.types.get(name))
        self.tables.append(pa.table(found))
        self.begin()

    def to_arrow(self) -> pa.Table:
        if self.rows:
            self.flush()
        return pa.concat_tables(self.tables, promote_options="permissive")


def _detached(value: Any) -> Any:
    """A value that does not refer to its document. Of an array of numbers, its doubles."""
    kind = type(value)
    if kind is simdjson.Object:
        return value.as_dict()
    if kind is not simdjson.Array:
        return value
    try:
        return bytes(value.as_buffer(of_type="d"))
    except TypeError:
        return value.as_list()


def _add_columns(columns: dict[str, pa.Array], name: str, values: list[Any], kind: pa.DataType | None = None) -> None:
    """Adds a column. Of objects, adds a column for each key."""
    kinds = set(map(type, values))
    if dict in kinds:
        objects = [value or {} for value in values]
        for key in dict.fromkeys(chain.from_iterable(objects)):
            _add_columns(columns, f"{name}.{key}", [value.get(key) for value in objects])
    elif bytes in kinds:
        columns[name] = _numbers(values)
    elif list in kinds:
        columns[name] = _lists(values)
    elif kind is not None or kinds != {NoneType}:
        if kind == pa.int64() and float in kinds:
            raise Damage(f"`{name}` is not a whole number")
        columns[name] = pa.array(values, kind)


def _lists(values: list[list[Any] | None]) -> pa.Array:
    """Lists of an object, and lists of names, such as eos_fit.expressions."""
    try:
        return _numbers([None if value is None else array("d", _flat(value)).tobytes() for value in values])
    except TypeError:
        return pa.array(values)


def _flat(values: list[Any]) -> Iterable[Any]:
    return chain.from_iterable(values) if values and isinstance(values[0], list) else values


def _numbers(values: list[bytes | None]) -> pa.Array:
    """Lists of numbers from the bytes of doubles."""
    ends = list(accumulate((len(value or b"") // DOUBLE for value in values), initial=0))
    doubles = pa.Array.from_buffers(pa.float64(), ends[-1], [None, pa.py_buffer(b"".join(filter(None, values)))])
    missing = pa.array([value is None for value in values])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), doubles.cast(pa.float32(), safe=False), mask=missing)


def read(path: str | os.PathLike[str], *, to: str = "arrow", columns: Iterable[str] | None = None) -> Tables[Any]:
    """Reads a dense or jsonl record, finished or not. A damaged one raises `UnreadableRecord`.

    to: arrow, pandas or polars
    columns: Columns of `faces` besides those of the frame and the id: names, and patterns such as `blendshapes.*`. By default
        all but those for older programs.
    """
    if to not in ("arrow", "pandas", "polars"):
        raise WrongArgument(f"tables are arrow, pandas or polars, not {to!r}")
    path = path_of(path, "the record")
    with open_regular(path, BUFFER) as file, file_errors(path):
        try:
            tables = _read(Path(path), file)
        except UnreadableRecord:
            raise
        except DAMAGE as error:
            raise UnreadableRecord(f"{path}: {error}. Record it again") from error
    frames, faces = (_placed(table, tables.metadata, _video(path)) for table in (tables.frames, tables.faces))
    faces = faces.select(_chosen(faces.column_names, columns))
    return Tables(tables.metadata, _converted(frames, to), _converted(faces, to), tables.finished)


def _video(path: str | os.PathLike[str]) -> str:
    """The id of the video: the name of the record without suffixes."""
    name = os.fsencode(Path(path).name).decode(errors="replace").removesuffix(UNFINISHED)
    stem, dot, _ = name.rpartition(".")
    return stem if dot else name


def _placed(table: pa.Table, metadata: dict[str, Any], video: str) -> pa.Table:
    """The table with the columns of `PLACED` first, as `facetrack export` computes them."""
    seconds = pc.divide(pc.cast(table["pts"], pa.float64(), safe=False), SECOND)
    if (fps := metadata.get("fps") or 0) > 0:
        numbers = pc.max_element_wise(pc.subtract(table["frame"], 1), 0)
        times = pc.multiply(pc.divide(pc.cast(numbers, pa.float64(), safe=False), fps), SECOND)
        seconds = pc.coalesce(seconds, pc.divide(pc.round(times, round_mode="half_towards_infinity"), SECOND))
    placed = {"video": pa.repeat(video, len(table)), "frame": table["frame"], "seconds": seconds, "pts": table["pts"]}
    others = {name: table[name] for name in table.column_names if name not in placed}
    return pa.table({**placed, **others})


def _chosen(names: Iterable[str], patterns: Iterable[str] | None) -> list[str]:
    """The columns that match one of the patterns, in the order of a table."""
    ordered = sorted(names, key=rank)
    if patterns is None:
        return [name for name in ordered if not is_older(name)]
    wanted = set(PLACED)
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        found = [name for name in ordered if isinstance(pattern, str) and fnmatchcase(name, pattern)]
        if not found:
            raise WrongArgument(f"`columns`: no column of this record matches {pattern!r}. docs/columns.md lists all columns")
        wanted.update(found)
    return [name for name in ordered if name in wanted]


def _converted(table: pa.Table, to: str) -> Any:
    if to == "arrow":
        return table
    if to == "pandas":
        return table.to_pandas()
    import polars

    return polars.from_arrow(table)


def _read(path: Path, file: io.BufferedReader) -> Tables[pa.Table]:
    first = next((line for line in map(_stripped, file) if line), b"")
    try:
        if first.endswith(FRAMES):
            return _of_lines(file, _object(first[: -len(FRAMES)] + b"}")["metadata"], is_dense=True)
        head = _object(first)
        if "metadata" in head and "frames" not in head:
            return _of_lines(file, head["metadata"], is_dense=False)
    except (ValueError, KeyError) as error:
        if isinstance(error, Damage):
            raise
    return _of_document(path, file)


def _of_lines(file: io.BufferedReader, metadata: Any, *, is_dense: bool) -> Tables[pa.Table]:
    """Reads a record with a frame per line."""
    check_head(metadata)
    rows = _Frames()
    parser = simdjson.Parser()
    is_closed = False
    for line in filter(None, map(_stripped, file)):
        try:
            if is_closed := is_dense and line == b"]}":
                continue
            if not is_dense and line.startswith(b'{"trailer"'):
                metadata, is_closed = _object(line)["trailer"], True
                continue
            frame = parser.parse(line.removesuffix(b",") if is_dense else line)
            place = _place(frame)
        except DAMAGE as error:
            if file.peek(1):
                raise Damage(f"the line after frame {rows.last}: {error}") from error
            # The last line of a record whose writer was killed.
            is_closed = False
            break
        rows.add(frame, place)
        # The parser can be used again when nothing refers to its document.
        del frame
    check_head(metadata)
    return rows.tables(metadata, is_closed)


def _of_document(path: Path, file: io.BufferedReader) -> Tables[pa.Table]:
    """Reads a dense record that another program has formatted."""
    file.seek(0)
    text = file.read(LIMIT + 1)
    try:
        document: Any = simdjson.Parser().parse(text if len(text) <= LIMIT else b"")
        metadata, frames = document["metadata"].as_dict(), document["frames"]
    except (*DAMAGE, AttributeError) as error:
        raise UnreadableRecord(f"{path}: not a record with format=dense or format=jsonl") from error
    check_head(metadata)
    rows = _Frames()
    for frame in frames:
        rows.add(frame, _place(frame))
    return rows.tables(metadata, is_closed=True)


class _Frames:
    """The tables of the frames that were read."""

    def __init__(self) -> None:
        self.frames, self.faces = _Rows(FRAME_COLUMNS), _Rows(FACE_COLUMNS)
        self.last = 0

    def add(self, frame: Any, place: dict[str, Any]) -> None:
        self.last = place["frame"]
        found = frame["tracked_objects"]
        self.frames.add(frame, {"faces": len(found)}, without="tracked_objects")
        for face in found:
            self.faces.add(face, place)

    def tables(self, metadata: dict[str, Any], is_closed: bool) -> Tables[pa.Table]:
        frames, faces = self.frames.to_arrow(), self.faces.to_arrow()
        is_finished = is_closed and check_count(metadata, len(frames))
        check_frames(frames)
        check_faces(faces)
        further = {name: _type(name) for name in expected(metadata)}
        return Tables(metadata, frames, _with_columns(faces, {**FACE_COLUMNS, **further}), is_finished)


def _with_columns(table: pa.Table, types: dict[str, pa.DataType]) -> pa.Table:
    """The table with these columns before others. They are null where a row has no value."""
    return pa.concat_tables([pa.schema(types).empty_table(), table], promote_options="permissive")


def _object(text: bytes) -> dict[str, Any]:
    value = json.loads(text.decode())
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


def _place(frame: Any) -> dict[str, Any]:
    """Number and time of a frame.

    Raises one of `DAMAGE` for a line that is no frame.
    """
    number, time, status = frame["frame"], frame.get("pts"), frame.get("status")
    if type(number) is not int or type(time) not in (int, NoneType) or type(status) not in (str, NoneType):
        raise ValueError("`frame`, `pts` or `status` is wrong")
    if number < 0 or (time or 0) < 0:
        raise ValueError("`frame` or `pts` is below 0")
    return {"frame": number, "pts": time}


def _stripped(line: bytes) -> bytes:
    return line.strip(b" \t\r\n\x0c")
