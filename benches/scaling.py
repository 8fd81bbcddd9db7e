# SPDX-License-Identifier: MPL-2.0
"""Cost and benefit of faces, workers, threads, streams and elements.

The decoder has one thread, and whatever has one worker or thread is pinned to one core: otherwise the decoder's own
threads would count.
"""

import statistics
import tempfile
from collections.abc import Iterable
from pathlib import Path

from race import (
    ALL_CORES,
    CORES,
    ONE_CORE,
    PROFILE,
    Clip,
    Program,
    at_once,
    crowd,
    facetrack,
    ms,
    prepare,
    run_once,
    table,
    take_turns,
)

# Frames of a clip whose records are compared, and of the clip of memory.
FRAMES, SHORT = 200, 30

DECODER = "qtdemux ! h264parse ! avdec_h264 max-threads=1 ! queue"

# Files without which an engine is left out; the others come with `facetrack fetch`.
FILES = {"mediapipe": "face_landmarker.task", "insightface": "2d106det.onnx", "eos": "sfm_shape_3448.bin"}

ENGINES = ("mediapipe", "opencv-yunet", "opencv-yunet-pyfeat", "opencv-haar", "openseeface", "insightface", "eos")

# Engines whose frames are independent.
INDEPENDENT = (
    "opencv-haar",
    "opencv-yunet",
    "opencv-yunet-pyfeat",
    "eos",
    "eos identity=per-frame",
    "insightface",
    "mediapipe running-mode=image",
)

# Engines for several faces of a frame.
OF_FACES = ("mediapipe max-faces=4", "openseeface max-faces=4", "opencv-yunet-pyfeat", "insightface", "eos")
NUMBERS_OF_FACES = (1, 2, 4)

# Engines, and the memory that a further element may take, MB.
SHARING = {"mediapipe": 12, "openseeface": 12, "opencv-yunet": 12, "eos": 20, "insightface": 20}
ELEMENTS = 11

STREAMS = (1, 4, 16)


def present(engines: Iterable[str], args) -> list[str]:
    """Those of the engines whose files are there."""
    return [engine for engine in engines if FILES.get(engine.split()[0], FILES["mediapipe"]) in args.models]


def faces(args, track: Path) -> str:
    lines = []
    clips = [crowd(args.clip, number, FRAMES) for number in NUMBERS_OF_FACES]
    for engine in present(OF_FACES, args):
        programs = [facetrack(clip.path.stem, clip, f"engine={engine}", track, ONE_CORE, DECODER) for clip in clips]
        results = take_turns(programs, args.repeats, LIMIT)
        lines.append([f"`{engine}`", *(ms(it.mean) for it in results), *(f"{it.faces:.1f}" for it in results)])
        print(f"  {lines[-1]}", flush=True)
    columns = ["", *(f"faces: {number}, ms" for number in NUMBERS_OF_FACES), *(f"found of {number}" for number in NUMBERS_OF_FACES)]
    return "### Faces in a frame of 1280×720, one core\n\n" + table(columns, lines)


def compare(title: str, engines: tuple[str, ...], option: str, clip: Clip, args, folder: Path) -> str:
    """One worker or thread on one core against as many as there are cores, on all of them."""
    numbers = {1: ONE_CORE, len(CORES): ALL_CORES}
    lines = []
    for engine in present(engines, args):
        tracks = [folder / f"{number}.json" for number in numbers]
        programs = [
            facetrack(f"{engine} {option}={number}", clip, f"engine={engine} {option}={number}", track, cores, DECODER)
            for (number, cores), track in zip(numbers.items(), tracks)
        ]
        results = take_turns(programs, args.repeats)
        # Independent programs, one on each core: they show what the machine can give.
        copies = [
            facetrack(core, clip, f"engine={engine}", folder / f"core-{core}.json", core, DECODER) for core in map(str, CORES)
        ]
        copied = statistics.fmean(it.mean for it in at_once(copies, args.repeats))
        # The options in the first line differ.
        records = {track.read_bytes().split(b"\n", 1)[1] for track in tracks}
        lines.append(
            [
                f"`{engine}`",
                *(ms(it.mean) for it in results),
                f"{results[0].mean / results[-1].mean:.2f}×",
                *(ms(it.engine) for it in results),
                f"{results[0].engine / results[-1].engine:.2f}×",
                f"{results[0].mean * len(CORES) / copied:.2f}×",
                "yes" if len(records) == 1 else "**no**",
            ]
        )
        print(f"  {lines[-1]}", flush=True)
    columns = [
        "",
        *(f"{option}={number}, ms" for number in numbers),
        "ratio",
        *(f"{option}={number}, analysis, ms" for number in numbers),
        "ratio",
        f"{len(CORES)} processes",
        "same record",
    ]
    return f"### {title}\n\n" + table(columns, lines)


