# SPDX-License-Identifier: MPL-2.0
"""Reads the faces that the GStreamer element `facetrack` attaches to buffers.

    import facetrack

    for face in facetrack.faces(buffer):
        print(face.id, face.box, face.blendshapes.get("jawOpen"))

Positions and lengths are pixels of the frame that was analysed: x to the right, y down. With the caps of a frame behind
`videoscale` and other elements, as in `facetrack.faces(sample.get_buffer(), sample.get_caps())`, they are pixels of that frame.

What was not measured is None, and a missing key in a mapping. Arrays are 32-bit floats. Values do not refer to the buffer and
may be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import asin, atan2, degrees, hypot
from typing import NamedTuple

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstVideo", "1.0")
    import numpy as np
    from gi.repository import Gst, GstVideo
    from numpy.typing import NDArray
except (ImportError, ValueError) as error:
    raise ImportError(
        f"{error}: facetrack needs numpy and GStreamer's bindings for Python. On Debian: sudo apt-get install python3-gi "
        "python3-gst-1.0 python3-numpy gir1.2-gstreamer-1.0 gir1.2-gst-plugins-base-1.0, and run /usr/bin/python3, "
        "as a virtual environment does not see these packages"
    ) from error

from ._errors import Error, WrongArgument
from ._names import FEATURES

__all__ = [
    "Box",
    "Face",
    "FaceModelFit",
    "FailedFit",
    "Gaze",
    "MorphableFit",
    "Pose",
    "Pupil",
    "Record",
    "Stale",
    "UnreadableMetadata",
    "faces",
    "read",
]

# Versions of the metadata's layout that this module reads.
VERSIONS = (1, 2)

# Fields of the secondary landmarks, and the same in version 1.
SECONDARY = ("secondary-landmark-scheme", "secondary-landmarks", "secondary-landmark-confidences")
SECONDARY_1 = ("contour-scheme", "contour", "contour-confidences")


class UnreadableMetadata(Error, ValueError):
    """The metadata has another version, or was not attached by the plugin."""


class Stale(Error, ValueError):
    """The frame is not the picture that was analysed, so that positions in it are unknown."""


class Box(NamedTuple):
    """A rectangle by its top-left corner, px; it may reach out of the frame."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, eq=False)
class Pose:
    """Position and rotation of the head in camera space: x to the right of the image, y up, the camera looks along -z.

    matrix: Camera from head, shape (4, 4), read-only. The translation is in the engine's unit: mediapipe centimetres,
        eos millimetres of its model, insightface about the width of a face.
    """

    matrix: NDArray[np.float32]

    @property
    def yaw(self) -> float:
        """Degrees; positive turns the face to the right of the image."""
        return degrees(atan2(self.matrix[0, 2], self.matrix[2, 2]))

    @property
    def pitch(self) -> float:
        """Degrees; positive lowers the chin."""
        scale = hypot(*self.matrix[:3, 0]) or 1.0
        return degrees(asin(min(max(-self.matrix[1, 2] / scale, -1.0), 1.0)))

    @property
    def roll(self) -> float:
        """Degrees; positive tilts the head counter-clockwise in the image."""
        return degrees(atan2(self.matrix[1, 0], self.matrix[1, 1]))


class Pupil(NamedTuple):
    """The middle of an iris.

    x: px
    y: px
    confidence: 0 to 1; at 0 the position means nothing.
    """

    x: float
    y: float
    confidence: float


class Gaze(NamedTuple):
    """The pupils of the face's right and left eye."""

    right: Pupil
    left: Pupil


@dataclass(frozen=True, eq=False)
class FaceModelFit:
    """OpenSeeFace's 3-D face model fitted to the landmarks, in OpenSeeFace's conventions.

    success: Without it nothing else has a meaning.
    error: Distance of the model from the landmarks, px.
    quaternion: Inverse rotation: x, y, z, w.
    euler: Rotation as three angles, degrees.
    rotation: Rotation as axis times angle, radians.
    translation: Camera from model, in units of the model.
    landmarks_3d: Landmarks, pupils and eyeballs in the model's space, shape (N, 3).
    projected: Points of the model in the image, shape (N, 2), px; as many as `pnp-points` asks for.
    """

    success: bool
    error: float
    quaternion: NDArray[np.float32]
    euler: NDArray[np.float32]
    rotation: NDArray[np.float32]
    translation: NDArray[np.float32]
    landmarks_3d: NDArray[np.float32]
    projected: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class MorphableFit:
    """The morphable model of the engine eos fitted to the landmarks.

    shape: Coefficients of the shape, in standard deviations.
    expression: Coefficient of each expression, from 0.
    rotation: Camera from model as a unit quaternion: x, y, z, w.
    origin: The model's origin in the image, px.
    scale: px per millimetre of the model.
    residual: Mean distance of the landmarks from their vertices, px.
    contour: Vertices matched with the landmarks of the outline, shape (N, 2), px.
    mesh: Every vertex in the image, shape (N, 3), px; with `mesh=true` only.
    """

    shape: NDArray[np.float32]
    expression: dict[str, float]
    rotation: NDArray[np.float32]
    origin: tuple[float, float]
    scale: float
    residual: float
    contour: NDArray[np.float32]
    mesh: NDArray[np.float32] | None


