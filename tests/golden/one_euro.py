#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Writes one_euro.json: sequences through a One-Euro filter written from the paper, with MediaPipe's conventions (speeds
in face sizes a second, single-precision storage, the nominal 30 Hz over intervals that touch time zero).

Checked against MediaPipe Tasks 0.10.21: the same filter on the landmarks of recorded clips reproduces its output.
Run: python3 tests/golden/one_euro.py (needs numpy)."""

import json
import math
import pathlib

import numpy as np

F = np.float32


def weight(cutoff, frequency):
    tau = 1 / (2 * math.pi * cutoff)
    return F(1 / (1 + tau * frequency))


class OneEuro:
    def __init__(self, min_cutoff, beta, derivative_cutoff):
        self.c, self.beta, self.dc = min_cutoff, beta, derivative_cutoff
        self.frequency, self.last, self.raw = 30.0, -1, None

    def __call__(self, points, time_ns):
        points = np.array(points, F)
        size = F(np.ptp(points[:, 0]) + np.ptp(points[:, 1])) / F(2)
        if self.last >= time_ns:
            return points
        if self.last > 0 and time_ns > 0:
            self.frequency = 1 / ((time_ns - self.last) * 1e-9)
        self.last = time_ns
        if self.raw is None:
            self.raw, self.value, self.speed = points, points.copy(), np.zeros_like(points)
            return points
        out = np.zeros_like(points)
        wd = weight(self.dc, self.frequency)
        for i in np.ndindex(points.shape):
            speed = F((float(points[i]) - float(self.raw[i])) * float(F(1) / size) * self.frequency)
            self.speed[i] = F(float(F(wd * speed)) + (1 - float(wd)) * float(self.speed[i]))
            w = weight(self.c + self.beta * abs(float(self.speed[i])), self.frequency)
            self.value[i] = F(float(F(w * points[i])) + (1 - float(w)) * float(self.value[i]))
            out[i] = self.value[i]
        self.raw = points
        return out


def case(name, times, constants=(0.05, 80.0, 1.0), jump_at=None, seed=0):
    rng = np.random.default_rng(seed)
    shape = np.array([[300, 200, -5], [420, 210, 4], [350, 330, 9], [365, 260, -30]], float)
    filter_, frames = OneEuro(*constants), []
    for k, time in enumerate(times):
        points = shape + [[8 * math.sin(k / 3), 2 * k, 0.5 * k]] + rng.normal(0, 0.4, shape.shape)
        if jump_at is not None and k >= jump_at:
            points += [120, -40, 15]
        points = np.round(points, 3).astype(F)
        smoothed = filter_(points, time)
        frames.append({"time_ns": time, "measured": points.tolist(), "smoothed": smoothed.tolist()})
    keys = ("min_cutoff", "beta", "derivative_cutoff")
    return {"name": name, **dict(zip(keys, constants)), "frames": frames}


MS = 1_000_000
cases = [
    case("24 fps from zero", [round(1000 * i / 24) * MS for i in range(12)]),
    case("30 fps from three seconds, uneven", [3000 * MS + i * 33 * MS + (i % 3) * 4 * MS for i in range(10)], seed=1),
    case("a jump", [i * 40 * MS for i in range(10)], jump_at=5, seed=2),
    case("times that stand still or go back", [t * MS for t in (0, 40, 40, 20, 80, 80, 120)], seed=3),
    case("other constants", [i * 20 * MS for i in range(8)], (1.0, 0.5, 2.0), seed=4),
]
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(cases, indent=1) + "\n")
