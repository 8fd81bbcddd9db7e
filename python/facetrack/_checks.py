# SPDX-License-Identifier: MPL-2.0
"""Checks of what was read from a record: the same ones as of the plugin and the command, so that all of them refuse the
same files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ._names import FEATURES
from ._schema import FACE, Key, find, objects, required

SCHEMAS = ("facetrack-1", "facetrack-2")
STATUSES = ("tracked", "no-face", "skipped", "gap", "error")

# Keys of the metadata that the plugin reads, with the Python types of their values.
HEAD: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("tracking_engine", "generator", "device", "execution_provider", "device_reason"), (str,)),
    **dict.fromkeys(("width", "height", "start_time"), (int,)),
    **dict.fromkeys(("models", "options", "facetrack_options"), (dict,)),
    "fps": (int, float),
    "schema": (str, type(None)),
    "total_frames": (int, type(None)),
}

# Limits of the whole numbers of a face.
INT32 = (-(2**31), 2**31 - 1)

# Keys of an eos_fit that has no failure.
FIT = ("expressions", "rotation", "origin", "scale", "residual", "contour")


class Damage(ValueError):
    """What is wrong in a record."""


def check_head(head: Any) -> None:
    """Checks the metadata."""
    if not isinstance(head, dict):
        raise Damage("its metadata is no object")
    for name, kinds in HEAD.items():
        value = head.get(name, kinds[0]())
        if type(value) not in kinds or (isinstance(value, (int, float)) and value < 0 and name != "fps"):
            raise Damage(f"`{name}` in its metadata is {value!r}")
        if isinstance(value, str) and "\\0" in value:
            raise Damage("a string contains the character NUL")
    if head.get("schema") not in (None, *SCHEMAS):
        raise Damage(f"it has the schema {head['schema']!r}. Update the package")
    for name, sha256 in head.get("models", {}).items():
        digits = isinstance(sha256, str) and len(sha256) == 64 and set(sha256) <= set("0123456789abcdefABCDEF")
        if not (digits and name and name.isprintable()):
            raise Damage(f"{name!r} is not a model file with its SHA-256")


def check_count(head: dict[str, Any], frames: int) -> bool:
    """Checks the number of frames of a record that is closed. Returns whether it was finished."""
    stated = head.get("total_frames") if head.get("schema") else None
    if stated and stated != frames:
        raise Damage(f"it has {frames} frames, but its metadata says {stated}: lines were removed or damaged")
    return stated in (None, frames)


def check_frames(table: pa.Table) -> None:
    """Checks the rows of frames, except for the keys that identify a frame."""
    numbers = table["frame"]
    if len(numbers) > 1 and not pc.all(pc.greater(numbers[1:], numbers[:-1])).as_py():
        raise Damage("the numbers of its frames do not rise")
    _require(table, "status", pc.is_in(table["status"], pa.array([*STATUSES, None])))
    for name in ("width", "height"):
        if name in table.column_names:
            _require_kind(table, name, pa.types.is_integer, "a whole number")
            _require_range(table, name, (1, 2**32 - 1))
    if "cut" in table.column_names:
        _require_kind(table, "cut", pa.types.is_boolean, "true")
    if "tracking_engine" in table.column_names:
        _require_kind(table, "tracking_engine", pa.types.is_string, "a string")
        _require(table, "tracking_engine", pc.invert(pc.match_substring(table["tracking_engine"], "\\0")))


def check_faces(table: pa.Table) -> None:
    """Checks the rows of faces."""
    for name in required(FACE):
        _require(table, name, table[name].is_valid())
    for name in table.column_names:
        key = find(name)
        if key is not None:
            _check_value(table, name, key)
    for name, key in objects():
        _check_object(table, name, required(key))
    _check_object(table, "features", FEATURES)
    _check_blendshapes(table)
    _check_eos(table)
    _check_landmarks(table)
    _require(table, "age", pc.equal(_is_present(table, "age"), _is_present(table, "gender")))


def _check_value(table: pa.Table, name: str, key: Key) -> None:
    """Checks a column against its key in the schema."""
    kind = key.get("type")
    if "default" in key and kind != "integer":
        # The plugin does not read it.
        return
    if "enum" in key:
        _require(table, name, pc.is_in(table[name], pa.array([*key["enum"], None])))
    elif "pattern" in key:
        _require(table, name, pc.match_substring_regex(table[name], key["pattern"]))
    elif kind == "integer":
        _require_range(table, name, INT32)
    elif kind == "number":
        _check_number(table, name)
    elif kind == "boolean":
        _require_kind(table, name, pa.types.is_boolean, "true or false")
    elif kind == "array" and key["items"].get("type") != "string":
        _check_list(table, name, key)


def _check_number(table: pa.Table, name: str) -> None:
    _require_kind(table, name, lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind), "a number")
    _require(table, name, pc.is_finite(pc.cast(table[name], pa.float32(), safe=False)))


def _check_list(table: pa.Table, name: str, key: Key) -> None:
    _require_kind(table, name, lambda kind: kind == pa.list_(pa.float32()), "a list of numbers")
    if not pc.all(pc.is_finite(pc.list_flatten(table[name])), min_count=0).as_py():
        raise Damage(f"`{name}` has a number that is too large")
    # Numbers of an inner list.
    width = key["items"].get("maxItems", 1)
    lengths = pc.list_value_length(table[name])
    if "maxItems" in key:
        _require(table, name, pc.equal(lengths, width * key["maxItems"]))
    elif width > 1:
        _require(table, name, pc.equal(pc.multiply(pc.divide(lengths, width), width), lengths))


def _check_object(table: pa.Table, name: str, keys: Iterable[str]) -> None:
    """Checks that a face with any key of an object has these ones."""
    present = _any_of(table, name)
    if present is None:
        return
    for key in keys:
        if f"{name}.{key}" not in table.column_names:
            raise Damage(f"`{name}` has no `{key}`")
        _require(table, f"{name}.{key}", pc.or_(pc.invert(present), table[f"{name}.{key}"].is_valid()))


def _check_blendshapes(table: pa.Table) -> None:
    for name in table.column_names:
        group, _, channel = name.partition(".")
        if group in ("blendshapes", "blendshapes_raw") and (not channel or "," in channel or not channel.isprintable()):
            raise Damage(f"{channel!r} is no name of a blendshape")
    raw = _any_of(table, "blendshapes_raw")
    measured = _any_of(table, "blendshapes")
    if raw is None or measured is None:
        return
    both = pc.and_(raw, measured)
    channels = {name.partition(".")[2] for name in table.column_names if name.startswith(("blendshapes.", "blendshapes_raw."))}
    for channel in channels:
        one, other = (_is_present(table, f"{group}.{channel}") for group in ("blendshapes", "blendshapes_raw"))
        _require(table, f"blendshapes_raw.{channel}", pc.or_(pc.invert(both), pc.equal(one, other)))


def _check_eos(table: pa.Table) -> None:
    """Checks the fits that have coefficients and no failure."""
    fit, coefficients = _any_of(table, "eos_fit"), _any_of(table, "eos")
    if fit is None or coefficients is None:
        return
    used = pc.and_(pc.and_(fit, coefficients), pc.invert(_is_present(table, "eos_fit.failure")))
    for key in FIT:
        _require(table, f"eos_fit.{key}", pc.or_(pc.invert(used), _is_present(table, f"eos_fit.{key}")))
    if "eos_fit.expressions" in table.column_names:
        _require_kind(table, "eos_fit.expressions", lambda kind: kind == pa.list_(pa.string()), "a list of names")
        lengths = [pc.list_value_length(table[name]) for name in ("eos_fit.expressions", "eos.expression_coeffs")]
        _require(table, "eos_fit.expressions", pc.or_(pc.invert(used), pc.equal(*lengths)))


def _check_landmarks(table: pa.Table) -> None:
    """Checks the numbers of landmarks, and of their scores."""
    if "landmarks" not in table.column_names:
        return
    numbers = pc.list_value_length(table["landmarks"])
    schemes = {name: 3 * int(name.rpartition("-")[2]) for name in FACE["properties"]["landmark_scheme"]["enum"]}
    _require(table, "landmarks", pc.is_in(numbers, pa.array([*schemes.values(), None], pa.int32())))
    if "landmark_scheme" in table.column_names:
        for name, number in schemes.items():
            is_other = pc.not_equal(table["landmark_scheme"], name)
            _require(table, "landmark_scheme", pc.or_(is_other, pc.equal(numbers, number)))
    if "landmark_confidence" in table.column_names:
        scores = pc.list_value_length(table["landmark_confidence"])
        _require(table, "landmark_confidence", pc.or_(pc.equal(scores, 0), pc.equal(pc.multiply(scores, 3), numbers)))


def _is_present(table: pa.Table, name: str) -> Any:
    if name in table.column_names:
        return table[name].is_valid()
    return pa.chunked_array([pa.repeat(False, len(table))])


def _any_of(table: pa.Table, group: str) -> Any:
    """Whether each face has a key of an object; None if no face has one."""
    found = None
    for name in table.column_names:
        if name.startswith(f"{group}."):
            valid = table[name].is_valid()
            found = valid if found is None else pc.or_(found, valid)
    return found


def _require_kind(table: pa.Table, name: str, is_kind: Callable[[pa.DataType], bool], words: str) -> None:
    kind = table.schema.field(name).type
    if not (pa.types.is_null(kind) or is_kind(kind)):
        raise Damage(f"`{name}` is not {words} everywhere")


def _require_range(table: pa.Table, name: str, limits: tuple[int, int]) -> None:
    _require(table, name, pc.and_(pc.greater_equal(table[name], limits[0]), pc.less_equal(table[name], limits[1])))


def _require(table: pa.Table, name: str, fine: Any) -> None:
    """Raises for the first row where a condition does not hold. A row without a result is fine."""
    row = pc.index(pc.fill_null(fine, True), False).as_py()
    if row >= 0:
        raise Damage(f"frame {table['frame'][row]}: `{name}` is missing or wrong")
