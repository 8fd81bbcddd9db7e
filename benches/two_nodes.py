#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Compares two Ray nodes of one core with one `facetrack run --jobs 1` on one core.

    eval "$(make -s env)" && scripts/python.sh clusters benches/two_nodes.py "$(facetrack path single_face.mp4)"

34 clips of 10 to 60 seconds are repetitions of CLIP, which needs ffmpeg, and 6 more are broken. The cluster is started
before the clock. The head of the cluster, a third machine elsewhere, and Ray's own processes share the two cores: the time
that they take is printed. The records of both have to be equal.
"""

import argparse
import filecmp
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PYTHON = str(Path(__file__).resolve().parents[1] / "python")
# Ray's workers inherit it.
os.environ["PYTHONPATH"] = PYTHON
# Ray's default, 15, gives way to everything else on the machine.
os.environ["RAY_worker_niceness"] = "0"
sys.path.insert(0, PYTHON)

import ray  # noqa: E402
from facetrack.ray import track  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import psutil  # noqa: E402, I001: ray brings it along, and finds it once it is imported

# Lengths of the clips that can be tracked, s, and number of broken ones.
LENGTHS = [10 + 50 * number / 33 for number in range(34)]
BROKEN = 6


def make_clips(clip: Path, folder: Path) -> list[Path]:
    """Long and short ones in turn, in no order of their lengths, and a broken one after each fifth."""
    for number, seconds in enumerate(LENGTHS):
        to = folder / f"clip{number * 13 % len(LENGTHS):02}.mp4"
        loop = ["ffmpeg", "-v", "error", "-stream_loop", "-1", "-i", str(clip), "-t", f"{seconds:.2f}", "-an", "-c", "copy", str(to)]
        subprocess.run(loop, check=True)
    for number in range(BROKEN):
        content = (folder / f"clip{number * 5:02}.mp4").read_bytes()
        (folder / f"clip{number * 5:02}-broken.mp4").write_bytes(content[: len(content) // 2])
    return sorted(folder.glob("*.mp4"))


def seconds_of_ray() -> float:
    """CPU time so far of processes of Ray that run no task."""
    own = re.compile(r"gcs_server|raylet|/ray/")
    processes = psutil.process_iter(["cmdline", "cpu_times"])
    ours = [process.info for process in processes if own.search(" ".join(process.info["cmdline"] or []))]
    return sum(sum(info["cpu_times"][:2]) for info in ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path)
    parser.add_argument("--engine", default="mediapipe")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "in")
        folder.mkdir()
        videos = make_clips(arguments.clip, folder)
        for number in range(arguments.rounds):
            out = [Path(scratch, f"{name}{number}") for name in ("one", "two")]
            start = time.perf_counter()
            line = ["taskset", "--cpu-list", "0", "facetrack", "run", str(folder), "--jobs", "1", "--out", str(out[0])]
            subprocess.run([*line, "--engine", arguments.engine], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            one = time.perf_counter() - start
            own = seconds_of_ray()
            rows = track(videos, out[1], engine=arguments.engine).take_all()
            two = time.perf_counter() - start - one
            own = seconds_of_ray() - own
            states = Counter(row["status"] for row in rows)
            assert states == {"complete": len(LENGTHS), "failed": BROKEN}, states
            names = [path.name for path in out[0].glob("*.json")]
            assert len(names) == len(LENGTHS) and filecmp.cmpfiles(*out, names, shallow=False)[0] == names
            print(f"one run {one:.1f} s, two nodes {two:.1f} s: {one / two:.2f} x; {own:.1f} CPU seconds of Ray's own", flush=True)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
