#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Prints the icon of the preview as SVG: a face with landmarks in a box with its corners drawn.

Usage: scripts/icon.py >icon.svg
"""

import math

# Side of the picture, px. Positions below are in this unit.
SIDE = 128
# Colours of the overlay: sky blue and orange of `Rgb::PALETTE`, on a dark plate.
PLATE, BOX, FACE = "#1d2733", "#56b4e9", "#e69f00"
# Centre and half axes of the outline of the face.
CENTRE, AXES = (64, 66), (29, 37)
# Dots on an ellipse of the outline and of each eye.
OUTLINE_DOTS, EYE_DOTS = 18, 6


def ellipse(centre: tuple[float, float], axes: tuple[float, float], dots: int) -> list[tuple]:
    angles = [2 * math.pi * index / dots for index in range(dots)]
    return [
        (centre[0] + axes[0] * math.cos(angle), centre[1] + axes[1] * math.sin(angle))
        for angle in angles
    ]


def mouth() -> list[tuple]:
    """A smile, from the left corner to the right one."""
    return [(64 + x, 84 + 6 * (1 - (x / 13) ** 2)) for x in (-13, -8, -3, 3, 8, 13)]


def corner(x: int, y: int, length: int) -> str:
    """A corner of the box; its lines point inside."""
    across, down = (length if at < SIDE / 2 else -length for at in (x, y))
    return f'<path d="M{x + across} {y}H{x}V{y + down}"/>'


def main() -> None:
    low, high = 18, SIDE - 18
    corners = [corner(x, y, 20) for x in (low, high) for y in (low, high)]
    dots = ellipse(CENTRE, AXES, OUTLINE_DOTS) + mouth() + [(64, 62), (64, 70)]
    for eye in (52, 76):
        dots += ellipse((eye, 54), (6, 3.5), EYE_DOTS)
    points = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.9"/>' for x, y in dots]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIDE}" height="{SIDE}" viewBox="0 0 {SIDE} {SIDE}">',
        f'<rect width="{SIDE}" height="{SIDE}" rx="24" fill="{PLATE}"/>',
        f'<g fill="none" stroke="{BOX}" stroke-width="5" stroke-linecap="round">',
        *corners,
        "</g>",
        f'<g fill="{FACE}">',
        *points,
        "</g>",
        "</svg>",
    ]
    print("\n".join(lines))


main()
