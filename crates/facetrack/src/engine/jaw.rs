// SPDX-License-Identifier: MPL-2.0
//! Computes from landmarks how far a jaw is open.

use std::sync::Arc;

use crate::blendshape::{BlendshapeSource, Blendshapes};
use crate::observation::{Landmark, LandmarkScheme, Landmarks};

/// The blendshape that [`JawOpen`] measures, in ARKit's spelling.
pub const CHANNELS: [&str; 1] = ["jawOpen"];

/// Measures `jawOpen`, as the only blendshape.
pub struct JawOpen {
    channels: Arc<[String]>,
    scale: f32,
}

impl JawOpen {
    /// Creates a measure that is multiplied by `scale`.
    pub fn new(scale: f32) -> Self {
        Self {
            channels: CHANNELS.map(str::to_owned).into(),
            scale,
        }
    }

    /// `jawOpen`, if `landmarks` determine it. They are iBUG's or InsightFace's.
    pub fn measure(&self, landmarks: &Landmarks) -> Option<Blendshapes> {
        let jaw = match landmarks.scheme {
            LandmarkScheme::Ibug68 => Jaw::IBUG_68,
            _ => Jaw::INSIGHTFACE_106,
        };
        let open = jaw.open(&landmarks.points, self.scale)?;
        let channels = Blendshapes::new(self.channels.clone(), vec![open]);
        Some(channels.from_source(BlendshapeSource::Derived))
    }
}

/// Landmarks of a scheme that show an open jaw. Lips and length are measured along the face, across
/// the line between the eyes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jaw {
    /// Outer corners of the eyes, right and left.
    eyes: [usize; 2],
    /// Inner edge of the upper lip.
    upper_lip: [usize; 3],
    /// Inner edge of the lower lip.
    lower_lip: [usize; 3],
    /// Two landmarks. The gap between the lips is compared with the distance between them.
    length: [usize; 2],
    /// Part of that distance with which the gap is compared.
    part: f32,
}

impl Jaw {
    /// OpenSeeFace's 66 points: the length is the mean step from point to point on the nose's
    /// bridge.
    pub const OPENSEEFACE_66: Self = Self {
        eyes: [36, 45],
        upper_lip: [59, 60, 61],
        lower_lip: [63, 64, 65],
        length: [27, 30],
        part: 1.0 / 3.0,
    };

    /// iBUG's 68 points: the length is from the nose's base to the chin.
    pub const IBUG_68: Self = Self {
        eyes: [36, 45],
        upper_lip: [61, 62, 63],
        lower_lip: [65, 66, 67],
        length: [33, 8],
        part: 1.0,
    };

    /// InsightFace's 106 points, measured as [`Self::IBUG_68`].
    pub const INSIGHTFACE_106: Self = Self {
        eyes: [35, 93],
        upper_lip: [66, 62, 70],
        lower_lip: [54, 60, 57],
        length: [80, 0],
        part: 1.0,
    };

    /// `jawOpen`: the gap between the lips, in parts of the length, times `scale`, 0…1; `None`
    /// where points are missing, not finite, or show no length.
    pub fn open(&self, points: &[Landmark], scale: f32) -> Option<f32> {
        let point = |i: usize| points.get(i).copied();
        let [right, left] = [point(self.eyes[0])?, point(self.eyes[1])?];
        let (sin, cos) = libm::sincosf(libm::atan2f(left.y - right.y, left.x - right.x));
        let height = |i: usize| point(i).map(|p| cos * p.y - sin * p.x);
        let sum = |lip: [usize; 3]| lip.into_iter().map(height).sum::<Option<f32>>();
        let mean = |lip| Some(sum(lip)? / 3.0);
        let gap = (mean(self.upper_lip)? - mean(self.lower_lip)?).abs();
        let [from, to] = self.length;
        let length = ((height(from)? - height(to)?) * self.part).abs();
        let open = gap / length * scale;
        (length > 0.0 && open.is_finite()).then(|| open.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A face with the lips `gap` apart and 30 px of length, turned by `roll` degrees.
    fn face(jaw: &Jaw, gap: f32, roll: f32) -> Vec<Landmark> {
        let mut points = vec![Landmark::default(); 106];
        let mut put = |index: usize, x, y| (points[index].x, points[index].y) = (x, y);
        put(jaw.eyes[0], -30.0, 0.0);
        put(jaw.eyes[1], 30.0, 0.0);
        put(jaw.length[0], 0.0, 20.0);
        put(jaw.length[1], 2.0, 50.0);
        for i in 0..3 {
            put(jaw.upper_lip[i], i as f32 * 5.0, 50.0 + i as f32);
            put(jaw.lower_lip[i], i as f32 * 5.0, 50.0 + i as f32 + gap);
        }
        let (sin, cos) = roll.to_radians().sin_cos();
        for p in &mut points {
            (p.x, p.y) = (300.0 + cos * p.x - sin * p.y, 200.0 + sin * p.x + cos * p.y);
        }
        points
    }

    #[test]
    fn a_jaw_is_open_by_the_gap_between_the_lips() {
        for (jaw, gap, scale, want) in [
            (Jaw::IBUG_68, 0.0, 1.0, 0.0),
            (Jaw::IBUG_68, 12.0, 1.0, 0.4),
            (Jaw::IBUG_68, 12.0, 2.0, 0.8),
            (Jaw::IBUG_68, 75.0, 1.0, 1.0),
            (Jaw::INSIGHTFACE_106, 12.0, 1.0, 0.4),
            (Jaw::OPENSEEFACE_66, 4.0, 1.0, 0.4),
            (Jaw::OPENSEEFACE_66, 4.0, 2.0, 0.8),
            (Jaw::OPENSEEFACE_66, 25.0, 1.0, 1.0),
        ] {
            for roll in [0.0, 30.0, -75.0, 180.0] {
                let open = jaw.open(&face(&jaw, gap, roll), scale).unwrap();
                assert!((open - want).abs() < 1e-4, "{gap} {scale} {roll}: {open}");
            }
        }
    }

    #[test]
    fn what_does_not_tell_is_no_measure() {
        let jaw = Jaw::IBUG_68;
        let mut points = face(&jaw, 12.0, 0.0);
        assert_eq!(jaw.open(&points[..60], 1.0), None, "no lips");
        points[62].y = f32::NAN;
        assert_eq!(jaw.open(&points, 1.0), None);
        assert_eq!(jaw.open(&[Landmark::default(); 68], 1.0), None, "no length");
    }
}
