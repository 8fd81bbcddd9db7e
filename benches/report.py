#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Measures and writes BENCHMARKS.md.

    make bench
    make bench SECTIONS="scaling run" REPEATS=5

Sections that are not chosen are kept from earlier runs on this machine. Run it through `make bench`, which sets the
environment that GStreamer needs.
"""

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import against_eos
import engines
import published
import scaling
import videos
from race import (
    ALL_CORES,
    CACHE,
    CORES,
    ONE_CORE,
    PROFILE,
    ROOT,
    Program,
    Unavailable,
    ms,
    profiled_ms,
    run_once,
    table,
    time_frames,
)

OUTPUT = ROOT / "BENCHMARKS.md"


def overhead(args) -> str:
    manifest = ["--manifest-path", str(ROOT / "Cargo.toml")]
    command = ["cargo", "bench", "--locked", "--quiet", "--bench", "overhead", *manifest]
    run_once([*command, "--no-run"], ALL_CORES)
    lines = run_once(command, ONE_CORE)[2].strip().splitlines()
    columns, *rows = (re.split(r"\s{2,}", line.strip()) for line in lines[1:])
    pipeline = (
        "videotestsrc num-buffers=200 ! video/x-raw,format=NV12,width=3840,height=2160 "
        "! facetrack engine=scripted profile-interval=1 ! fakesink"
    )
    scripted = Program("scripted", ["gst-launch-1.0", "-q", *pipeline.split()], ONE_CORE, PROFILE, profiled_ms)
    element = time_frames(scripted).engine
    return (
        "Time per frame outside the networks of `mediapipe`: median in ms, one face, one thread, one core.\n\n"
        f"{table(columns, rows, 2)}\n\n"
        f"The element with `engine=scripted`, which looks at no pixels, takes {ms(element)} ms per frame of NV12 3840×2160."
    )


# Name, title, and function.
SECTIONS: dict[str, tuple[str, Callable[[argparse.Namespace], str]]] = {
    "engines": ("Engines and their originals", engines.section),
    "eos-fit": ("Fit of eos", against_eos.section),
    "scaling": ("Faces, workers, threads, streams and elements", scaling.section),
    "run": ("Many videos", videos.section),
    "published": ("Published speeds of other tools", published.section),
    "overhead": ("Overhead", overhead),
}

HEAD = """\
# Benchmarks

Written by `make bench`. Each section states the load of the machine before it. `make bench SECTIONS="scaling run"` measures only these
sections and keeps the others; `REPEATS=5` sets the number of rounds; `OPENSEEFACE=<checkout>` adds
OpenSeeFace. Sections: {sections}.

Programs that are compared take turns, in processes pinned to the named number of cores. Figures are
medians of the rounds.

{facts}

{models}"""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(SECTIONS)} (all)")
    parser.add_argument("--repeats", type=int, help="rounds (3; 1 for run)")
    parser.add_argument("--openseeface", type=Path, help="checkout of emilianavt/OpenSeeFace")
    parser.add_argument("--shorten", type=float, default=1, help="divide the lengths of the clips of run, for trials (1)")
    args = parser.parse_args()
    if unknown := set(args.sections) - set(SECTIONS):
        parser.error(f"unknown sections: {', '.join(sorted(unknown))}")
    return args


def printed_by(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def files() -> dict[str, tuple[Path, str]]:
    """The models and ONNX Runtime that the engines load, with the beginning of their SHA-256, by name."""
    found = {}
    doctor = subprocess.run(["facetrack", "doctor"], capture_output=True, text=True).stdout
    for path, digest in re.findall(r"✓ (/.*?), [\d.]+ \S+, sha256 ([0-9a-f]+)", doctor):
        found[Path(path).name] = (Path(path), digest)
    return found


def commit() -> str:
    return printed_by("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*")


def machine() -> dict[str, str]:
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return {
        "processor": f"{cpu[1] if cpu else platform.machine()}, {len(CORES)} cores",
        "memory": f"{int(memory[1]) / 2**20:.0f} GiB",
        "system": f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}",
        "facetrack": printed_by("facetrack", "--version").split()[-1],
        "GStreamer": printed_by("gst-launch-1.0", "--version").splitlines()[0].split()[-1],
        "Python": platform.python_version(),
    }


def stamp(repeats: int, load: float) -> str:
    today = datetime.date.today().isoformat()
    rounds = "1 round" if repeats == 1 else f"{repeats} rounds"
    return f"Measured on {today} at commit {commit()}, {rounds}. Load of the machine before: {load:.1f}."


def measure(name: str, args: argparse.Namespace) -> bool:
    """Measures a section and keeps it; whether it worked."""
    title, section = SECTIONS[name]
    args.repeats = args.rounds or (1 if name == "run" else 3)
    start, load = time.monotonic(), os.getloadavg()[0]
    print(f"== {title}", flush=True)
    try:
        text, worked = section(args), True
    except Unavailable as reason:
        text, worked = f"Not measured: {reason}", False
        print(text, file=sys.stderr)
    replace(kept(name), f"{stamp(args.repeats, load)}\n\n{text}\n")
    print(f"== {title}: {time.monotonic() - start:.0f} s", flush=True)
    return worked


def kept(name: str) -> Path:
    return CACHE / "sections" / f"{name}.md"


def replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(text)
    unfinished.replace(path)


def write(found: dict[str, tuple[Path, str]]) -> None:
    facts = "\n".join(f"- {name}: {value}" for name, value in machine().items())
    models = "| file | SHA-256 |\n|---|---|\n" + "\n".join(f"| `{name}` | {digest}… |" for name, (_, digest) in found.items())
    parts = [HEAD.format(sections=", ".join(f"`{name}`" for name in SECTIONS), facts=facts, models=models)]
    for name, (title, _) in SECTIONS.items():
        text = kept(name).read_text().strip() if kept(name).exists() else "Not measured yet."
        parts.append(f"## {title}\n\n{text}")
    replace(OUTPUT, "\n\n".join(parts) + "\n")
    print(f"Wrote {OUTPUT.name}")


def main() -> None:
    args = parse()
    args.rounds = args.repeats
    CACHE.mkdir(parents=True, exist_ok=True)
    found = files()
    args.models = {name: path for name, (path, _) in found.items()}
    args.clip = Path(printed_by("facetrack", "path", "single_face.mp4"))
    failed = []
    for name in args.sections or SECTIONS:
        if not measure(name, args):
            failed.append(name)
        write(found)
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