@dataclass(frozen=True)
class FailedFit:
    """The morphable model could not be fitted.

    reason: no-landmarks, not-finite, degenerate, out-of-frame or unsolvable
    """

    reason: str


@dataclass(frozen=True, eq=False)
class Face:
    """A face in a frame.

    id: Identity in this stream, from 1; it stays as long as the face is followed.
    box: Bounding box, px.
    origin: detected or tracked; held or predicted in frames that were not analysed
    confidence: Score of the engine, 0 to 1.
    landmark_scheme: mediapipe-478, openseeface-66, ibug-68 or insightface-106
    landmarks: x, y and z of each landmark, shape (N, 3), px. z points away from the camera and is relative to the face;
        0 in schemes without a depth.
    landmark_confidences: Score of each landmark, shape (N,), 0 to 1.
    secondary_landmark_scheme: insightface-106, if there are such points and `landmarks` are others
    secondary_landmarks: Those points as `landmarks`, shape (N, 3), px.
    secondary_landmark_confidences: Score of each of them, shape (N,), 0 to 1.
    key_points: x and y of the detector's key points, shape (N, 2), px.
    blendshapes: Value of each channel by its ARKit name, usually 0 to 1.
    blendshape_source: measured by a network, or derived from landmarks
    raw_blendshapes: The values before rest values were subtracted and gains applied; empty if there were none, or if
        these values are unknown.
    is_corrected: Whether rest values were subtracted from the blendshapes, or gains applied.
    pose: Position and rotation of the head.
    gaze: Where the pupils are.
    features: OpenSeeFace's features by name, -1 to 1, 0 at rest.
    age: Years, as guessed by a network.
    gender: female or male, as guessed by a network
    embedding: Unit vector that identifies the person, shape (N,); with `embedding=true` only. Vectors of one person are
        close together.
    fit: The model fitted by the engine openseeface.
    morphable: The model fitted by the engine eos, or why there is none.
    """

    id: int
    box: Box
    origin: str
    confidence: float | None
    landmark_scheme: str | None
    landmarks: NDArray[np.float32] | None
    landmark_confidences: NDArray[np.float32] | None
    secondary_landmark_scheme: str | None
    secondary_landmarks: NDArray[np.float32] | None
    secondary_landmark_confidences: NDArray[np.float32] | None
    key_points: NDArray[np.float32] | None
    blendshapes: dict[str, float]
    blendshape_source: str | None
    raw_blendshapes: dict[str, float]
    is_corrected: bool
    pose: Pose | None
    gaze: Gaze | None
    features: dict[str, float]
    age: float | None
    gender: str | None
    embedding: NDArray[np.float32] | None
    fit: FaceModelFit | None
    morphable: MorphableFit | FailedFit | None


@dataclass(frozen=True, eq=False)
class Record:
    """What is known of a frame.

    status: tracked, no-face, skipped, gap or error
    cut: Whether it is the first frame of a shot after a hard cut.
    repeated: Whether it repeats the picture of the frame before.
    engine: The engine that analysed it.
    device: Where that ran: cpu or cuda:<number>.
    width: Width of the analysed frame, px.
    height: Height of the analysed frame, px.
    pixel_aspect_ratio: Width of a pixel of that frame by its height.
    faces: In the order of the engine.
    """

    status: str
    cut: bool
    repeated: bool
    engine: str
    device: str
    width: int
    height: int
    pixel_aspect_ratio: Fraction
    faces: list[Face]


def faces(buffer: Gst.Buffer, caps: Gst.Caps | None = None, *, add_borders: bool = True) -> list[Face]:
    """The faces on a buffer, as `read` yields them; empty if there are none or no element has looked for any."""
    record = read(buffer, caps, add_borders=add_borders)
    return [] if record is None else record.faces


