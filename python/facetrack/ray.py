# SPDX-License-Identifier: MPL-2.0
"""Tracks videos on a Ray cluster: one `facetrack run` per block of videos.

    import facetrack.ray

    statuses = facetrack.ray.track(paths, "/data/tracks", engine="openseeface")
    statuses.write_parquet("/data/statuses")

Every node needs the command `facetrack` on its PATH, and the videos and the output under the same paths.
"""

from __future__ import annotations

import math
import os
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
import ray.data

from ._errors import WrongArgument, path_of
from ._index import VIDEO_COLUMNS
from ._run import Option, RunError, Video, check_row, check_videos, run

# Columns of the input.
ROW = pa.schema({"uri": pa.string(), "id": pa.string(), "start": pa.float64(), "stop": pa.float64()})

# Status of a video that has no status file. No other run has this name for a status.
OPEN = "open"

# Blocks for each slot of the cluster, so that all slots end at about the same time, and the size that
# makes the start of a run, 0.3 s of CPU time, small. Our choice.
BLOCKS_PER_SLOT = 8
MAX_BLOCK = 64

# Seconds before further attempts at videos that another run holds. If Ray kills a task, its
# `facetrack run` ends only when it prints the next event.
WAITS = (0, 1, 2, 4, 8)


def track(
    videos: Iterable[Video] | ray.data.Dataset,
    out: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    num_cpus: int = 1,
    videos_per_task: int | None = None,
    **options: Option,
) -> ray.data.Dataset:
    """A dataset with the status of each video, in the columns of `facetrack.index`. Nothing runs before it is consumed.

    No video makes it fail. A video that was not tracked because of its node has the status `open`, and the message names
    the node and the remedy. To continue, call `track` again: it tracks only videos without a marker.

    videos: Paths, or rows with `uri` and optionally `id`, `start` and `stop`; or a dataset with these columns. Each block
        of a dataset is a task.
    out: Folder for the records.
    root: Folder that paths without an id are named from, such as `root/a/b.mp4` as `a/b`. By default the id of a
        path is its name without the suffix. For a dataset, `id` has to be unique.
    num_cpus: Cores for each task, and videos that it tracks in parallel.
    videos_per_task: Size of the blocks, if `videos` is not a dataset.
    options: Those of `facetrack.run`.
    """
    for name, number in (("num_cpus", num_cpus), ("videos_per_task", videos_per_task)):
        if number is not None and (not isinstance(number, int) or number < 1):
            raise WrongArgument(f"`{name}` is {number!r}. Give a number from 1")
    folder = os.path.abspath(path_of(out, "`out`"))
    if not isinstance(videos, ray.data.Dataset):
        rows = [_row(number, video, root) for number, video in enumerate(check_videos(videos), 1)]
        videos = _dataset(rows, num_cpus, videos_per_task)
    task = _Task(os.getcwd(), folder, {"jobs": num_cpus, **options})
    return videos.map_batches(task.track, batch_size=None, batch_format="pyarrow", num_cpus=num_cpus)


def _row(number: int, video: Video, root: str | os.PathLike[str] | None) -> dict[str, Any]:
    given = check_row(number, video)
    row = {name: given[name] for name in ROW.names if given.get(name) is not None}
    if not row.get("id"):
        path = Path(row["uri"])
        try:
            row["id"] = path.stem if root is None else os.fspath(path.relative_to(path_of(root, "`root`")).with_suffix(""))
        except ValueError as error:
            raise WrongArgument(f"row {number} is not in `root`: {error}") from error
    return row


def _dataset(rows: list[dict[str, Any]], num_cpus: int, videos_per_task: int | None) -> ray.data.Dataset:
    twice = [name for name, count in Counter(row["id"] for row in rows).items() if count > 1]
    if twice:
        raise WrongArgument(f"several videos have the id {twice[0]!r}. Give rows with different ids, or the argument `root`")
    if not ray.is_initialized():
        ray.init()
    slots = ray.cluster_resources().get("CPU", 1) / num_cpus
    size = videos_per_task or max(1, min(MAX_BLOCK, math.ceil(len(rows) / (slots * BLOCKS_PER_SLOT))))
    try:
        blocks = [pa.Table.from_pylist(rows[begin : begin + size], ROW) for begin in range(0, len(rows), size)]
    except pa.ArrowException as error:
        raise WrongArgument(f"a row has an `id` that is no text, or a `start` or `stop` that is no number: {error}") from error
    return ray.data.from_arrow(blocks or [ROW.empty_table()])


@dataclass(frozen=True)
class _Task:
    """A run for each block, on any node.

    folder: Working directory of the driver, which relative paths refer to.
    """

    folder: str
    out: str
    options: dict[str, Any]

    def track(self, block: pa.Table) -> pa.Table:
        videos = [_row(number, row, None) for number, row in enumerate(block.to_pylist(), 1)]
        for video in videos:
            if "://" not in video["uri"]:
                video["uri"] = os.path.join(self.folder, video["uri"])
        return pa.Table.from_pylist(self._results(videos), VIDEO_COLUMNS)

    def _results(self, videos: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A row for each video. Nothing is raised: Ray would drop the whole block."""
        found: dict[str, dict[str, Any]] = {}
        reason = "another run is tracking it. Call `track` again when that run has ended"
        try:
            for wait in WAITS:
                left = [video for video in videos if video["id"] not in found]
                if left:
                    time.sleep(wait)
                    self._run(left, found)
        except RunError as error:
            reason = str(error)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        node = f"{socket.gethostname()} ({ray.util.get_node_ip_address()})"
        is_open = {"status": OPEN, "host": node, "message": f"on {node}: {reason}"}
        return [
            found.get(video["id"])
            or {"id": video["id"], "video": video["uri"], "record": os.path.join(self.out, f"{video['id']}.json"), **is_open}
            for video in videos
        ]

    def _run(self, videos: list[dict[str, Any]], found: dict[str, dict[str, Any]]) -> None:
        """Adds the results of a run to `found`, also if it raises."""
        with tempfile.TemporaryDirectory() as folder:
            # Blocks would replace each other's lists, and the results have all that is in them. The
            # variables of a scheduler that started Ray select no shard.
            own = {"failures": os.path.join(folder, "failed.jsonl"), "shard": "1/1"}
            with run(videos, out=self.out, **{**self.options, **own}) as statuses:
                for status in statuses:
                    found[status.id] = asdict(status)
