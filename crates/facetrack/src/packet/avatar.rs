// SPDX-License-Identifier: MPL-2.0
//! Measurements of a face that move an avatar.

use std::borrow::Cow;

use nalgebra::{Matrix3, Rotation3, UnitQuaternion, Vector3};

use crate::observation::{EulerAngles, HeadPose, Observation};

/// ARKit's 52 channels in the order of `EARFaceBlendShape` of Unreal Engine, which Live Link Face
/// uses.
#[rustfmt::skip]
pub const CHANNELS: [&str; 52] = [
    "eyeBlinkLeft", "eyeLookDownLeft", "eyeLookInLeft", "eyeLookOutLeft", "eyeLookUpLeft", "eyeSquintLeft", "eyeWideLeft",
    "eyeBlinkRight", "eyeLookDownRight", "eyeLookInRight", "eyeLookOutRight", "eyeLookUpRight", "eyeSquintRight", "eyeWideRight",
    "jawForward", "jawLeft", "jawRight", "jawOpen",
    "mouthClose", "mouthFunnel", "mouthPucker", "mouthLeft", "mouthRight", "mouthSmileLeft", "mouthSmileRight",
    "mouthFrownLeft", "mouthFrownRight", "mouthDimpleLeft", "mouthDimpleRight", "mouthStretchLeft", "mouthStretchRight",
    "mouthRollLower", "mouthRollUpper", "mouthShrugLower", "mouthShrugUpper", "mouthPressLeft", "mouthPressRight",
    "mouthLowerDownLeft", "mouthLowerDownRight", "mouthUpperUpLeft", "mouthUpperUpRight",
    "browDownLeft", "browDownRight", "browInnerUp", "browOuterUpLeft", "browOuterUpRight",
    "cheekPuff", "cheekSquintLeft", "cheekSquintRight", "noseSneerLeft", "noseSneerRight", "tongueOut",
];

/// Rotation of an eye whose gaze channel is 1, rad: 35°.
///
/// Maximum angle of an eye, rad: both apps send 0.61 rad for each unit of the channels. Live Link
/// Face: the regression over the frames of `examples/dao.gesichter` of think-biq/LLV, with a
/// correlation of 0.9995 for each eye and axis. iFacialMocap: the example on the page "for
/// developers" has `eyeLookDown` 17 with an angle of 6.03°.
pub const MAX_EYE_ANGLE: f32 = 0.61;

/// Settings with which an avatar follows a face.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct View {
    /// True if the avatar moves like a mirror image.
    pub mirror: bool,
    /// Metres for each unit of the translation of poses; `None` if that is not known.
    pub metres: Option<f32>,
}

/// The part of a face that moves an avatar. Left and right are sides of the face, or of its mirror
/// image.
#[derive(Debug, Clone, PartialEq)]
pub struct Avatar {
    channels: [Option<f32>; CHANNELS.len()],
    /// Rotation and position of the head.
    pub head: Option<Head>,
}

/// Rotation and position of a head in the space `camera`: x to the left side of a face that looks
/// into the camera, y up, z out of that face.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Head {
    /// Unit quaternion x, y, z, w.
    pub rotation: [f32; 4],
    /// The same rotation in degrees, as [`HeadPose::euler_degrees`] has it: yaw to the left of the
    /// face, pitch downward and roll to the right shoulder are positive.
    pub angles: EulerAngles,
    /// Position, m.
    pub position: Option<[f32; 3]>,
}

/// Rotation of an eye relative to the head, rad.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EyeAngles {
    /// Angle to the left side of the face.
    pub yaw: f32,
    /// Angle downward.
    pub pitch: f32,
}

impl Avatar {
    /// The measurements of `face`. Values of channels are limited to 0…1; a value that is not
    /// finite is left out.
    pub fn new(face: &Observation, view: &View) -> Self {
        let mut channels = [None; CHANNELS.len()];
        let measured = face.blendshapes.iter().flat_map(|shapes| shapes.iter());
        for (name, value) in measured.filter(|(_, value)| value.is_finite()) {
            let mirrored = view.mirror.then(|| mirrored(name));
            if let Some(index) = index(mirrored.as_deref().unwrap_or(name)) {
                channels[index] = Some(value.clamp(0.0, 1.0));
            }
        }
        let head = face.pose.as_ref().and_then(|pose| Head::new(pose, view));
        Self { channels, head }
    }

