# SPDX-License-Identifier: MPL-2.0
"""Exceptions of every part of the package. This module needs no other package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


class Error(Exception):
    """The base of all exceptions of this package."""


class WrongArgument(Error, ValueError):
    """An argument, or a row of an argument, is wrong."""


class FileError(Error, OSError):
    """A file cannot be opened, read or written."""


def path_of(path: object, name: str) -> str:
    """The path that the argument `name` has to be."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str) or not text or "\0" in text:
        raise WrongArgument(f"{name} is {path!r}. Give a path")
    return text


@contextmanager
def file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Names the file in errors of the system."""
    try:
        yield
    except Error:
        raise
    except (OSError, UnicodeEncodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{os.fspath(path)}: {reason}") from error