def streams(clip: Clip, args) -> str:
    """Streams of one pipeline, each with its own decoder and element."""
    stream = f"filesrc location={clip.path} ! {DECODER} ! facetrack profile-interval=1 ! fakesink sync=false"
    programs = [
        Program(f"{count}, {on}", ["gst-launch-1.0", "-q", *" ".join([stream] * count).split()], cores, PROFILE)
        for cores, on in ((ONE_CORE, "one core"), (ALL_CORES, f"{len(CORES)} cores"))
        for count in STREAMS
    ]
    lines = [
        [it.name, f"{1000 / it.mean:.0f}", f"{1000 / it.mean / int(it.name.split(',')[0]):.1f}", f"{it.megabytes:.0f}"]
        for it in take_turns(programs, args.repeats, LIMIT)
    ]
    return "### Streams in one pipeline, `mediapipe`, one face, 1280×720\n\n" + table(
        ["streams", "frames per second, all", "of each stream", "peak MB"], lines
    )


def memory(clip: Clip, args) -> str:
    def peak(engine: str, elements: int) -> float:
        chain = f"! facetrack engine={engine} " * elements
        return run_once(["gst-launch-1.0", "-q", *f"filesrc location={clip.path} ! {DECODER} {chain}! fakesink".split()], ONE_CORE)[
            1
        ]

    lines = []
    for engine in present(SHARING, args):
        one, several = (peak(engine, elements) for elements in (1, ELEMENTS))
        lines.append([f"`{engine}`", f"{one:.0f}", f"{(several - one) / (ELEMENTS - 1):.1f}", SHARING[engine]])
        print(f"  {lines[-1]}", flush=True)
    return "### Memory of a further element, 1280×720\n\n" + table(
        ["", "one element, peak MB of the process", "a further one, MB", "at most"], lines
    )


def start_up(clip: Clip, args, track: Path) -> str:
    programs = [facetrack(engine, clip, f"engine={engine}", track, ONE_CORE, DECODER) for engine in present(ENGINES, args)]
    results = take_turns(programs, args.repeats)
    return "### Start of a process to the end of the first frame, 1280×720, one core\n\n" + table(
        ["", "s"], ([f"`{it.name}`", f"{it.start_up:.2f}"] for it in results)
    )


# Time that the frames of a program take in a run, s, where no record is compared.
LIMIT = 2.0


def section(args) -> str:
    short, clip = (prepare(args.clip, 1280, 720, frames) for frames in (SHORT, FRAMES))
    group = crowd(args.clip, 4, FRAMES)
    count = len(CORES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        track = folder / "track.json"
        parts = [
            INTRODUCTION,
            faces(args, track),
            compare(f"{count} workers on {count} cores, one face, 1280×720", INDEPENDENT, "workers", clip, args, folder),
            compare(f"{count} threads on {count} cores, four faces, 1280×720", OF_FACES, "threads", group, args, folder),
            streams(clip, args),
            memory(short, args),
            start_up(short, args, track),
        ]
    return "\n\n".join(parts)


INTRODUCTION = """\
Our pipelines, from file to JSON. The decoder has one thread. One worker or thread runs on one core,
several on all cores. "Analysis" is the element's own time per frame (`total` of `profile-interval`).
With several workers, it is the time of a frame in its worker, so it does not become shorter.
"Processes" is the ratio of independent processes with one worker, one on each core. It is below the
number of cores where a network waits for memory, which the cores share. "Same record" compares the
JSON, except its first line. Engines whose files are missing are left out."""