    /// Values in the order of [`CHANNELS`].
    pub fn channels(&self) -> &[Option<f32>; CHANNELS.len()] {
        &self.channels
    }

    /// The measured channels with their values.
    pub fn measured(&self) -> impl Iterator<Item = (&'static str, f32)> {
        let named = std::iter::zip(CHANNELS, self.channels);
        named.filter_map(|(name, value)| Some((name, value?)))
    }

    /// The value of a channel; `None` if it was not measured.
    pub fn get(&self, name: &str) -> Option<f32> {
        self.channels[index(name)?]
    }

    /// Rotation of the left eye and of the right eye; `None` unless the four gaze channels of the
    /// eye were measured.
    pub fn eyes(&self) -> [Option<EyeAngles>; 2] {
        [
            self.eye("Left", ["Out", "In"]),
            self.eye("Right", ["In", "Out"]),
        ]
    }

    /// Computes each angle from the channel of its direction and the channel of the opposite
    /// direction.
    fn eye(&self, side: &str, [left, right]: [&str; 2]) -> Option<EyeAngles> {
        let look = |direction: &str| self.get(&format!("eyeLook{direction}{side}"));
        Some(EyeAngles {
            yaw: (look(left)? - look(right)?) * MAX_EYE_ANGLE,
            pitch: (look("Down")? - look("Up")?) * MAX_EYE_ANGLE,
        })
    }
}

impl Head {
    /// Converts a pose; `None` if the matrix has no rotation.
    fn new(pose: &HeadPose, view: &View) -> Option<Self> {
        let m = &pose.matrix;
        let matrix = Matrix3::from_fn(|row, column| m[row][column]);
        let scale = matrix.column(0).norm();
        let rotation = Rotation3::from_matrix_unchecked(matrix / scale);
        let rotation = UnitQuaternion::from_rotation_matrix(&rotation);
        let angles = pose.euler_degrees();
        let position = view.metres.map(|it| [0, 1, 2].map(|row| m[row][3] * it));
        let head = Self {
            rotation: rotation.coords.into(),
            angles,
            position,
        };
        let angles = [angles.yaw, angles.pitch, angles.roll];
        let mut numbers = head.rotation.into_iter().chain(angles);
        let is_finite =
            numbers.all(f32::is_finite) && position.iter().flatten().all(|it| it.is_finite());
        is_finite.then_some(if view.mirror { head.mirrored() } else { head })
    }

    /// The head on the other side of the plane x = 0.
    fn mirrored(self) -> Self {
        let [x, y, z, w] = self.rotation;
        Self {
            rotation: [x, -y, -z, w],
            angles: EulerAngles {
                yaw: -self.angles.yaw,
                roll: -self.angles.roll,
                ..self.angles
            },
            position: self.position.map(|[x, y, z]| [-x, y, z]),
        }
    }
}

impl EyeAngles {
    /// The rotation as a unit quaternion x, y, z, w in the space of [`Head`]: first downward, then
    /// to the left.
    pub fn rotation(&self) -> [f32; 4] {
        let left = UnitQuaternion::from_axis_angle(&Vector3::y_axis(), self.yaw);
        let down = UnitQuaternion::from_axis_angle(&Vector3::x_axis(), self.pitch);
        (left * down).coords.into()
    }
}

fn index(name: &str) -> Option<usize> {
    CHANNELS.iter().position(|channel| *channel == name)
}

/// The channel on the other side of the face; the channel itself if it has no side.
fn mirrored(name: &str) -> Cow<'_, str> {
    match (name.strip_suffix("Left"), name.strip_suffix("Right")) {
        (Some(stem), _) => format!("{stem}Right").into(),
        (_, Some(stem)) => format!("{stem}Left").into(),
        _ => name.into(),
    }
}
