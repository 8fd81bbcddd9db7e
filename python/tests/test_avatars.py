# SPDX-License-Identifier: MPL-2.0
"""Packets of `trackudpsink`, decoded by implementations that share nothing with it.

Live Link is decoded by PyLiveLinkFace, VMC by python-osc, and iFacialMocap by a reader that is written from the page
"for developers" of the app. Each value is compared with the record that is replayed.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pylivelinkface import FaceBlendShape, PyLiveLinkFace
from pythonosc.osc_bundle import OscBundle

HOST = "127.0.0.1"

# Bytes that a socket may hold; the kernel takes what it allows.
BUFFER = 1 << 24

# Rotation of an eye for a gaze channel of 1, rad.
EYE = 0.61

# Half a unit in the last place of each format: floats, whole percents, and five decimals.
FLOAT, PERCENT, ANGLE = 2e-6, 0.5 + 1e-4, 1e-3

# The head's axes are exchanged with Unity's by turning x round.
UNITY = np.diag([-1.0, 1.0, 1.0])

MIRROR = UNITY

Face = dict[str, Any]


class Listener:
    """Sockets at consecutive ports, and the datagrams that come there until the stream has ended."""

    def __init__(self, count: int) -> None:
        self.sockets = self._bind(count)
        self.port = self.sockets[0].getsockname()[1]
        self.datagrams: list[list[bytes]] = [[] for _ in self.sockets]
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _bind(count: int) -> list[socket.socket]:
        for port in range(20000, 60000, 7):
            sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
            try:
                for number, one in enumerate(sockets):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
                    one.bind((HOST, port + number))
            except OSError:
                for one in sockets:
                    one.close()
                continue
            for one in sockets:
                one.settimeout(0.2)
            return sockets
        raise AssertionError("no free ports")

    def _read(self, number: int) -> None:
        while True:
            try:
                self.datagrams[number].append(self.sockets[number].recv(65535))
            except socket.timeout:
                # Loopback delivers at once: everything has come.
                if self._ended.is_set():
                    return

    def finish(self) -> list[list[bytes]]:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for one in self.sockets:
            one.close()
        return self.datagrams


def clips() -> list[Path]:
    folder = os.environ.get("FACETRACK_REFERENCE_DIR")
    if folder is None:
        pytest.skip("FACETRACK_REFERENCE_DIR is not set")
    media = Path(folder) / "media"
    return [media / f"{name}.mp4" for name in ("pyfeat_WolfgangLanger_Pexels", "pyfeat_single_face", "synth_two_faces")]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Path]]:
    """Clips with their records by the engine mediapipe."""
    folder = tmp_path_factory.mktemp("records")
    found = [(clip, folder / f"{clip.stem}.json") for clip in clips()]
    for clip, record in found:
        launch(clip, f"facetrack max-faces=2 ! trackjsonsink verbose=true location={record}")
    return found


def launch(clip: Path, elements: str) -> None:
    line = f"filesrc location={clip} ! decodebin ! {elements}"
    subprocess.run(["gst-launch-1.0", "-q", *line.split()], check=True, timeout=300)


def faces(record: Path) -> Iterator[tuple[int, Face]]:
    """Number and values of each face, in the order of the packets. Ids of these clips never end."""
    ids: list[str] = []
    for frame in json.loads(record.read_text())["frames"]:
        for face in frame["tracked_objects"]:
            if face["id"] not in ids:
                ids.append(face["id"])
            yield ids.index(face["id"]), {**face, "pts": frame["pts"]}


def replay(records: list[tuple[Path, Path]], options: str, ports: int) -> list[tuple[list[list[bytes]], list[tuple[int, Face]]]]:
    """For each clip the datagrams of each port, and the recorded faces."""
    results = []
    for clip, record in records:
        listener = Listener(ports)
        launch(clip, f"trackjsonload location={record} ! trackudpsink sync=false port={listener.port} {options}")
        results.append((listener.finish(), list(faces(record))))
    assert sum(len(recorded) for _, recorded in results) >= 800
    return results


def rotation(face: Face, mirror: bool) -> np.ndarray:
    """The head's rotation, without the scale of the matrix."""
    matrix = np.array(face["pose"]["matrix"])[:3, :3]
    matrix = matrix / np.cbrt(np.linalg.det(matrix))
    return MIRROR @ matrix @ MIRROR if mirror else matrix


def turn(axis: int, angle: float) -> np.ndarray:
    """A right-handed rotation around an axis."""
    matrix = np.eye(3)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix[first, first] = matrix[second, second] = math.cos(angle)
    matrix[second, first] = math.sin(angle)
    matrix[first, second] = -math.sin(angle)
    return matrix


