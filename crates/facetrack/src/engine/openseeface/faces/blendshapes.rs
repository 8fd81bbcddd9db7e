// SPDX-License-Identifier: MPL-2.0
//! Derives blendshapes from landmarks and features.

use std::sync::Arc;

use crate::blendshape::{BlendshapeSource, Blendshapes};
use crate::engine::jaw::Jaw;
use crate::engine::openseeface::CHANNELS;
use crate::observation::{Features, Observation};

/// Derives blendshapes. A channel without a source is absent.
pub(super) struct Deriver {
    /// Names of all channels, shared by faces.
    names: Arc<[String]>,
    /// Factor of `jawOpen`.
    jaw_open_scale: f32,
}

impl Deriver {
    /// Multiplies `jawOpen` by `jaw_open_scale`.
    pub(super) fn new(jaw_open_scale: f32) -> Self {
        Self {
            names: CHANNELS.map(str::to_owned).into(),
            jaw_open_scale,
        }
    }

    /// The channels of [`CHANNELS`] that can be derived from the 66 landmarks and the features of
    /// `face`.
    pub(super) fn derive(&self, face: &Observation) -> Option<Blendshapes> {
        let landmarks = face.landmarks.as_ref();
        let jaw_open = landmarks
            .and_then(|landmarks| Jaw::OPENSEEFACE_66.open(&landmarks.points, self.jaw_open_scale));
        let expression = face.features.as_ref().map(expression);
        let values = expression.map_or([None; CHANNELS.len() - 1], |values| values.map(Some));
        let values: Vec<_> = values.into_iter().chain([jaw_open]).collect();
        let known: Vec<f32> = values.iter().copied().flatten().collect();
        if known.is_empty() {
            return None;
        }
        let names = if known.len() == values.len() {
            self.names.clone()
        } else {
            let names = self.names.iter().zip(&values);
            let names = names.filter(|(_, value)| value.is_some());
            names.map(|(name, _)| name.clone()).collect()
        };
        Some(Blendshapes::new(names, known).from_source(BlendshapeSource::Derived))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;
    use crate::observation::{Landmark, LandmarkScheme, Landmarks};

    /// A face with the lips `gap` apart and steps of 10 px on the nose.
    fn face(gap: f32) -> Observation {
        let mut points = vec![Landmark::default(); 66];
        (points[36].x, points[45].x) = (-30.0, 30.0);
        for i in 0..4 {
            points[27 + i].y = 10.0 * i as f32;
        }
        for i in 0..3 {
            points[59 + i].y = 50.0;
            points[63 + i].y = 50.0 + gap;
        }
        let landmarks = Landmarks::new(LandmarkScheme::OpenSeeFace66, points);
        Observation {
            landmarks: Some(landmarks),
            ..Observation::from_bbox(Rect::default())
        }
    }

    #[test]
    fn a_jaw_is_open_by_the_steps_on_the_nose() {
        for (scale, want) in [(1.0, 0.4), (2.0, 0.8), (4.0, 1.0)] {
            let found = Deriver::new(scale).derive(&face(4.0)).unwrap();
            let open = found.get("jawOpen").unwrap();
            assert!((open - want).abs() < 1e-4, "{scale}: {open}");
        }
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let deriver = Deriver::new(1.0);
        let mut face = face(4.0);
        let found = deriver.derive(&face).unwrap();
        assert_eq!(**found.names(), ["jawOpen".to_owned()]);
        assert_eq!(found.source(), BlendshapeSource::Derived);

        face.features = Some(Features([0.0; 14]));
        let found = deriver.derive(&face).unwrap();
        assert_eq!(**found.names(), CHANNELS.map(str::to_owned));

        face.landmarks.as_mut().unwrap().points[60].y = f32::NAN;
        let found = deriver.derive(&face).unwrap();
        assert_eq!(
            **found.names(),
            CHANNELS[..7]
                .iter()
                .map(|n| n.to_string())
                .collect::<Vec<_>>()
        );

        face.features = None;
        assert_eq!(deriver.derive(&face), None);
        for p in &mut face.landmarks.as_mut().unwrap().points {
            *p = Landmark::default();
        }
        assert_eq!(deriver.derive(&face), None, "no nose, no measure");
    }

    #[test]
    fn features_become_blendshapes() {
        let with = |changes: &[(&str, f32)]| {
            let mut values = [0.0; 14];
            for (name, value) in changes {
                values[Features::NAMES.iter().position(|n| n == name).unwrap()] = *value;
            }
            let features = Some(Features(values));
            Deriver::new(1.0)
                .derive(&Observation {
                    features,
                    ..face(0.0)
                })
                .unwrap()
        };
        for (changes, want) in [
            (&[][..], &[][..]),
            (&[("eye_l", -0.75)], &[("eyeBlinkLeft", 0.75)]),
            (&[("eye_r", -0.25)], &[("eyeBlinkRight", 0.25)]),
            (&[("eye_r", 0.5)], &[]),
            (&[("eyebrow_updown_l", -0.5)], &[("browDownLeft", 0.5)]),
            (&[("eyebrow_updown_r", -0.5)], &[("browDownRight", 0.5)]),
            (
                &[("eyebrow_updown_l", 0.5)],
                &[("browOuterUpLeft", 0.5), ("browInnerUp", 0.25)],
            ),
            (
                &[("eyebrow_updown_r", 1.0), ("eyebrow_updown_l", -1.0)],
                &[
                    ("browOuterUpRight", 1.0),
                    ("browInnerUp", 0.5),
                    ("browDownLeft", 1.0),
                ],
            ),
        ] {
            let blendshapes = with(changes);
            for channel in CHANNELS {
                let want = want.iter().find(|(name, _)| *name == channel);
                let want = want.map_or(0.0, |(_, value)| *value);
                assert_eq!(
                    blendshapes.get(channel),
                    Some(want),
                    "{changes:?}: {channel}"
                );
            }
        }
    }
}
