// SPDX-License-Identifier: MPL-2.0
//! Measures for the features: `FeatureExtractor.update` in `tracker.py`.

use nalgebra::{Rotation2, Vector2};

use super::fit::Points;

/// Measures of a face's normalised points, in the order of
/// [`Features::NAMES`](crate::observation::Features::NAMES); lengths are relative to the length of
/// the nose or the width of the face, slopes are in degrees. `None` if a measure is not finite.
pub(super) fn measure(points: &Points) -> Option<[f32; 14]> {
    let face = Face::new(points);
    let (left_eye, left_roll) = face.eye([42, 45], [43, 44], [47, 46]);
    let (right_eye, right_roll) = face.eye([36, 39], [37, 38], [41, 40]);
    let rolls = [left_roll, right_roll, face.tilt(0, 16), face.tilt(31, 35)];
    let roll = mean(rolls.map(f64::to_degrees));
    let (left_slope, left_quirk) = face.brow([22, 23, 24, 25, 26]);
    let (right_slope, right_quirk) = face.brow([17, 18, 19, 20, 21]);
    let measures = [
        left_eye,
        right_eye,
        -left_slope.to_degrees() - roll,
        face.raise([22, 26], 27),
        left_quirk,
        right_slope.to_degrees() - roll,
        face.raise([17, 21], 27),
        right_quirk,
        face.raise([49, 50, 51], 62),
        face.beside_middle(62),
        face.raise([49, 50, 51], 58),
        face.beside_middle(58),
        (face.height([59, 60, 61]) - face.height([63, 64, 65])).abs() / face.nose,
        (face.x(58) - face.x(62)).abs() / face.width,
    ];
    let measures = measures.map(|measure| measure as f32);
    measures.iter().all(|m| m.is_finite()).then_some(measures)
}

/// Points in the plane with their scales.
struct Face<'a> {
    points: &'a Points,
    /// `norm_distance_x`.
    width: f64,
    /// `norm_distance_y`.
    nose: f64,
}

impl<'a> Face<'a> {
    fn new(points: &'a Points) -> Self {
        let across = |from: usize, to: usize| points[from].x - points[to].x;
        let down = |from: usize| points[from].y - points[from + 1].y;
        Self {
            points,
            width: mean([across(0, 16), across(1, 15)]),
            nose: mean([27, 28, 29].map(down)),
        }
    }

    fn x(&self, index: usize) -> f64 {
        self.points[index].x
    }

    /// Mean y.
    fn height<const N: usize>(&self, indices: [usize; N]) -> f64 {
        mean(indices.map(|i| self.points[i].y))
    }

    /// Mean height of points above the point `base`.
    fn raise<const N: usize>(&self, indices: [usize; N], base: usize) -> f64 {
        (self.height(indices) - self.points[base].y) / self.nose
    }

    /// Distance of a corner of the mouth from the centre line of the face: `center_line`.
    fn beside_middle(&self, corner: usize) -> f64 {
        let middle = mean([50, 60, 27, 30, 64, 55].map(|i| self.x(i)));
        (middle - self.x(corner)).abs() / self.width
    }

    /// The slope of the line from `from` to `to`, radians, mirrored for a line to the left:
    /// `align_points`.
    fn tilt(&self, from: usize, to: usize) -> f64 {
        use std::f64::consts::{FRAC_PI_2, PI, TAU};
        let line = self.points[to] - self.points[from];
        let mut angle = libm::atan2(line.y, line.x).rem_euclid(TAU);
        if angle >= FRAC_PI_2 {
            angle = PI - angle;
        }
        if angle <= -FRAC_PI_2 {
            angle = -PI - angle;
        }
        angle
    }

    /// The points `indices`, rotated around the point `from` by −`tilt`.
    fn levelled<const N: usize>(
        &self,
        from: usize,
        tilt: f64,
        indices: [usize; N],
    ) -> [Vector2<f64>; N] {
        let origin = self.points[from].xy();
        let level = Rotation2::new(-tilt);
        indices.map(|i| level * (self.points[i].xy() - origin) + origin)
    }

    /// Opening of an eye, and slope of its corners.
    fn eye(&self, [from, to]: [usize; 2], upper: [usize; 2], lower: [usize; 2]) -> (f64, f64) {
        let tilt = self.tilt(from, to);
        let height = |lid| mean(self.levelled(from, tilt, lid).map(|p| p.y));
        (((height(upper) - height(lower)) / self.nose).abs(), tilt)
    }

    /// Slope of a brow, and its bend.
    fn brow(&self, indices: [usize; 5]) -> (f64, f64) {
        let [from, .., to] = indices;
        let tilt = self.tilt(from, to);
        let [end, inner @ .., _] = self.levelled(from, tilt, indices);
        // The original measures both coordinates from the end's y.
        let bends = inner.map(|p| (p.x - end.y).abs().max((p.y - end.y).abs()));
        (tilt, bends.into_iter().fold(0.0, f64::max) / self.nose)
    }
}

/// The arithmetic mean.
pub(super) fn mean<const N: usize>(values: [f64; N]) -> f64 {
    values.iter().sum::<f64>() / N as f64
}

#[cfg(test)]
mod tests {
    use super::super::golden::{Golden, assert_near};
    use super::*;

    #[test]
    fn faces_are_measured_as_in_the_original() {
        let sequences = Golden::read().sequences;
        let frames: Vec<_> = sequences
            .iter()
            .flat_map(|sequence| &sequence.frames)
            .collect();
        let mut compared = 0;
        for frame in frames {
            let (Some(points), Some(want)) = (frame.normalized(), frame.measures) else {
                continue;
            };
            let got = measure(&points).unwrap().map(f64::from);
            assert_near("measures", got, want.map(f64::from), 1e-3);
            compared += 1;
        }
        assert!(compared >= 3, "the recording holds good fits");
    }

    #[test]
    fn points_in_one_place_have_no_measures() {
        assert_eq!(measure(&[nalgebra::Vector3::zeros(); 70]), None);
        assert_eq!(measure(&[nalgebra::Vector3::repeat(f64::NAN); 70]), None);
    }
}
