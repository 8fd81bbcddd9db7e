#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""What further workers, threads and elements bring and cost.

The decoder has one thread, and whatever has one worker or thread is pinned to one core: otherwise the decoder's own
threads would count. Each figure is the median of alternating runs, and each run is a process of its own. Its start-up is
cancelled out by a short clip, as in `race.py`.

Run it through `make bench`, which sets the environment that GStreamer needs.
"""

import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from race import CACHE, Clip, launch, parser, prepare, run_once

# Frames of the two clips.
SHORT, LONG = 30, 330

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
OF_FACES = ("mediapipe max-faces=4", "mediapipe", "openseeface max-faces=4", "opencv-yunet-pyfeat", "eos")

# Engines, and the memory that a further element may take, MB.
SHARING = {"mediapipe": 12, "openseeface": 12, "opencv-yunet": 12, "eos": 20, "insightface": 20}


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    options: str
    cores: str

    def seconds(self, clip: Clip, track: Path) -> float:
        pipeline = (
            f"filesrc location={clip.path} ! qtdemux ! h264parse ! avdec_h264 max-threads=1 ! queue "
            f"! facetrack engine={self.options} ! trackjsonsink location={track} overwrite=true"
        )
        seconds, _, _ = run_once(["gst-launch-1.0", "-q", *pipeline.split()], self.cores)
        return seconds


def speed_up(one: Side, several: Side, clips: list[Clip], repeats: int) -> tuple[float, float, bool]:
    """Ms a frame of both sides, and whether their records are the same but for the options in the first line."""
    taken: dict[tuple[Side, Clip], list[float]] = {}
    frames = {}
    with tempfile.TemporaryDirectory() as folder:
        track = Path(folder) / "track.json"
        for _ in range(repeats):
            for clip in clips:
                for side in (one, several):
                    taken.setdefault((side, clip), []).append(side.seconds(clip, track))
                    frames[side] = track.read_bytes().split(b"\n", 1)[1]
    short, long = clips

    def ms(side: Side) -> float:
        in_short, in_long = (statistics.median(taken[side, clip]) for clip in clips)
        return 1000 * (in_long - in_short) / (long.frames - short.frames)

    return ms(one), ms(several), frames[one] == frames[several]


def compare(title: str, sides: list[tuple[str, Side, Side]], clips: list[Clip], args) -> str:
    lines = [f"### {title}", "| | one, ms a frame | several, ms a frame | speed-up | same record |", "|---|--:|--:|--:|---|"]
    for name, one, several in sides:
        before, after, same = speed_up(one, several, clips, args.repeats)
        lines.append(
            f"| `{name}` | {before:.2f} | {after:.2f} | {before / after:.2f}× | {'yes' if same else '**no**'} |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines)


def four_faces(source: Path, frames: int) -> Clip:
    """Four small copies of `source` in a frame of 1280×720."""
    path = CACHE / f"{source.stem}-four-{frames}.mp4"
    quarter = prepare(source, 640, 360, frames)
    if not path.exists():
        unfinished = path.with_suffix(".part")
        places = " ".join(f"sink_{i}::xpos={640 * (i % 2)} sink_{i}::ypos={360 * (i // 2)}" for i in range(4))
        decoders = " ".join(f"filesrc location={quarter.path} ! decodebin ! queue ! c.sink_{i}" for i in range(4))
        launch(
            f"compositor name=c {places} ! video/x-raw,width=1280,height=720 ! videoconvert ! video/x-raw,format=I420 "
            f"! x264enc ! h264parse ! mp4mux ! filesink location={unfinished} {decoders}"
        )
        unfinished.rename(path)
    return Clip(path, frames)


def peak_kibibytes(clip: Clip, engine: str, elements: int) -> int:
    chain = f"! facetrack engine={engine} " * elements
    pipeline = f"filesrc location={clip.path} ! qtdemux ! h264parse ! avdec_h264 max-threads=1 {chain}! fakesink"
    return run_once(["gst-launch-1.0", "-q", *pipeline.split()], "0")[1]


def memory(clip: Clip) -> str:
    lines = ["### Memory of a further element", "| | MB | at most |", "|---|--:|--:|"]
    for engine, bar in SHARING.items():
        one, eleven = (peak_kibibytes(clip, engine, elements) for elements in (1, 11))
        lines.append(f"| `{engine}` | {(eleven - one) / 10 / 1024:.1f} | {bar} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def streams(clip: Clip, count: int) -> str:
    """Streams of one pipeline, each with its own decoder and element."""
    stream = (
        f"filesrc location={clip.path} ! qtdemux ! h264parse ! avdec_h264 max-threads=1 ! queue ! facetrack ! fakesink sync=false"
    )
    cores = f"0-{os.cpu_count() - 1}"
    seconds, kibibytes, _ = run_once(["gst-launch-1.0", "-q", *" ".join([stream] * count).split()], cores)
    return (
        f"{count} streams with `mediapipe` in one pipeline: {count * clip.frames / seconds:.0f} frames per second, "
        f"{kibibytes / 1024:.0f} MB"
    )


def start_up(clip: Clip, repeats: int) -> str:
    pipeline = (
        f"filesrc location={clip.path} ! qtdemux ! h264parse ! avdec_h264 max-threads=1 ! facetrack "
        f"! identity eos-after=2 ! fakesink"
    )
    runs = [run_once(["gst-launch-1.0", "-q", *pipeline.split()], "0")[0] for _ in range(repeats)]
    return f"Process start to the end of the first frame, `mediapipe`: {statistics.median(runs):.2f} s"


def main() -> None:
    args = parser(__doc__).parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    clips = [prepare(args.clip, 1280, 720, frames) for frames in (SHORT, LONG)]
    crowd = [four_faces(args.clip, frames) for frames in (SHORT, LONG)]
    all_cores = f"0-{os.cpu_count() - 1}"
    workers = [
        (engine, Side(f"{engine} workers=1", "0"), Side(f"{engine} workers=2", all_cores)) for engine in INDEPENDENT
    ]
    threads = [(engine, Side(f"{engine} threads=1", "0"), Side(f"{engine} threads=2", all_cores)) for engine in OF_FACES]
    parts = [
        compare("Two workers, one face, 1280×720", workers, clips, args),
        compare("Two threads, four faces, 1280×720", threads, crowd, args),
        memory(clips[0]),
        streams(clips[0], 20),
        start_up(clips[0], args.repeats),
    ]
    print("\n" + "\n\n".join(parts))


if __name__ == "__main__":
    main()
