# SPDX-License-Identifier: MPL-2.0
"""Tracks faces in videos with the command `facetrack`, and reads its results.

    import facetrack

    with facetrack.run("clips", out="tracks", jobs=4) as run:
        for status in run:
            print(status.id, status.status, status.faces)
    tables = facetrack.read("tracks/clip.json")
    videos = facetrack.index("tracks")

`run` needs only the command. `read` and `index` need the extra `dataframe`, `facetrack.ray` needs the extra `ray`, and
`faces(buffer)` needs GStreamer's bindings. Nothing is imported before it is used.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas
    import polars
    import pyarrow

    from ._errors import Error, FileError, WrongArgument
    from ._index import UnreadableIndex, index
    from ._run import CommandNotFound, Interrupted, Refused, Run, RunError, Status, Summary, run
    from ._tables import Tables, UnreadableRecord
    from .metadata import (
        Box,
        Face,
        FaceModelFit,
        FailedFit,
        Gaze,
        MorphableFit,
        Pose,
        Pupil,
        Record,
        Stale,
        UnreadableMetadata,
        faces,
    )

__all__ = [
    "Box",
    "CommandNotFound",
    "Error",
    "Face",
    "FaceModelFit",
    "FailedFit",
    "FileError",
    "Gaze",
    "Interrupted",
    "MorphableFit",
    "Pose",
    "Pupil",
    "Record",
    "Refused",
    "Run",
    "RunError",
    "Stale",
    "Status",
    "Summary",
    "Tables",
    "UnreadableIndex",
    "UnreadableMetadata",
    "UnreadableRecord",
    "WrongArgument",
    "faces",
    "index",
    "read",
    "run",
]

# The module of each name that is not the metadata's.
_MODULES = {
    **dict.fromkeys(("Error", "FileError", "WrongArgument"), "_errors"),
    **dict.fromkeys(("CommandNotFound", "Interrupted", "Refused", "Run", "RunError", "Status", "Summary", "run"), "_run"),
    **dict.fromkeys(("Tables", "UnreadableRecord"), "_tables"),
    **dict.fromkeys(("UnreadableIndex", "index"), "_index"),
}

# Modules that need the extra `dataframe`.
_WITH_TABLES = ("_tables", "_index")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_load(_MODULES.get(name, "metadata")), name)


def _load(module: str) -> Any:
    try:
        return importlib.import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        if module not in _WITH_TABLES:
            raise
        raise ImportError(f"{error}: tables need more packages. Run: pip install 'gst-facetrack[dataframe]'") from error


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


@overload
def read(
    source: str | os.PathLike[str], *, to: Literal["arrow"] = "arrow", columns: Iterable[str] | None = None
) -> Tables[pyarrow.Table]: ...
@overload
def read(
    source: str | os.PathLike[str], *, to: Literal["pandas"], columns: Iterable[str] | None = None
) -> Tables[pandas.DataFrame]: ...
@overload
def read(
    source: str | os.PathLike[str], *, to: Literal["polars"], columns: Iterable[str] | None = None
) -> Tables[polars.DataFrame]: ...
@overload
def read(source: Any, caps: Any = None, *, add_borders: bool = True) -> Record | None: ...
def read(source: Any, *arguments: Any, **options: Any) -> Any:
    """The tables of a JSON record, by its path; see `Tables`. Of a buffer, its metadata; see `facetrack.metadata.read`."""
    if isinstance(source, (str, os.PathLike)):
        return _load("_tables").read(source, *arguments, **options)
    if not hasattr(source, "get_custom_meta"):
        # The bindings of GStreamer may be missing.
        raise _load("_errors").WrongArgument(f"the source is {source!r}. Give the path of a record, or a buffer of GStreamer")
    return _load("metadata").read(source, *arguments, **options)
