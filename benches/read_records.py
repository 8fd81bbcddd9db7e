#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""CPU time and memory of libraries that read a verbose record, on one core.

    eval "$(make -s env)" && scripts/python.sh tests benches/read_records.py "$(facetrack path single_face.mp4)"

orjson and msgspec are compared if they are installed. The frames of the clip are repeated to ten minutes.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# A verbose record of ten minutes with one face.
FRAMES = 15_500

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))


def write_long_record(clip: str, path: Path) -> Path:
    """Writes the record, and returns the path of a short one."""
    import facetrack

    (status,) = facetrack.run(clip, out=path.parent, set={"verbose": True})
    head, *lines = Path(status.record).read_text().splitlines()
    frames = [json.loads(line.rstrip(",")) for line in lines[:-1]]
    with path.open("w") as file:
        file.write(head)
        for number in range(FRAMES):
            frame = {**frames[number % len(frames)], "frame": number + 1}
            file.write((",\n" if number else "\n") + json.dumps(frame, separators=(",", ":")))
        file.write("\n]}\n")
    return Path(status.record)


def lines(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        next(file)
        for line in file:
            if line != b"]}\n":
                yield line.rstrip(b",\n")


def joined(path: str) -> bytes:
    return b"\n".join(lines(path))


def by_facetrack(path: str) -> None:
    import facetrack

    facetrack.read(path)


def by_simdjson(path: str) -> None:
    import simdjson

    parser = simdjson.Parser()
    numbers = bytearray()
    for line in lines(path):
        frame = parser.parse(line)
        for face in frame["tracked_objects"]:
            numbers += face["landmarks"].as_buffer(of_type="d")
            face["blendshapes"].as_dict()
        del frame, face


def by_msgspec(path: str) -> None:
    import msgspec

    decoder = msgspec.json.Decoder()
    for line in lines(path):
        decoder.decode(line)


def by_typed_msgspec(path: str) -> None:
    import msgspec

    face = msgspec.defstruct("Face", [("landmarks", list[tuple[float, float, float]]), ("blendshapes", dict[str, float])])
    decoder = msgspec.json.Decoder(msgspec.defstruct("Frame", [("tracked_objects", list[face])]))
    for line in lines(path):
        decoder.decode(line)


def by_orjson(path: str) -> None:
    import orjson

    for line in lines(path):
        orjson.loads(line)


def by_json(path: str) -> None:
    for line in lines(path):
        json.loads(line)


def by_pyarrow(path: str) -> None:
    import pyarrow
    import pyarrow.json

    options = pyarrow.json.ReadOptions(use_threads=False, block_size=4 << 20)
    pyarrow.json.read_json(pyarrow.BufferReader(joined(path)), read_options=options)


def by_polars(path: str) -> None:
    import io

    import polars

    polars.read_ndjson(io.BytesIO(joined(path)))


READERS = (by_facetrack, by_simdjson, by_typed_msgspec, by_msgspec, by_orjson, by_json, by_pyarrow, by_polars)


def measure(name: str, short: str, path: str) -> None:
    reader = globals()[name]
    try:
        # Imports what it needs.
        reader(short)
    except ImportError as error:
        print(f"{name}: {error}")
        return
    start = time.process_time()
    reader(path)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name}: {time.process_time() - start:.2f} s, {memory} MB")


def main() -> None:
    if len(sys.argv) == 4:
        measure(*sys.argv[1:])
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "long.json")
        short = write_long_record(sys.argv[1], path)
        print(f"{path.stat().st_size / 1e6:.0f} MB, load of the machine {os.getloadavg()[0]:.1f}", flush=True)
        for reader in READERS:
            line = ["taskset", "--cpu-list", "1", sys.executable, __file__, reader.__name__, str(short), str(path)]
            subprocess.run(line, check=True)


if __name__ == "__main__":
    main()
