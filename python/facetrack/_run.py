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
from pathlib import Path
from typing import IO, Any, Optional, Union

# A path, or a row of a list of videos: `uri`, and optionally `id`, `start` and `stop`.
Video = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Option = Union[str, int, float, bool, "os.PathLike[str]", Mapping[str, Any], None]

# Exit statuses of the command; docs/run.md.
USAGE = 2
TRY_AGAIN = 75

# Lines of standard error that an exception quotes.
QUOTED = 20

log = logging.getLogger("facetrack")


class RunError(RuntimeError):
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

    @classmethod
    def _of(cls, event: Mapping[str, Any]) -> Summary:
        values = {**event["figures"], "failures": event["failures"]}
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

    def __init__(self, command: list[str], rows: Iterable[Mapping[str, Any]]):
        with tempfile.TemporaryFile() as listed:
            for row in rows:
                listed.write(json.dumps({**row, "uri": os.fspath(row["uri"])}).encode() + b"\n")
            listed.seek(0)
            try:
                # In a session of its own, Ctrl-C reaches only this process. Together with the SIGTERM of `close`, it would
                # end the run in the middle of a frame.
                self._process = subprocess.Popen(
                    command, stdin=listed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
                )
            except FileNotFoundError as error:
                raise CommandNotFound(
                    f"there is no command {command[0]!r} on the PATH. Install it with `make install`, or enter a checkout "
                    'and run: eval "$(make -s env)"',
                    None,
                ) from error
        assert self._process.stdout is not None and self._process.stderr is not None
        self._events: IO[bytes] = self._process.stdout
        self._said: deque[str] = deque(maxlen=QUOTED)
        # The thread must not refer to the run, which ends when nothing else does.
        self._listener = threading.Thread(target=_listen, args=(self._process.stderr, self._said), daemon=True)
        self._listener.start()

    def __next__(self) -> Status:
        if self.exit_code is not None:
            raise StopIteration
        for line in self._events:
            event = json.loads(line)
            if event["event"] == "finished":
                return Status._of(event)
            if event["event"] == "note":
                log.warning("%s", event["message"])
            elif event["event"] == "summary":
                self.summary = Summary._of(event)
        self._raise_for(self._wait())
        raise StopIteration

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
        """Ends the run. The next run continues where it stopped."""
        if self._process is None or self.exit_code is not None:
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


def run(videos: Video | Iterable[Video], *, command: str = "facetrack", **options: Option) -> Run:
    """Tracks videos with `facetrack run`, and yields their statuses.

    videos: A path, folder, pattern or list, as on the command line; or an iterable of paths of videos, or of rows with
        `uri` and optionally `id`, `start` and `stop`.
    command: Name or path of the command.
    options: Those of the command, with underscores: `out="tracks"`, `jobs=4`, `retry_failed=True`,
        `set={"max-faces": 2}`.
    """
    if options.get("dry_run"):
        raise ValueError("dry_run prints no events: run `facetrack run --dry-run`")
    line = [command, "run", "--json", *_flags(options), "--"]
    if isinstance(videos, (str, os.PathLike)):
        return Run([*line, os.fspath(videos)], [])
    if isinstance(videos, Mapping):
        videos = [videos]
    rows = (video if isinstance(video, Mapping) else {"uri": video} for video in videos)
    return Run([*line, "-"], rows)


def _flags(options: Mapping[str, Option]) -> Iterator[str]:
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, Mapping):
            for key, it in value.items():
                yield f"{flag}={key}={_text(it)}"
        elif value is True:
            yield flag
        elif value is not None and value is not False:
            yield f"{flag}={_text(value)}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return os.fspath(value) if isinstance(value, Path) else str(value)
