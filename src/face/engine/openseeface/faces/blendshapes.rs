// SPDX-License-Identifier: MPL-2.0
//! The blendshapes that landmarks and features imply.

use std::sync::Arc;

use crate::face::blendshape::{BlendshapeSource, Blendshapes};
use crate::face::engine::openseeface::CHANNELS;
use crate::face::observation::{Features, Landmark, Observation};

/// Outer corners of the eyes, right and left.
const EYES: [usize; 2] = [36, 45];

/// Makes blendshapes; a channel that nothing implies is absent.
pub struct Deriver {
    /// All channels, shared by the faces that have them.
    names: Arc<[String]>,
    /// What `jawOpen` is multiplied by.
    jaw_open_scale: f32,
}

impl Deriver {
    /// With this factor of `jawOpen`.
    pub fn new(jaw_open_scale: f32) -> Self {
        Self {
            names: CHANNELS.map(str::to_owned).into(),
            jaw_open_scale,
        }
    }

    /// The channels of [`CHANNELS`] that the 66 landmarks and the features of `face` tell.
    pub fn derive(&self, face: &Observation) -> Option<Blendshapes> {
        let landmarks = face.landmarks.as_ref();
        let jaw_open = landmarks.and_then(|landmarks| self.jaw_open(&landmarks.points));
        let expression = face.features.as_ref().map(expression);
        let values = expression.map_or([None; CHANNELS.len() - 1], |values| values.map(Some));
        let values: Vec<_> = values.into_iter().chain([jaw_open]).collect();
        let known: Vec<f32> = values.iter().copied().flatten().collect();
        if known.is_empty() {
            return None;
        }
        let names = match known.len() == values.len() {
            true => self.names.clone(),
            false => {
                let names = self.names.iter().zip(&values);
                let names = names.filter(|(_, value)| value.is_some());
                names.map(|(name, _)| name.clone()).collect()
            }
        };
        Some(Blendshapes::new(names, known).from_source(BlendshapeSource::Derived))
    }

    /// The gap between the lips, in parts of the nose's bridge, 0…1.
    fn jaw_open(&self, points: &[Landmark]) -> Option<f32> {
        let [right, left] = EYES.map(|i| points[i]);
        let (sin, cos) = (left.y - right.y).atan2(left.x - right.x).sin_cos();
        let height = |i: usize| cos * points[i].y - sin * points[i].x;
        let mean = |lip: [usize; 3]| lip.into_iter().map(height).sum::<f32>() / 3.0;
        let gap = (mean([59, 60, 61]) - mean([63, 64, 65])).abs();
        let bridge = ((height(27) - height(30)) / 3.0).abs();
        let open = gap / bridge * self.jaw_open_scale;
        (bridge > 0.0 && open.is_finite()).then(|| open.clamp(0.0, 1.0))
    }
}

/// The channels before `jawOpen`, in the order of [`CHANNELS`].
fn expression(features: &Features) -> [f32; CHANNELS.len() - 1] {
    let [right_eye, left_eye] = features.eye_openness();
    let [left, right] = ["eyebrow_updown_l", "eyebrow_updown_r"]
        .map(|name| features.get(name).unwrap_or_default().clamp(-1.0, 1.0));
    let (left_up, right_up) = (left.max(0.0), right.max(0.0));
    [
        (-left).max(0.0),
        (-right).max(0.0),
        (left_up + right_up) / 2.0,
        left_up,
        right_up,
        1.0 - left_eye,
        1.0 - right_eye,
    ]
}
