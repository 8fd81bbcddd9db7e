# SPDX-License-Identifier: MPL-2.0
"""`facetrack run` as an iterator of statuses."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import IO, Any, Optional, Union

from ._errors import Error, WrongArgument, file_errors, path_of

# A path, or a row of a list of videos: `uri`, and optionally `id`, `start` and `stop`.
Video = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Option = Union[str, int, float, bool, "os.PathLike[str]", Mapping[str, Any], None]

# Exit statuses of the command; docs/run.md.
USAGE = 2
TRY_AGAIN = 75

# Lines of standard error that an exception quotes.
QUOTED = 20

log = logging.getLogger("facetrack")


class RunError(Error, RuntimeError):
    """The run could not start, or ended before its summary.

    exit_code: Exit status of the command; negative for a signal, None if it was not started.
    """

    def __init__(self, message: str, exit_code: int | None):
        super().__init__(message)
        self.exit_code = exit_code


class CommandNotFound(RunError):
    """The command `facetrack` is not installed here."""


class Refused(RunError):
    """The options are wrong; nothing was started. Exit status 2."""


class Interrupted(RunError):
    """The run was terminated, or the disk is full: run it again. Exit status 75."""


@dataclass(frozen=True)
class Status:
    """The result of a video: its status file, as described in docs/run.md.

    id: Name among all videos.
    record: Path of the JSON record, also if there is none.
    new: False if an earlier run has tracked the video.
    status: complete, truncated, no-video, unsupported, failed or skipped
    message: What is missing, or why there is no record.
    whole: Why a long video was not tracked in parts.
    """

    id: str
    record: str
    new: bool
    status: str
    message: Optional[str] = None
    video: str = ""
    key: str = ""
    frames: int = 0
    expected_frames: Optional[int] = None
    gap_frames: int = 0
    error_frames: int = 0
    decode_errors: int = 0
    faces: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    video_seconds: Optional[float] = None
    attempts: int = 0
    whole: Optional[str] = None
    host: str = ""
    engine: str = ""
    device: str = ""
    device_reason: str = ""

    @classmethod
    def _of(cls, event: Mapping[str, Any]) -> Status:
        values = {**event["marker"], "id": event["id"], "record": event["record"], "new": event["new"]}
        # Later versions of the command may add keys.
        return cls(**{field.name: values[field.name] for field in fields(cls) if field.name in values})


@dataclass(frozen=True)
class Summary:
    """The counts of all videos, in this run or an earlier one.

    new, again, frames, video_hours, seconds: Of this run only.
    open: Videos without a result, because the run ended early or another run tracks them.
    failures: Path of the list of videos that are not complete; None without such videos.
    table: Path of the table of all videos, with the option `table`; None if it was not written.
    """

    videos: int
    done: int
    skipped: int
    no_face: int
    truncated: int
    failed: int
    open: int
    new: int
    again: int
    frames: int
    video_hours: float
    seconds: float
    failures: Optional[str]
    table: Optional[str]

    @classmethod
    def _of(cls, event: Mapping[str, Any]) -> Summary:
        values = {**event["figures"], "failures": event["failures"], "table": event["table"]}
        return cls(**{field.name: values[field.name] for field in fields(cls)})


class Run(Iterator[Status]):
    """A running command. Iterating yields the status of each video when it is known.

    `close`, or leaving a `with` block, sends SIGTERM to a run that has not ended, and waits for it.

    summary: The counts, when all statuses have been read.
    exit_code: 0 if every video is complete, 1 if some are not, 42 if the only video will never work. The others raise
        `Refused` (2) and `Interrupted` (75).
    """

    summary: Summary | None = None
    exit_code: int | None = None
    _process: subprocess.Popen[bytes] | None = None

    def __init__(self, command: list[str], videos: Iterable[Video]):
        # A fork has a copy of the run, which belongs to this process only.
        self._owner = os.getpid()
        lines = b"".join(_line(number, video) for number, video in enumerate(videos, 1))
        with file_errors(tempfile.gettempdir()), tempfile.TemporaryFile() as listed:
            listed.write(lines)
            listed.seek(0)
            self._process = _started(command, listed)
        assert self._process.stdout is not None and self._process.stderr is not None
        self._events: IO[bytes] = self._process.stdout
        self._said: deque[str] = deque(maxlen=QUOTED)
        # The thread must not refer to the run, which ends when nothing else does.
        self._listener = threading.Thread(target=_listen, args=(self._process.stderr, self._said), daemon=True)
        self._listener.start()

    def __next__(self) -> Status:
        if os.getpid() != self._owner:
            raise RunError("the run belongs to the process that has started it. Read its statuses there", None)
        if self.exit_code is not None:
            raise StopIteration
        for line in self._events:
            try:
                status = self._take(json.loads(line))
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                self.close()
                said = line.decode(errors="replace").strip()
                raise RunError(f"it printed {said!r}, which is no event of `facetrack run --json`", self.exit_code) from error
            if status is not None:
                return status
        self._raise_for(self._wait())
        raise StopIteration

    def _take(self, event: Any) -> Status | None:
        """The status that an event brings."""
        if event["event"] == "finished":
            return Status._of(event)
        if event["event"] == "note":
            log.warning("%s", event["message"])
        elif event["event"] == "summary":
            self.summary = Summary._of(event)
        return None

    def _wait(self) -> int:
        assert self._process is not None
        self._listener.join()
        self._events.close()
        self.exit_code = self._process.wait()
        return self.exit_code

    def _raise_for(self, code: int) -> None:
        message = "".join(self._said).strip() or f"`facetrack run` ended with exit status {code}"
        if code == TRY_AGAIN:
            raise Interrupted("the run was terminated, or the disk is full. Run it again: it continues", code)
        if code == USAGE:
            raise Refused(message, code)
        if self.summary is None:
            raise RunError(message, code)

    def close(self) -> None:
        """Ends the run. The next run continues where it stopped. In a fork of the process, it does nothing."""
        if self._process is None or self.exit_code is not None or os.getpid() != self._owner:
            return
        self._process.terminate()
        for _ in self._events:
            # A full pipe would block the command.
            pass
        self._wait()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def _listen(errors: IO[bytes], said: deque[str]) -> None:
    """Passes standard error on, and keeps its end for an exception."""
    with errors:
        for line in errors:
            text = line.decode(errors="replace")
            said.append(text)
            sys.stderr.write(text)


def _started(command: list[str], listed: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        # In a session of its own, Ctrl-C reaches only this process. Together with the SIGTERM of `close`, it would end the run
        # in the middle of a frame.
        return subprocess.Popen(command, stdin=listed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    except FileNotFoundError as error:
        raise CommandNotFound(
            f"there is no command {command[0]!r} on the PATH. Install it with `make install`, or enter a checkout "
            'and run: eval "$(make -s env)"',
            None,
        ) from error
    except OSError as error:
        raise RunError(f"the command {command[0]!r} cannot be started: {error.strerror}", None) from error
    except ValueError as error:
        raise WrongArgument(f"an argument contains a character that no command line can have: {error}") from error


def check_row(number: int, video: Any) -> dict[str, Any]:
    """The row of a video, which may be a path. Rows are counted from 1."""
    row = dict(video) if isinstance(video, Mapping) else {"uri": video}
    if "uri" not in row:
        raise WrongArgument(f"row {number} has no `uri`, but {', '.join(map(repr, row)) or 'nothing'}")
    return {**row, "uri": path_of(row["uri"], f"`uri` of row {number}")}


def check_videos(videos: Any) -> Iterable[Any]:
    """Videos that are given one by one."""
    if isinstance(videos, Mapping):
        return [videos]
    if isinstance(videos, (bytes, bytearray)) or not isinstance(videos, Iterable):
        raise WrongArgument(f"`videos` is {videos!r}. Give a path, or an iterable of paths or of rows with `uri`")
    return videos


def _line(number: int, video: Any) -> bytes:
    row = check_row(number, video)
    try:
        return json.dumps(row, allow_nan=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise WrongArgument(f"row {number} has a value that is neither a text nor a number: {error}") from error


def run(videos: Video | Iterable[Video], *, command: str = "facetrack", **options: Option) -> Run:
    """Tracks videos with `facetrack run`, and yields their statuses.

    videos: A path, folder, pattern or list, as on the command line; or an iterable of paths of videos, or of rows with
        `uri` and optionally `id`, `start` and `stop`.
    command: Name or path of the command.
    options: Those of the command, with underscores: `out="tracks"`, `jobs=4`, `retry_failed=True`,
        `set={"max-faces": 2}`.
    """
    if options.get("dry_run"):
        raise WrongArgument("dry_run prints no events: run `facetrack run --dry-run`")
    line = [path_of(command, "`command`"), "run", "--json", *_flags(options), "--"]
    if isinstance(videos, (str, os.PathLike)):
        return Run([*line, path_of(videos, "`videos`")], [])
    return Run([*line, "-"], check_videos(videos))


def _flags(options: Mapping[str, Option]) -> Iterator[str]:
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, Mapping):
            for key, it in value.items():
                yield f"{flag}={key}={_text(name, it)}"
        elif value is True:
            yield flag
        elif value is not None and value is not False:
            yield f"{flag}={_text(name, value)}"


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, os.PathLike):
        return path_of(value, f"`{name}`")
    if not isinstance(value, (str, Real)):
        raise WrongArgument(f"`{name}` is {value!r}. Give a text, a number, a path or True")
    return str(value)
