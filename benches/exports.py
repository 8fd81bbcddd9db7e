#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Wall time, CPU time and memory of `facetrack export` for a verbose record of ten minutes.

    eval "$(make -s env)" && scripts/python.sh tests benches/exports.py target/release/facetrack "$(facetrack path single_face.mp4)"

Prints the rows of the table in docs/export.md, with the median of the repetitions by wall time.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from read_records import write_long_record

EXPORTS = (
    "csv",
    "csv --smooth 0.05",
    "parquet",
    "livelink-csv",
    "openface-csv",
    "parquet --landmarks",
    "csv --landmarks",
)
REPETITIONS = 5


def measure(command: list[str]) -> tuple[float, float, int]:
    """Wall time and CPU time in seconds, and the maximum resident memory in MB."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def main() -> None:
    program, clip = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "long.json")
        write_long_record(clip, record)
        print(f"{record.stat().st_size / 1e6:.0f} MB, load of the machine {os.getloadavg()[0]:.1f}", flush=True)
        for export in EXPORTS:
            name, *options = export.split()
            out = ["--out", str(Path(folder, "out"))]
            command = [program, "export", str(record), "--format", name, *options, *out]
            runs = sorted(measure(command) for _ in range(REPETITIONS))
            wall, cpu, memory = runs[REPETITIONS // 2]
            print(f"| `{export}` | {wall:.1f} s | {cpu:.1f} s | {memory} MB |", flush=True)


if __name__ == "__main__":
    main()
