#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Writes the blendshapes in a file of `trackjsonsink` as a table (CSV) and as curves over time (SVG, PNG, PDF).

    examples/plot_blendshapes.py clip.json clip.csv clip.svg
    examples/plot_blendshapes.py clip.jsonl mouth.png --channels jawOpen,mouthPucker

Where there is no face, or nothing was measured of it, cells are empty and curves have gaps.
"""

import argparse
import csv
import json
import sys
from collections import Counter
from pathlib import Path

try:
    import matplotlib
    import numpy as np
    from matplotlib import cycler

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError as error:
    sys.exit(f"{error}: Matplotlib is needed. On Debian: sudo apt-get install python3-matplotlib, and run /usr/bin/python3")

# Colours that can be distinguished with any colour vision (M. Okabe, K. Ito: Color Universal Design, 2008).
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]
matplotlib.rcParams["axes.prop_cycle"] = cycler(linestyle=["-", "--", ":"]) * cycler(color=COLORS)

# Every frame is a point of its curve, and the same curves make the same file.
matplotlib.rcParams["path.simplify"] = False
matplotlib.rcParams["svg.hashsalt"] = "facetrack"

# Channel of MediaPipe's network that is no expression.
NEUTRAL = "_neutral"

# Most faces that are plotted: those that are seen longest.
MOST_FACES = 6

# Maximum number of curves of a face: one for each blendshape.
MOST_CURVES = 52

FOREIGN = "there are no frames in it: it takes what trackjsonsink writes with format=dense or format=jsonl"


def frames_in(path: str) -> list[dict]:
    """The frames of a dense or jsonl file."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        records = [json.loads(text)]
    except json.JSONDecodeError:
        # A last line without its end is one that was never finished.
        records = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    frames = [frame for record in records for frame in record.get("frames", [record])]
    return [frame for frame in frames if "tracked_objects" in frame]


def channels_in(frames: list[dict]) -> list[str]:
    """All channels, in the engine's order."""
    faces = (face for frame in frames for face in frame["tracked_objects"])
    channels = dict.fromkeys(name for face in faces for name in face["blendshapes"] or ())
    return [name for name in channels if name != NEUTRAL]


def curves_in(frames: list[dict], channels: list[str]) -> dict[str, np.ndarray]:
    """For each id that has blendshapes an array of frames by channels, NaN where there is nothing."""
    curves: dict[str, np.ndarray] = {}
    for index, frame in enumerate(frames):
        for face in frame["tracked_objects"]:
            if values := face["blendshapes"]:
                if face["id"] not in curves:
                    curves[face["id"]] = np.full((len(frames), len(channels)), np.nan)
                curves[face["id"]][index] = [values.get(name, np.nan) for name in channels]
    return curves


def seconds(frame: dict) -> float | None:
    return None if frame["pts"] is None else frame["pts"] / 1e9


def write_table(path: str, frames: list[dict], channels: list[str]) -> None:
    """A row for each face, and one for each frame without any."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["frame", "time", "id", *channels])
        for frame in frames:
            for face in frame["tracked_objects"] or [{"id": None, "blendshapes": None}]:
                values = face["blendshapes"] or {}
                row = [values.get(name) for name in channels]
                table.writerow([frame["frame"], seconds(frame), face["id"], *row])


def write_plot(path: str, frames: list[dict], channels: list[str], count: int) -> None:
    """A diagram for each face, one below the other, of those channels that change most."""
    curves = curves_in(frames, channels)
    columns = liveliest(curves, count)
    channels = [channels[column] for column in columns]
    curves = {number: curve[:, columns] for number, curve in curves.items()}
    curves = {number: curve for number, curve in curves.items() if np.isfinite(curve).any()}
    longest = Counter({number: np.isfinite(curve).any(axis=1).sum() for number, curve in curves.items()})
    # obj_2 comes before obj_10.
    shown = sorted((number for number, _ in longest.most_common(MOST_FACES)), key=lambda number: (len(number), number))
    has_times = all(frame["pts"] is not None for frame in frames)
    x = [seconds(frame) if has_times else frame["frame"] for frame in frames]
    figure, diagrams = pyplot.subplots(
        len(shown), sharex=True, sharey=True, squeeze=False, layout="constrained", figsize=(8, 0.8 + 2.2 * len(shown))
    )
    for diagram, number in zip(diagrams[:, 0], shown):
        for name, values in zip(channels, curves[number].T):
            diagram.plot(x, values, label=name, marker=".", markevery=alone(values))
        diagram.set_ylabel(number)
        diagram.set_ylim(0, max(1, *(np.nanmax(curve) for curve in curves.values())))
        diagram.spines[["top", "right"]].set_visible(False)
        diagram.grid(alpha=0.3)
    diagram.set_xlabel("time, s" if has_times else "frame")
    diagrams[0, 0].legend(bbox_to_anchor=(1, 1), loc="upper left", frameon=False, markerscale=0)
    figure.savefig(path, dpi=100, metadata={"Date": None} if path.endswith(".svg") else None)


def alone(values: np.ndarray) -> list[int]:
    """Values between two gaps, which no line shows."""
    there = np.pad(np.isfinite(values), 1)
    return np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:]).tolist()


def liveliest(curves: dict[str, np.ndarray], count: int) -> list[int]:
    """Which channels change most, in their order."""
    seen = np.concatenate(list(curves.values()))
    change = np.nanmax(seen, axis=0) - np.nanmin(seen, axis=0)
    return sorted(np.argsort(-change)[:count])


def main(track: str, outputs: list[str], wanted: list[str], count: int) -> None:
    frames = frames_in(track)
    if not frames:
        raise ValueError(FOREIGN)
    channels = channels_in(frames)
    if not channels:
        raise ValueError("there are no blendshapes in it: track with an engine that measures them, such as mediapipe")
    if unknown := [name for name in wanted if name not in channels]:
        raise ValueError(f"there is no {', '.join(unknown)} in it, but {', '.join(channels)}")
    for output in outputs:
        if output.endswith(".csv"):
            write_table(output, frames, wanted or channels)
        else:
            write_plot(output, frames, wanted or channels, len(wanted) or count)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Writes blendshapes as a table and as curves.")
    parser.add_argument("track", help="file of trackjsonsink, dense or jsonl")
    parser.add_argument("outputs", nargs="+", metavar="output", help=".csv, .svg, .png or .pdf")
    parser.add_argument("--channels", default="", help="such as jawOpen,mouthPucker; all in the table if not given")
    parser.add_argument(
        "--most",
        type=int,
        choices=range(1, MOST_CURVES + 1),
        metavar="COUNT",
        default=len(COLORS) - 1,
        help=f"curves of those that change most, 1 to {MOST_CURVES}",
    )
    return parser.parse_args()


if __name__ == "__main__":
    given = arguments()
    try:
        main(given.track, given.outputs, [name for name in given.channels.split(",") if name], given.most)
    except OSError as error:
        sys.exit(str(error))
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
        sys.exit(f"{given.track}: {FOREIGN}")
    except ValueError as error:
        sys.exit(f"{given.track}: {error}")
