#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""The engine opencv-haar against cv2.CascadeClassifier, frame by frame in turns, each on one thread: whether the boxes
are equal, and the median time of both. Needs opencv-python-headless==4.12.0.88.

    cargo build --release --no-default-features --bench haar
    taskset -c 1 benches/against_opencv_haar.py --engine target/release/deps/haar-… --cascade FILE CLIP_OR_PICTURE…"""

import argparse
import json
import statistics
import subprocess
import time

import cv2


class Engine:
    def __init__(self, program, cascade):
        self.process = subprocess.Popen([program, cascade], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def detect(self, frame, settings):
        height, width = frame.shape[:2]
        line = " ".join(map(str, [width, height, *settings]))
        self.process.stdin.write(line.encode() + b"\n" + frame.tobytes())
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return [[int(v) for v in box] for box in answer["boxes"]], answer["ms"]


def detect_with_opencv(cascade, frame, settings):
    factor, neighbors, least, most = settings
    start = time.perf_counter()
    boxes = cascade.detectMultiScale(frame, factor, neighbors, minSize=(least, least), maxSize=(most, most))
    ms = (time.perf_counter() - start) * 1e3
    return [[int(v) for v in box] for box in boxes], ms


def frames_of(path, limit):
    picture = cv2.imread(path)
    if picture is not None:
        yield from [picture] * min(limit, 3)
        return
    clip = cv2.VideoCapture(path)
    for _ in range(limit):
        ok, frame = clip.read()
        if not ok:
            return
        yield frame


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", required=True, help="the built bench `haar`")
    parser.add_argument("--cascade", required=True)
    parser.add_argument("--resize", type=lambda text: tuple(map(int, text.split("x"))), help="WxH")
    parser.add_argument("--frames", type=int, default=10**9, help="most frames of each clip")
    parser.add_argument("--settings", default="1.1,5,30,0", help="scale factor, neighbours, least and greatest size")
    parser.add_argument("media", nargs="+")
    args = parser.parse_args()
    cv2.setNumThreads(1)
    settings = [float(v) if "." in v else int(v) for v in args.settings.split(",")]
    engine, cascade = Engine(args.engine, args.cascade), cv2.CascadeClassifier(args.cascade)
    for path in args.media:
        ours, theirs, faces, different = [], [], 0, []
        for index, frame in enumerate(frames_of(path, args.frames)):
            frame = cv2.resize(frame, args.resize) if args.resize else frame
            expected, their_ms = detect_with_opencv(cascade, frame, settings)
            boxes, our_ms = engine.detect(frame, settings)
            faces += len(expected)
            if boxes != expected:
                different.append((index, boxes, expected))
            ours.append(our_ms)
            theirs.append(their_ms)
        for index, boxes, expected in different[:3]:
            print(f"  frame {index}: {boxes}, OpenCV: {expected}")
        a, b = statistics.median(ours), statistics.median(theirs)
        size = f"{frame.shape[1]}x{frame.shape[0]}"
        print(
            f"{path.rsplit('/')[-1]} {size}: {len(ours)} frames, {faces} faces, {len(different)} frames differ;"
            f" ms a frame {a:.2f}, OpenCV {b:.2f}: {b / a:.2f} times as fast"
        )


if __name__ == "__main__":
    main()
