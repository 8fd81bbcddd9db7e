// SPDX-License-Identifier: MPL-2.0
//! Blendshape channels in ARKit's spelling. A channel that no network measured is absent, never 0.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::words::display_as_serialized;

/// The 52 channels of MediaPipe's blendshape network, in its output order: `_neutral`, then 51 of
/// ARKit's 52 (`tongueOut` is not measured). Source: `kBlendshapeNames` in MediaPipe's
/// `face_blendshapes_graph.cc`.
#[rustfmt::skip]
pub const MEDIAPIPE_CHANNELS: [&str; 52] = [
    "_neutral",
    "browDownLeft", "browDownRight", "browInnerUp", "browOuterUpLeft", "browOuterUpRight",
    "cheekPuff", "cheekSquintLeft", "cheekSquintRight",
    "eyeBlinkLeft", "eyeBlinkRight", "eyeLookDownLeft", "eyeLookDownRight", "eyeLookInLeft", "eyeLookInRight",
    "eyeLookOutLeft", "eyeLookOutRight", "eyeLookUpLeft", "eyeLookUpRight", "eyeSquintLeft", "eyeSquintRight",
    "eyeWideLeft", "eyeWideRight",
    "jawForward", "jawLeft", "jawOpen", "jawRight",
    "mouthClose", "mouthDimpleLeft", "mouthDimpleRight", "mouthFrownLeft", "mouthFrownRight", "mouthFunnel",
    "mouthLeft", "mouthLowerDownLeft", "mouthLowerDownRight", "mouthPressLeft", "mouthPressRight", "mouthPucker",
    "mouthRight", "mouthRollLower", "mouthRollUpper", "mouthShrugLower", "mouthShrugUpper", "mouthSmileLeft",
    "mouthSmileRight", "mouthStretchLeft", "mouthStretchRight", "mouthUpperUpLeft", "mouthUpperUpRight",
    "noseSneerLeft", "noseSneerRight",
];

/// MediaPipe's channel that ARKit does not have. It belongs to no expression.
pub(crate) const NEUTRAL: &str = "_neutral";

/// The channels that MediaPipe's blendshape network leaves near 0 in every expression: issues 4436
/// and 4450 of MediaPipe.
pub const MEDIAPIPE_NEAR_ZERO: [&str; 3] = ["cheekPuff", "noseSneerLeft", "noseSneerRight"];

/// Origin of an engine's channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum BlendshapeSource {
    /// A network measured the channels.
    #[default]
    Measured,
    /// The channels were computed from landmarks or from other values.
    Derived,
}

display_as_serialized!(BlendshapeSource);

/// Channels with their values, in the engine's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Blendshapes {
    names: Arc<[String]>,
    values: Vec<f32>,
    /// `None` if the values were not corrected, or if these values are unknown.
    raw: Option<Vec<f32>>,
    is_corrected: bool,
    source: BlendshapeSource,
}

impl Blendshapes {
    /// Measured channels: pairs `names` with `values`, in order; what is longer on one side is left
    /// out.
    pub fn new(names: Arc<[String]>, mut values: Vec<f32>) -> Self {
        values.truncate(names.len());
        Self {
            names,
            values,
            ..Self::default()
        }
    }

    /// The same channels with corrected `values`, one for each. The values before the first
    /// correction are the raw ones.
    #[must_use]
    pub fn corrected(self, values: Vec<f32>) -> Self {
        Self {
            raw: self.raw.or(Some(self.values)),
            values,
            is_corrected: true,
            ..self
        }
    }

    /// The same channels, whose values were corrected before. The values before that are unknown,
    /// unless [`Blendshapes::corrected`] set them.
    #[must_use]
    pub fn assume_corrected(self) -> Self {
        Self {
            is_corrected: true,
            ..self
        }
    }

    /// Returns the same channels with another source.
    #[must_use]
    pub fn from_source(self, source: BlendshapeSource) -> Self {
        Self { source, ..self }
    }

    /// Restores stored channels, with the values before the correction if these are known. `None`
    /// if there are not as many of them.
    pub fn restored(
        names: Arc<[String]>,
        values: Vec<f32>,
        raw: Option<Vec<f32>>,
        source: BlendshapeSource,
    ) -> Option<Self> {
        let channels = match raw {
            Some(raw) if raw.len() != values.len() => return None,
            Some(raw) => Self::new(names, raw).corrected(values),
            None => Self::new(names, values),
        };
        Some(Self { source, ..channels })
    }

    /// Returns the origin of the channels.
    pub fn source(&self) -> BlendshapeSource {
        self.source
    }

    /// The value of a channel; `None` when it was not measured. ARKit's channels, such as `jawOpen`,
    /// have values from 0 to 1.
    pub fn get(&self, name: &str) -> Option<f32> {
        self.iter()
            .find(|(channel, _)| *channel == name)
            .map(|(_, value)| value)
    }

    /// Channels in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f32)> {
        self.names
            .iter()
            .map(String::as_str)
            .zip(self.values.iter().copied())
    }

    /// Channel names, shared by every face of an engine.
    pub fn names(&self) -> &Arc<[String]> {
        &self.names
    }

    /// Values, in the order of the names.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns true if rest values were subtracted from the values, or gains applied to them. See
    /// [`neutral`](super::neutral) and [`gain`](super::gain).
    pub fn is_corrected(&self) -> bool {
        self.is_corrected
    }

    /// Values before they were corrected, in the order of the names; `None` if they were not, or if
    /// these values are unknown.
    pub fn raw(&self) -> Option<&[f32]> {
        self.raw.as_deref()
    }
}
