# SPDX-License-Identifier: MPL-2.0
"""Every engine against its original in Python, from file to faces.

The original decodes with OpenCV and writes no JSON. Both sides run the same models with the same settings.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from race import (
    ALL_CORES,
    CORES,
    ONE_CORE,
    ROOT,
    Clip,
    Program,
    Result,
    Unavailable,
    crowd,
    environment_with,
    facetrack,
    model,
    ms,
    prepare,
    table,
    take_turns,
)

MEDIAPIPE = ("0.10.21", "1.2.3")
LITERT = "ai-edge-litert==2.3.0"
# The packages of OpenCV 5 have no cascades, so the cascade runs in 4.12.
YUNET_OPENCV = "5.0.0.93"
CASCADE_OPENCV = "4.12.0.88"
# InsightFace is installed without dependencies: it requires an OpenCV with windows, which would replace this one.
INSIGHTFACE_ALONE = ("insightface==2.1",)
INSIGHTFACE = (
    "onnxruntime==1.32.0",
    "opencv-python-headless==4.12.0.88",
    "numpy==2.2.6",
    "onnx>=1.13",
    "requests",
    "scikit-image",
    "scipy",
    "tqdm",
)
OPENSEEFACE = ("opencv-python-headless==4.12.0.88", "onnxruntime==1.28.0", "pillow==11.3.0")
OPENSEEFACE_COMMIT = "dee5bb76"

# Destination of facetracker.py's packets: the discard port, where no program listens.
PORT = 9

# Time that the frames of a program take in a run, s.
LIMIT = 1.5

FRAME = re.compile(r"^frame: (\d+) faces in ([\d.]+) ms")
# facetracker.py prints a line for each face of a frame.
FRAME_OF_FACETRACKER = re.compile(r"^Confidence\[0\]")


# Heights of frames, and frames of their clips: enough for the time of a run, except for the fastest programs.
FRAMES = {360: 600, 720: 600, 1080: 300, 2160: 120}


@dataclass(frozen=True)
class Case:
    """Settings that the programs of a table share."""

    height: int
    faces: int
    several_cores: bool

    @property
    def title(self) -> str:
        cores = f"{len(CORES)} cores" if self.several_cores else "one core"
        return f"{self.height * 16 // 9}×{self.height}, {'one face' if self.faces == 1 else f'{self.faces} faces'}, {cores}"

    @property
    def threads(self) -> int:
        return len(CORES) if self.several_cores else 1

    @property
    def cores(self) -> str:
        return ALL_CORES if self.several_cores else ONE_CORE

    def clip(self, source: Path) -> Clip:
        if self.faces > 1:
            return crowd(source, self.faces, FRAMES[self.height])
        return prepare(source, self.height * 16 // 9, self.height, FRAMES[self.height])


# Four faces only fit into frames of 1280×720.
CASES = (
    *(Case(height, 1, False) for height in FRAMES),
    Case(720, 4, False),
    Case(720, 1, True),
    Case(720, 4, True),
)


@dataclass(frozen=True)
class Race:
    """An engine and its originals."""

    name: str
    # Options of our element.
    options: Callable[[Case], str]
    originals: tuple[Callable[[Case, Clip], Program], ...] = ()


def python_program(name: str, case: Case, python: Path, script: str, *arguments: object) -> Program:
    command = [python, ROOT / "benches" / script, *arguments]
    return Program(
        name,
        [str(part) for part in command],
        case.cores,
        FRAME,
        engine=lambda lines: mean_of(2, lines),
        faces=lambda lines: mean_of(1, lines),
    )


def mean_of(group: int, lines: list[str]) -> float:
    return sum(float(FRAME.search(line)[group]) for line in lines) / len(lines)


def parallel(case: Case) -> str:
    """Our options for engines whose frames are independent."""
    return f"workers={case.threads}"


def mediapipe(args) -> Race:
    def original(version: str, case: Case, clip: Clip) -> Program:
        python = environment_with(f"mediapipe-{version}", f"mediapipe=={version}")
        bundle = model(args, "face_landmarker.task")
        return python_program(f"MediaPipe {version}", case, python, "mediapipe_reference.py", case.faces, bundle, clip.path)

    return Race(
        "mediapipe",
        lambda case: f"engine=mediapipe max-faces={case.faces} threads={case.threads}",
        tuple(partial(original, version) for version in MEDIAPIPE),
    )


def opencv(args, engine: str, options: str, name: str, version: str, *models: str) -> Race:
    def original(case: Case, clip: Clip) -> Program:
        python = environment_with(f"opencv-{version}", f"opencv-python-headless=={version}", LITERT)
        paths = [model(args, name) for name in models]
        return python_program(name, case, python, "opencv_reference.py", case.threads, engine, clip.path, *paths)

    return Race(engine, lambda case: f"engine={engine} {options} {parallel(case)}", (original,))


def openseeface(args) -> Race:
    def original(case: Case, clip: Clip) -> Program:
        if not args.openseeface:
            raise Unavailable(f"OPENSEEFACE names no checkout of emilianavt/OpenSeeFace at {OPENSEEFACE_COMMIT}")
        python = environment_with("openseeface", *OPENSEEFACE)
        options = f"--model 0 --port {PORT} --max-threads {case.threads} --faces {case.faces}"
        command = [python, args.openseeface / "facetracker.py", "--capture", clip.path, *options.split()]
        parts = [str(part) for part in command]
        return Program(f"facetracker.py {OPENSEEFACE_COMMIT}", parts, case.cores, FRAME_OF_FACETRACKER)

    return Race(
        "openseeface",
        lambda case: f"engine=openseeface landmark-model=0 max-faces={case.faces} threads={case.threads}",
        (original,),
    )


def insightface(args, what: str, modules: str, options: str) -> Race:
    pack = model(args, "2d106det.onnx").parent

    def original(case: Case, clip: Clip) -> Program:
        python = environment_with("insightface-2.1", *INSIGHTFACE, alone=INSIGHTFACE_ALONE)
        return python_program("insightface 2.1", case, python, "insightface_reference.py", case.threads, pack, modules, clip.path)

    ours = f"engine=insightface device=auto gpu-fallback=true model={pack} allowed-modules={modules} {options}"
    return Race(f"insightface, {what}", lambda case: f"{ours} {parallel(case)}", (original,))


def races(args, missing: dict[str, str]) -> Iterator[Race]:
    yunet, bundle = "face_detection_yunet_2023mar.onnx", "face_landmarker.task"
    # The originals look at frames of full size.
    full = "detect-max-width=0"
    yield mediapipe(args)
    yield opencv(args, "opencv-yunet", full, f"cv2.FaceDetectorYN {YUNET_OPENCV}", YUNET_OPENCV, yunet)
    yield opencv(args, "opencv-yunet-pyfeat", full, f"cv2.FaceDetectorYN {YUNET_OPENCV} + LiteRT 2.3.0", YUNET_OPENCV, yunet, bundle)
    cascade = "haarcascade_frontalface_default.xml"
    yield opencv(args, "opencv-haar", "", f"cv2.CascadeClassifier {CASCADE_OPENCV}", CASCADE_OPENCV, cascade)
    yield openseeface(args)
    try:
        yield insightface(args, "landmarks", "detection,landmark_2d_106", "")
        yield insightface(args, "everything", "detection,landmark_2d_106,genderage,recognition", "embedding=true")
    except Unavailable as reason:
        missing["insightface"] = str(reason)
    # eos-py finds no faces.
    yield Race("eos", lambda case: f"engine=eos {parallel(case)}")


def run_race(race: Race, case: Case, args, track: Path, missing: dict[str, str]) -> list[Result]:
    """The first result is ours. Originals that cannot run are added to `missing`."""
    clip = case.clip(args.clip)
    programs = [facetrack(race.name, clip, race.options(case), track, case.cores)]
    for original in race.originals:
        try:
            programs.append(original(case, clip))
        except Unavailable as reason:
            missing[f"the original of {race.name}"] = str(reason)
    try:
        results = take_turns(programs, args.repeats, LIMIT, missing)
    except Unavailable as reason:
        missing[race.name] = str(reason)
        return []
    for it in results:
        print(f"  {it.name}: {ms(it.mean)} ms, {it.mean / results[0].mean:.2f}×", flush=True)
    return results


COLUMNS = [
    "",
    "mean ms",
    "median ms",
    "p95 ms",
    "engine ms",
    "CPU-s per minute",
    "streams per core",
    "peak MB",
    "start-up s",
    "faces",
    "ratio",
]


def rows(results: list[Result]) -> Iterator[list[str]]:
    own = results[0]
    for it in results:
        yield [
            f"`{it.name}`" if it is own else it.name,
            ms(it.mean),
            ms(it.median),
            ms(it.p95),
            ms(it.engine),
            ms(it.cpu_per_minute),
            f"{60 / it.cpu_per_minute:.2f}",
            f"{it.megabytes:.0f}",
            f"{it.start_up:.2f}",
            "" if it.faces is None else f"{it.faces:.2f}",
            "" if it is own else f"{it.mean / own.mean:.2f}×",
        ]


def summary(cases: dict[Case, list[list[Result]]]) -> str:
    """One line per program, one column per case."""
    cells: dict[tuple[str, str], dict[Case, str]] = {}
    for case, of_case in cases.items():
        for results in of_case:
            own = results[0]
            for it in results:
                ratio = "" if it is own else f" ({it.mean / own.mean:.1f}×)"
                cells.setdefault((own.name, it.name), {})[case] = f"{ms(it.mean)}{ratio}"
    lines = [
        [f"`{name}`" if name == engine else name, *(of_program.get(case, "") for case in cases)]
        for (engine, name), of_program in cells.items()
    ]
    return table(["mean ms per frame", *(case.title for case in cases)], lines)


def section(args) -> str:
    missing: dict[str, str] = {}
    measured: dict[Case, list[list[Result]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        track = Path(folder) / "track.json"
        ready = list(races(args, missing))
        for case in CASES:
            print(f"{case.title}:", flush=True)
            of_case = [run_race(race, case, args, track, missing) for race in ready]
            measured[case] = [results for results in of_case if results]
    parts = [INTRODUCTION, summary(measured)]
    if missing:
        parts.append("Not measured:\n\n" + "\n".join(f"- {name}: {reason}" for name, reason in missing.items()))
    for case, of_case in measured.items():
        parts.append(f"### {case.title}\n\n" + table(COLUMNS, (row for results in of_case for row in rows(results))))
    return "\n\n".join(parts)


INTRODUCTION = f"""\
Each program reads a video and finds the faces. Ours also writes JSON; the originals run in Python
and decode with OpenCV. An engine and its originals take turns. A run lasts {LIMIT:g} s after a warm-up.
YuNet's detector processes whole frames (`detect-max-width=0`) on both sides. Clips of other sizes are
scaled from the 640×360 sample clip. Four faces are four copies of it in one frame.

- mean: median over the runs of the mean time per frame. median, p95: over the frames of all runs
- engine: mean time per frame without decoding and writing, where the program reports it
- CPU-s per minute: CPU seconds for one minute of video with 30 fps
- streams per core: streams of 30 fps that one core sustains, 60 / CPU-s per minute
- faces: mean number per frame. At 3840×2160, YuNet finds hardly any in whole frames, because the face
  is too large for it
- start-up: from the start of the process to the end of the first frame
- ratio: time of the original divided by ours. Above 1, ours is faster"""
