# SPDX-License-Identifier: MPL-2.0
"""The keys of a face in a record, from the JSON Schema. This module needs no other package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SCHEMA = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))

# The columns of tables in their order. Names with `.*` stand for the values of an object, in alphabetical order.
_COLUMNS = _SCHEMA["x-columns"]
_PLACES = {name: place for place, name in enumerate(_COLUMNS)}

# A key of the schema.
Key = dict[str, Any]


def _resolved(key: Key) -> Key:
    """The key without references."""
    if "$ref" in key:
        return {**_resolved(_SCHEMA["$defs"][key["$ref"].rpartition("/")[2]]), **key}
    if "properties" in key:
        return {**key, "properties": {name: _resolved(inner) for name, inner in key["properties"].items()}}
    return key


FACE = _resolved(_SCHEMA["$defs"]["object"])
FRAME = _resolved(_SCHEMA["$defs"]["frame"])

# The keys that the faces of each engine can have.
_ENGINES = _SCHEMA["x-engines"]


def objects(key: Key = FACE, prefix: str = "") -> Iterator[tuple[str, Key]]:
    """The objects with fixed keys below a key, by their paths."""
    for name, inner in key["properties"].items():
        if "properties" in inner and "default" not in inner:
            yield prefix + name, inner
            yield from objects(inner, f"{prefix}{name}.")


def find(name: str) -> Key | None:
    """The key of a column; None for a column that the schema does not have."""
    key: Key = FACE
    while name:
        values = key.get("additionalProperties")
        if isinstance(values, dict):
            return values
        first, _, name = name.partition(".")
        if first not in key.get("properties", {}):
            return None
        key = key["properties"][first]
    return key


def find_type(name: str) -> str | None:
    """The JSON type of a column. Values that are one of a list are strings."""
    key = find(name) or {}
    kind = key.get("type", "string")
    return kind if isinstance(kind, str) else None


def required(key: Key) -> list[str]:
    """The paths of the values that the plugin does not read an object without. Keys with a default are not read."""
    found = []
    for name in key.get("required", ()):
        inner = key["properties"][name]
        if "properties" in inner:
            found += [f"{name}.{path}" for path in required(inner) if "default" not in inner]
        elif "default" not in inner and inner.get("type") != ["object", "null"]:
            found.append(name)
    return found


def expected(head: dict[str, Any]) -> list[str]:
    """The columns of faces that follow from the metadata of a record, besides the required ones, as in `facetrack export`."""
    engine = _ENGINES.get(head.get("tracking_engine", ""))
    if engine is None:
        return []
    options, of_engine = head.get("options", {}), head.get("facetrack_options", {})
    fields = str(options.get("fields", "")).split("+")
    channels = _channels(options, engine["blendshapes"])
    found: list[str] = []
    for name, part in engine["columns"].items():
        if "fields" in part and not options.get("verbose") and part["fields"] not in fields:
            continue
        if "options" in part and not any(of_engine.get(option) for option in part["options"]):
            continue
        group, is_group, _ = name.partition(".*")
        found += [f"{group}.{channel}" for channel in channels] if is_group else [name]
    return found


def rank(name: str) -> tuple[int, str]:
    """The place of a column among others."""
    group = f"{name.partition('.')[0]}.*"
    return _PLACES.get(name, _PLACES.get(group, len(_PLACES))), name


def is_older(name: str) -> bool:
    """Whether a column is only there for older consumers."""
    return bool(_COLUMNS.get(name, {}).get("older"))


def _channels(options: dict[str, Any], measured: list[str]) -> list[str]:
    """The blendshapes that `blendshape-profile` selects."""
    profile = options.get("blendshape-profile")
    if profile == "none":
        return []
    if profile == "mouth":
        tongue = ["tongueOut"] if options.get("include-tongue") else []
        return [name for name in measured if name.startswith(("mouth", "jaw")) or name in tongue]
    if profile == "mediapipe" and measured:
        neutral = [] if "_neutral" in measured else ["_neutral"]
        return neutral + [name for name in measured if name != "tongueOut"]
    if profile == "custom":
        keys = [key.strip() for key in str(options.get("blendshape-keys", "")).split(",")]
        return [key for key in dict.fromkeys(keys) if key in measured]
    return measured
