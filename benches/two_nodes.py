#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Compares two Ray nodes of one core with one `facetrack run --jobs 1` on one core.

    eval "$(make -s env)" && scripts/python.sh clusters benches/two_nodes.py "$(facetrack path single_face.mp4)"

The cluster is started before the clock. With --slow, the engine waits in each frame instead of computing: this shows what
Ray costs on a machine that others use too.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path)
    parser.add_argument("--copies", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow", type=int, metavar="MS", help="time that the engine scripted waits in each frame")
    arguments = parser.parse_args()
    options = {"engine": "mediapipe"}
    if arguments.slow:
        options = {"engine": "scripted", "set": f"script=face; slow ms={arguments.slow}"}

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory() as folder:
        videos = [Path(folder, f"clip{number}.mp4") for number in range(arguments.copies)]
        for video in videos:
            video.symlink_to(arguments.clip.resolve())
        for number in range(arguments.rounds):
            start = time.perf_counter()
            line = ["taskset", "--cpu-list", "0", "facetrack", "run", folder, "--jobs", "1", "--out", f"{folder}/one{number}"]
            line += [f"--{name}={value}" for name, value in options.items()]
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
            one = time.perf_counter() - start
            rows = track(videos, f"{folder}/two{number}", **options).take_all()
            two = time.perf_counter() - start - one
            assert all(row["status"] == "complete" for row in rows) and len(rows) == arguments.copies
            load = os.getloadavg()[0]
            print(f"one run {one:.1f} s, two nodes {two:.1f} s: {one / two:.2f} x; load of the machine {load:.1f}", flush=True)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
