# SPDX-License-Identifier: MPL-2.0
"""Files whose paths are not trusted: one may lead to a pipe, or to an endless device."""

from __future__ import annotations

import io
import os
import stat

from ._errors import FileError, file_errors


def open_regular(path: str | os.PathLike[str], buffering: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Opens a regular file for reading. Never waits, as for the writer of a pipe. Raises FileError for anything else."""
    with file_errors(path):
        # Opening a device can have effects. The second check is for a path that changes meanwhile.
        _check(path, os.stat(path))
        raw = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    try:
        _check(path, os.fstat(raw.fileno()))
    except OSError:
        raw.close()
        raise
    return io.BufferedReader(raw, buffering)


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises FileError for anything else."""
    with open_regular(path) as file, file_errors(path):
        content = file.read(most + 1)
    if len(content) > most:
        raise FileError(f"{os.fspath(path)}: it is larger than {most} bytes")
    return content


def _check(path: str | os.PathLike[str], found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"{os.fspath(path)}: it is not a regular file")
