# SPDX-License-Identifier: MPL-2.0
"""`facetrack.ray` on two nodes of one core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster
from videos import (
    KILLER,
    SCRIPTED,
    SLOW,
    assert_only_killer_failed,
    clips,
    forty,
    processes,
    records,
    sequential,
    stamps,
    wait_until,
    with_killer,
)

from facetrack.ray import track


@pytest.fixture
def cluster() -> Iterator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # The head has no cores, as it cannot be lost.
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def results(dataset: Any) -> dict[str, Any]:
    rows = dataset.take_all()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def test_every_video_has_a_row(tmp_path: Path, cluster: Any) -> None:
    folder, broken = forty(tmp_path / "in")
    videos = sorted(folder.glob("*.mp4"))
    rows = results(track(videos, tmp_path / "out", **SLOW))
    assert len(rows) == 40
    assert {name for name, row in rows.items() if row["status"] != "complete"} == broken
    assert all(rows[name]["message"] for name in broken)
    assert records(tmp_path / "out") == sequential(folder, tmp_path / "sequential")
    # Blocks of one row.
    dataset = ray.data.from_items([{"uri": str(video)} for video in videos[:6]], override_num_blocks=6)
    again = results(track(dataset, tmp_path / "out", **SLOW))
    assert len(again) == 6 and all(again[name]["key"] == rows[name]["key"] for name in again)
    assert {name: again[name]["seconds"] for name in again} == {name: rows[name]["seconds"] for name in again}

    with pytest.raises(ValueError, match="several videos have the id 'a'"):
        track([tmp_path / "a.mp4", tmp_path / "x" / "a.mp4"], tmp_path)
    twins = ray.data.from_items([{"uri": str(folder / "clip1.mp4"), "size": 3}] * 2, override_num_blocks=1)
    rows = track(twins, tmp_path / "twins", **SLOW).take_all()
    assert [row["status"] for row in rows] == ["open"] * 2 and "would both be recorded" in rows[0]["message"]
    named = results(track([folder / "clip1.mp4"], tmp_path / "named", root=tmp_path, **SCRIPTED))
    assert list(named) == ["in/clip1"] and (tmp_path / "named/in/clip1.json").exists()


@pytest.mark.parametrize("killed", ["node", "worker"])
def test_a_kill_is_made_up_for(tmp_path: Path, cluster: Any, killed: str) -> None:
    folder = clips(tmp_path / "in", 20, frames=30)
    out = tmp_path / "out"
    found: dict[str, Any] = {}
    tracking = threading.Thread(target=lambda: found.update(results(track(sorted(folder.glob("*.mp4")), out, **SLOW))))
    tracking.start()
    wait_until(lambda: len(stamps(out)) >= 6)
    if killed == "node":
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    else:
        os.kill(processes("ray::", "Map")[0], signal.SIGKILL)
    before = stamps(out)
    tracking.join()
    assert len(found) == 20 and {row["status"] for row in found.values()} == {"complete"}
    after = stamps(out)
    # Neither Ray's own attempt nor the next run has tracked them again.
    assert {name: after[name] for name in before} == before and len(before) < 20
    assert len(results(track(sorted(folder.glob("*.mp4")), out, **SLOW))) == 20
    assert stamps(out) == after
    assert records(out) == sequential(folder, tmp_path / "sequential")


def test_a_video_that_kills_its_worker_is_named(tmp_path: Path, cluster: Any) -> None:
    folder = with_killer(tmp_path / "in")
    rows = results(track(sorted(folder.glob("*.mp4")), tmp_path / "out", **KILLER))
    assert len(rows) == 40
    assert {name for name, row in rows.items() if row["status"] != "complete"} == {"killer"}
    assert_only_killer_failed(tmp_path / "out")


def test_a_node_without_the_command_is_named(tmp_path: Path, cluster: Any) -> None:
    folder = clips(tmp_path / "in", 2)
    videos = sorted(folder.glob("*.mp4"))
    for options, remedy in (
        ({"command": "no-facetrack"}, "Install it with `make install`"),
        ({"set": {"nosuch": 1}}, "`gst-inspect-1.0 facetrack`"),
    ):
        rows = results(track(videos, tmp_path / "out", **options))
        assert {row["status"] for row in rows.values()} == {"open"}
        for row in rows.values():
            assert row["host"] in row["message"] and remedy in row["message"]
    assert not (tmp_path / "out").exists()


def test_the_snippet_of_the_documentation_runs(tmp_path: Path, cluster: Any) -> None:
    page = Path(__file__).parents[3] / "docs/cluster.md"
    (snippet,) = page.read_text().split("```python\n")[1:]
    clips(tmp_path / "clips", 2)
    snippet = snippet.partition("\n```")[0].replace('"tracks",', '"tracks", engine="scripted",')
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    subprocess.run([sys.executable, "-c", snippet], check=True, env=environment)
    assert len(list(Path("statuses").glob("*.parquet"))) > 0 and len(stamps(Path("tracks"))) == 2