def read(buffer: Gst.Buffer, caps: Gst.Caps | None = None, *, add_borders: bool = True) -> Record | None:
    """The metadata of a buffer; None if it has none.

    Positions are pixels of the analysed frame. With `caps`, those of the buffer, they are pixels of the buffer's frame; Stale is
    raised if an element has cropped, rotated or redrawn the picture. `add_borders` is the property of the last `videoscale` on the
    way; metadata does not have it.
    """
    if not isinstance(buffer, Gst.Buffer):
        raise WrongArgument(f"the source is {buffer!r}. Give a buffer of GStreamer, or the path of a record")
    if not isinstance(caps, (Gst.Caps, type(None))):
        raise WrongArgument(f"`caps` is {caps!r}. Give the caps of the buffer")
    meta = buffer.get_custom_meta("FaceTrackMeta")
    if meta is None:
        return None
    # The bindings hand out structures that point into this one: it has to live until everything is read.
    structure = meta.get_structure()
    version = structure.get_value("version")
    if version not in VERSIONS:
        raise UnreadableMetadata(f"FaceTrackMeta has version {version}, this module reads versions {VERSIONS}: update it")
    try:
        return _record(buffer, structure, caps, add_borders)
    except Error:
        raise
    except (ValueError, TypeError, AttributeError) as error:
        raise UnreadableMetadata(f"FaceTrackMeta is damaged: {error}") from error


def _record(buffer: Gst.Buffer, structure: Gst.Structure, caps: Gst.Caps | None, add_borders: bool) -> Record:
    record = Record(
        status=structure.get_value("status"),
        cut=bool(structure.get_value("cut")),
        repeated=bool(structure.get_value("repeated")),
        engine=structure.get_value("engine"),
        device=structure.get_value("device"),
        width=structure.get_value("width"),
        height=structure.get_value("height"),
        pixel_aspect_ratio=_pixel_aspect_ratio(structure),
        faces=[],
    )
    place = _Place(0, 0, record.width, record.height)
    if caps is not None:
        place = _placed(buffer, record, _video_of(caps), add_borders)
    for index in range(structure.get_value("faces")):
        record.faces.append(_face(_Fields(structure.get_value(f"face-{index}"), place)))
    return record


class _Place(NamedTuple):
    """Where the analysed picture is in a frame, px."""

    left: int
    top: int
    width: int
    height: int


def _pixel_aspect_ratio(structure: Gst.Structure) -> Fraction:
    known, width, height = structure.get_fraction("pixel-aspect-ratio")
    return Fraction(width, height) if known else Fraction(1)


def _video_of(caps: Gst.Caps) -> GstVideo.VideoInfo:
    try:
        info = GstVideo.VideoInfo.new_from_caps(caps)
    except TypeError:
        # Bindings raise it, or return None.
        info = None
    if info is None:
        raise WrongArgument("`caps` describe no video. Give the caps of the buffer")
    return info


