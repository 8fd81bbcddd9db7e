#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""A receiver of OpenSeeFace's packets, after the layout that its Unity component reads (OpenSee.cs).

receive_udp.py [PORT] listens on that port of 127.0.0.1, or on a free one, and prints the port, then every packet as a line
of JSON until its standard input ends. A datagram of another length than a packet's ends it with an error."""

import json
import select
import socket
import struct
import sys

POINTS = 68
MODEL_POINTS = 70
FEATURES = [
    "EyeLeft",
    "EyeRight",
    "EyebrowSteepnessLeft",
    "EyebrowUpDownLeft",
    "EyebrowQuirkLeft",
    "EyebrowSteepnessRight",
    "EyebrowUpDownRight",
    "EyebrowQuirkRight",
    "MouthCornerUpDownLeft",
    "MouthCornerInOutLeft",
    "MouthCornerUpDownRight",
    "MouthCornerInOutRight",
    "MouthOpen",
    "MouthWide",
]

# Name, type and count of each field, in their order.
FIELDS = [
    ("time", "d", 1),
    ("id", "i", 1),
    ("cameraResolution", "f", 2),
    ("rightEyeOpen", "f", 1),
    ("leftEyeOpen", "f", 1),
    ("got3DPoints", "B", 1),
    ("fit3DError", "f", 1),
    ("rawQuaternion", "f", 4),
    ("rawEuler", "f", 3),
    ("translation", "f", 3),
    ("confidence", "f", POINTS),
    ("points", "f", 2 * POINTS),
    ("points3D", "f", 3 * MODEL_POINTS),
    ("features", "f", len(FEATURES)),
]
PACKET = struct.Struct("<" + "".join(f"{count}{kind}" for _, kind, count in FIELDS))


def groups(values, size):
    return [values[i : i + size] for i in range(0, len(values), size)]


def decode(datagram):
    if len(datagram) != PACKET.size:
        sys.exit(f"a datagram of {len(datagram)} bytes, a packet has {PACKET.size}")
    values = iter(PACKET.unpack(datagram))
    packet = {}
    for name, _, count in FIELDS:
        field = [next(values) for _ in range(count)]
        packet[name] = field[0] if count == 1 else field
    packet["points"] = groups(packet["points"], 2)
    packet["points3D"] = groups(packet["points3D"], 3)
    packet["features"] = dict(zip(FEATURES, packet["features"]))
    return packet


def drain(listener):
    """Prints what has come."""
    while True:
        try:
            datagram = listener.recv(65535)
        except BlockingIOError:
            return
        print(json.dumps(decode(datagram)), flush=True)


def main(port):
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", port))
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    # Unlike select(), poll() takes descriptors of any number.
    events = select.poll()
    events.register(listener, select.POLLIN)
    events.register(sys.stdin, select.POLLIN)
    while sys.stdin.fileno() not in dict(events.poll()):
        drain(listener)
    drain(listener)


main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