def from_angles(pitch: float, yaw: float, roll: float) -> np.ndarray:
    return turn(1, yaw) @ turn(0, pitch) @ turn(2, roll)


def opposite(name: str) -> str:
    """The channel on the other side of the face."""
    sides = {"Left": "Right", "Right": "Left"}
    return re.sub("(Left|Right)$", lambda side: sides[side[0]], name)


def channels(face: Face, mirror: bool) -> dict[str, float]:
    shapes = {name: value for name, value in face["blendshapes"].items() if name != "_neutral"}
    return {opposite(name): value for name, value in shapes.items()} if mirror else shapes


def eyes(shapes: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Yaw to the left side of the face and pitch downward of each eye, rad."""
    angles = {}
    for side, (left, right) in {"Left": ("Out", "In"), "Right": ("In", "Out")}.items():
        look = {way: shapes[f"eyeLook{way}{side}"] for way in ("In", "Out", "Up", "Down")}
        angles[side] = ((look[left] - look[right]) * EYE, (look["Down"] - look["Up"]) * EYE)
    return angles


def capital(name: str) -> str:
    return name[0].upper() + name[1:]


def assert_near(got: Any, want: Any, tolerance: float, what: str) -> None:
    difference = np.abs(np.asarray(got, float) - np.asarray(want, float)).max()
    assert difference <= tolerance, f"{what}: {got} differs from {want} by {difference}"


# A test of each protocol decodes all frames twice: as they are, and mirrored.
both = pytest.mark.parametrize("mirror", [False, True])


@both
def test_live_link(records: list[tuple[Path, Path]], mirror: bool) -> None:
    uuids = set()
    for [datagrams], recorded in replay(records, f"protocol=livelink subject=Zoë mirror={mirror}", 1):
        assert len(datagrams) == len(recorded)
        uuids_of_clip = set()
        for datagram, (number, face) in zip(datagrams, recorded):
            has_face, packet = PyLiveLinkFace.decode(datagram)
            assert has_face and packet._version == 6
            uuids_of_clip.add(packet.uuid)
            assert packet.name == ("Zoë" if number == 0 else f"Zoë-{number + 1}")
            seconds = (packet._frames + packet._sub_frame) * packet._denominator / packet.fps
            assert abs(seconds - face["pts"] / 1e9) < 1e-4
            assert_live_link(packet, face, mirror)
        # The element keeps its identity; another process has another one.
        assert len(uuids_of_clip) == 1
        uuids |= uuids_of_clip
    assert len(uuids) == len(records)
    assert all(re.fullmatch(r"\$[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid) for uuid in uuids)


def assert_live_link(packet: PyLiveLinkFace, face: Face, mirror: bool) -> None:
    shapes = channels(face, mirror)
    got = {shape.name: packet.get_blendshape(shape) for shape in FaceBlendShape}
    for shape in list(FaceBlendShape)[:52]:
        name = shape.name[0].lower() + shape.name[1:]
        assert_near(got[shape.name], shapes.get(name, 0.0), FLOAT, name)
    head = from_angles(-got["HeadPitch"], got["HeadYaw"], got["HeadRoll"])
    assert_near(head, rotation(face, mirror), 1e-4, "head")
    for side, (yaw, pitch) in eyes(shapes).items():
        angles = [got[f"{side}Eye{angle}"] for angle in ("Yaw", "Pitch", "Roll")]
        assert_near(angles, [-yaw, pitch, 0.0], FLOAT, f"{side} eye")


@both
def test_ifacialmocap(records: list[tuple[Path, Path]], mirror: bool) -> None:
    for datagrams, recorded in replay(records, f"protocol=ifacialmocap mirror={mirror}", 2):
        for number, port in enumerate(datagrams):
            own = [face for slot, face in recorded if slot == number]
            assert len(port) == len(own)
            for datagram, face in zip(port, own):
                assert_ifacialmocap(read_ifacialmocap(datagram), face, mirror)


def read_ifacialmocap(datagram: bytes) -> tuple[dict[str, int], dict[str, list[float]]]:
    """`name-value|…|=part#number,…|part#number,…|`."""
    shapes, parts = datagram.decode("ascii").split("=")
    assert shapes.endswith("|") and parts.endswith("|")
    values = dict(shape.rsplit("-", 1) for shape in shapes[:-1].split("|"))
    numbers = dict(part.split("#") for part in parts[:-1].split("|"))
    return (
        {name: int(value) for name, value in values.items()},
        {name: [float(number) for number in text.split(",")] for name, text in numbers.items()},
    )


def assert_ifacialmocap(packet: tuple[dict[str, int], dict[str, list[float]]], face: Face, mirror: bool) -> None:
    values, parts = packet
    shapes = channels(face, mirror)
    short = {re.sub("(?<!^jaw)(?<!^mouth)(Left|Right)$", lambda side: f"_{side[0][0]}", name): name for name in shapes}
    assert set(values) == set(short)
    for name, channel in short.items():
        assert_near(values[name], shapes[channel] * 100, PERCENT, name)
    pitch, yaw, roll, *position = parts["head"]
    head = from_angles(*(math.radians(angle) for angle in (pitch, yaw, roll)))
    assert_near(head, rotation(face, mirror), 1e-4, "head")
    metres = np.array(face["pose"]["matrix"])[:3, 3] / 100
    assert_near(position, MIRROR @ metres if mirror else metres, 1e-5, "position")
    for side, (yaw, pitch) in eyes(shapes).items():
        assert_near(parts[f"{side.lower()}Eye"], [math.degrees(pitch), math.degrees(yaw), 0], ANGLE, f"{side} eye")


@both
def test_vmc(records: list[tuple[Path, Path]], mirror: bool) -> None:
    for datagrams, recorded in replay(records, f"protocol=vmc mirror={mirror}", 2):
        for number, port in enumerate(datagrams):
            own = [face for slot, face in recorded if slot == number]
            packets = list(read_vmc(port))
            assert len(packets) == len(own)
            for packet, face in zip(packets, own):
                assert_vmc(packet, face, mirror)


def read_vmc(datagrams: list[bytes]) -> Iterator[list[tuple[str, list[Any]]]]:
    """The messages of each frame: address and arguments, up to the one that applies the values."""
    messages: list[tuple[str, list[Any]]] = []
    for datagram in datagrams:
        # A frame of Ethernet, less the headers.
        assert len(datagram) <= 1500 - 48
        for message in OscBundle(datagram):
            messages.append((message.address, list(message.params)))
        if messages[-1][0] == "/VMC/Ext/Blend/Apply":
            yield messages
            messages = []
    assert messages == []


def assert_vmc(messages: list[tuple[str, list[Any]]], face: Face, mirror: bool) -> None:
    assert messages[0] == ("/VMC/Ext/OK", [1])
    address, [time] = messages[1]
    assert address == "/VMC/Ext/T"
    assert_near(time, face["pts"] / 1e9, 1e-5, "time")
    bones = {arguments[0]: arguments[1:] for address, arguments in messages if address == "/VMC/Ext/Bone/Pos"}
    values = {arguments[0]: arguments[1] for address, arguments in messages if address == "/VMC/Ext/Blend/Val"}
    assert len(messages) == 2 + len(bones) + len(values) + 1
    shapes = channels(face, mirror)
    assert_near(matrix(bones.pop("Head")), UNITY @ rotation(face, mirror) @ UNITY, 1e-4, "head")
    for side, (yaw, pitch) in eyes(shapes).items():
        eye = from_angles(pitch, yaw, 0)
        assert_near(matrix(bones.pop(f"{side}Eye")), UNITY @ eye @ UNITY, 1e-5, f"{side} eye")
    assert bones == {}
    for name, value in ({capital(name): value for name, value in shapes.items()} | clips_of_vrm_0(shapes)).items():
        assert_near(values.pop(name), value, FLOAT, name)
    assert values == {}


def matrix(bone: list[float]) -> np.ndarray:
    """The rotation of a bone whose position is 0, from its unit quaternion."""
    assert bone[:3] == [0.0, 0.0, 0.0]
    x, y, z, w = bone[3:]
    assert abs(x * x + y * y + z * z + w * w - 1) < 1e-5
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def clips_of_vrm_0(shapes: dict[str, float]) -> dict[str, float]:
    """As the table in docs/avatars.md has them."""

    def mean(left: str, right: str) -> float:
        return (shapes[left] + shapes[right]) / 2

    jaw, pucker, funnel = (shapes[name] for name in ("jawOpen", "mouthPucker", "mouthFunnel"))
    wide = mean("mouthStretchLeft", "mouthStretchRight")
    return {
        "A": jaw * (1 - max(funnel, pucker, wide)),
        "I": wide * (1 - jaw),
        "U": pucker * (1 - jaw),
        "E": wide * jaw,
        "O": funnel,
        "Blink_L": shapes["eyeBlinkLeft"],
        "Blink_R": shapes["eyeBlinkRight"],
        "Joy": mean("mouthSmileLeft", "mouthSmileRight"),
        "Angry": mean("browDownLeft", "browDownRight"),
        "Sorrow": mean("mouthFrownLeft", "mouthFrownRight"),
        "LookUp": mean("eyeLookUpLeft", "eyeLookUpRight"),
        "LookDown": mean("eyeLookDownLeft", "eyeLookDownRight"),
        "LookLeft": mean("eyeLookOutLeft", "eyeLookInRight"),
        "LookRight": mean("eyeLookInLeft", "eyeLookOutRight"),
    }
