#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Waits until the screen of Xvfb shows a video with the drawing of a face, and saves it as PNG.

Usage: scripts/screenshot.py <file of Xvfb -fbdir> <picture.png> <seconds>
"""

import struct
import sys
import time
import zlib
from collections import Counter
from pathlib import Path

# Colours of faces: `Rgb::PALETTE`. The plate of a label has the colour of its face exactly.
FACES = [bytes.fromhex(colour)[::-1] for colour in "56b4e9 e69f00 009e73 f0e442 cc79a7 d55e00 0072b2".split()]
# Pixels of such a colour: a label of some letters has more. Colours of a picture: a drawing has fewer than a video.
MIN_PIXELS, MIN_COLOURS = 300, 1000
# Seconds from look to look.
INTERVAL = 0.1


def pixels(path: Path) -> tuple[int, int, list[bytes]]:
    """Width, height and the pixels of a dump in the format of xwd, as blue, green and red."""
    data = path.read_bytes()
    header = struct.unpack(">25I", data[:100])
    size, width, height, stride, colours = (header[index] for index in (0, 4, 5, 12, 19))
    # Each colour of the table has 12 bytes.
    rows = data[size + 12 * colours :]
    starts = (y * stride + 4 * x for y in range(height) for x in range(width))
    return width, height, [rows[start : start + 3] for start in starts]


def shows_face(counts: Counter) -> bool:
    return max(counts[face] for face in FACES) >= MIN_PIXELS and len(counts) >= MIN_COLOURS


def save(path: Path, width: int, height: int, colours: list[bytes]) -> None:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (colours[width * y : width * (y + 1)] for y in range(height))
    picture = b"".join(b"\0" + b"".join(pixel[::-1] for pixel in row) for row in rows)
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(picture)), (b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in chunks))


def main() -> None:
    screen, picture = Path(sys.argv[1]), Path(sys.argv[2])
    end = time.monotonic() + float(sys.argv[3])
    while time.monotonic() < end:
        if screen.is_file() and screen.stat().st_size:
            width, height, colours = pixels(screen)
            if shows_face(Counter(colours)):
                return save(picture, width, height, colours)
        time.sleep(INTERVAL)
    sys.exit("the window shows no video with a face")


main()
