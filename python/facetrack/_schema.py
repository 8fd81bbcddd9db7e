# SPDX-License-Identifier: MPL-2.0
"""The keys of a face in a record, from the JSON Schema. This module needs no other package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SCHEMA = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))

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