def _placed(buffer: Gst.Buffer, record: Record, frame: GstVideo.VideoInfo, add_borders: bool) -> _Place:
    """The steps of "The frame at hand" in the plugin's documentation of its metadata."""
    witness = buffer.get_custom_meta("FaceTrackFrame")
    cropped = buffer.get_meta(GstVideo.video_crop_meta_api_get_type())
    if witness is None or cropped is not None:
        raise Stale("an element has cropped, rotated or redrawn the picture since the analysis: put facetrack after it")
    scaled = witness.get_structure().get_value("scaled")
    if not scaled and (frame.width, frame.height) != (record.width, record.height):
        raise Stale(f"the frame is {frame.width}x{frame.height}, and no element said that it scaled the picture")
    if frame.width == 0 or frame.height == 0:
        raise Stale("the caps do not have the size of the frame")
    if not scaled or not add_borders:
        return _Place(0, 0, frame.width, frame.height)
    shape = Fraction(record.width, record.height) * record.pixel_aspect_ratio / Fraction(frame.par_n, frame.par_d)
    width, height = frame.width, int(frame.width / shape)
    if height > frame.height:
        width, height = int(frame.height * shape), frame.height
    return _Place((frame.width - width) // 2, (frame.height - height) // 2, width, height)


class _Fields:
    """Fields of a structure, with positions as fractions of a picture."""

    def __init__(self, structure: Gst.Structure, place: _Place):
        self.structure = structure
        self.place = place

    def value(self, name: str):
        """A number, a word or a structure; None if there is none."""
        return self.structure.get_value(name)

    def floats(self, name: str, *shape: int) -> NDArray[np.float32] | None:
        """Floats without a unit."""
        data = self.structure.get_value(name)
        if data is None:
            return None
        return np.frombuffer(data.get_data() or b"", "<f4").reshape(*shape)

    def points(self, name: str) -> NDArray[np.float32] | None:
        """x and y of points, px."""
        fractions = self.floats(name, -1, 2)
        if fractions is None:
            return None
        left, top, width, height = self.place
        return self._scaled(fractions, (width, height), (left, top))

    def landmarks(self, name: str) -> NDArray[np.float32] | None:
        """x, y and z of points, px."""
        fractions = self.floats(name, -1, 3)
        if fractions is None:
            return None
        left, top, width, height = self.place
        return self._scaled(fractions, (width, height, width), (left, top, 0))

    @staticmethod
    def _scaled(fractions: NDArray[np.float32], scale: tuple, offset: tuple) -> NDArray[np.float32]:
        return (fractions * np.array(scale, "f8") + np.array(offset, "f8")).astype("f4")

    def named(self, names: tuple[str, ...] | str, values: str) -> dict[str, float]:
        """Values by name; names are given, or those in another field."""
        floats = self.floats(values, -1)
        if floats is None:
            return {}
        if isinstance(names, str):
            names = self.value(names).split(",")
        return dict(zip(names, floats.tolist()))


def _face(fields: _Fields) -> Face:
    left, top, width, height = fields.place
    matrix = fields.floats("pose", 4, 4)
    is_version_1 = fields.value("contour") is not None
    scheme, points, scores = SECONDARY_1 if is_version_1 else SECONDARY
    return Face(
        id=fields.value("id"),
        box=Box(
            fields.value("x") * width + left,
            fields.value("y") * height + top,
            fields.value("width") * width,
            fields.value("height") * height,
        ),
        origin=fields.value("origin"),
        confidence=fields.value("confidence"),
        landmark_scheme=fields.value("landmark-scheme"),
        landmarks=fields.landmarks("landmarks"),
        landmark_confidences=fields.floats("landmark-confidences", -1),
        secondary_landmark_scheme=fields.value(scheme),
        secondary_landmarks=fields.landmarks(points),
        secondary_landmark_confidences=fields.floats(scores, -1),
        key_points=fields.points("key-points"),
        blendshapes=fields.named("blendshape-names", "blendshapes"),
        blendshape_source=fields.value("blendshape-source"),
        raw_blendshapes=fields.named("blendshape-names", "raw-blendshapes"),
        is_corrected=bool(fields.value("blendshapes-corrected")),
        pose=None if matrix is None else Pose(matrix),
        gaze=_gaze(fields),
        features=fields.named(FEATURES, "features"),
        age=fields.value("age"),
        gender=fields.value("gender"),
        embedding=fields.floats("embedding", -1),
        fit=_fit(fields),
        morphable=_morphable(fields),
    )


def _gaze(fields: _Fields) -> Gaze | None:
    pupils = fields.floats("gaze", 2, 3)
    if pupils is None:
        return None
    left, top, width, height = fields.place
    return Gaze(*(Pupil(x * width + left, y * height + top, score) for x, y, score in pupils.tolist()))


def _fit(face: _Fields) -> FaceModelFit | None:
    structure = face.value("fit")
    if structure is None:
        return None
    fields = _Fields(structure, face.place)
    return FaceModelFit(
        success=fields.value("success"),
        error=fields.value("error") * face.place.width,
        quaternion=fields.floats("quaternion", 4),
        euler=fields.floats("euler", 3),
        rotation=fields.floats("rotation", 3),
        translation=fields.floats("translation", 3),
        landmarks_3d=fields.floats("landmarks-3d", -1, 3),
        projected=fields.points("projected"),
    )


def _morphable(face: _Fields) -> MorphableFit | FailedFit | None:
    structure = face.value("morphable")
    if structure is None:
        return None
    fields = _Fields(structure, face.place)
    if (failure := fields.value("failure")) is not None:
        return FailedFit(failure)
    (origin,) = fields.points("origin").tolist()
    return MorphableFit(
        shape=fields.floats("shape", -1),
        expression=fields.named("expression-names", "expression"),
        rotation=fields.floats("rotation", 4),
        origin=tuple(origin),
        scale=fields.value("scale") * face.place.width,
        residual=fields.value("residual") * face.place.width,
        contour=fields.points("contour"),
        mesh=fields.landmarks("mesh"),
    )
