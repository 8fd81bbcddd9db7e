// SPDX-License-Identifier: MPL-2.0
//! Normalises a face's points to the size of the model, seen from the front: `normalize_pts3d` in
//! `tracker.py`.

use nalgebra::{Rotation2, Vector3};

use super::fit::Points;
use super::measure::mean;
use super::model;

/// Pairs whose horizontal distances measure the width of a face: ends of the outline, and the
/// corners of each eye.
const ACROSS: [[usize; 2]; 3] = [[0, 16], model::EYES[0], model::EYES[1]];

/// Pairs whose distances measure the length of the nose: its bridge from top to bottom.
const DOWN: [[usize; 2]; 3] = [[27, 28], [28, 29], [29, model::NOSE]];

/// The points with the tip of the nose at the origin, its bridge upright, and width and height
/// scaled to the model's. `None` if the result is not finite, as for a flat face.
pub(super) fn normalized(points: &Points) -> Option<Points> {
    let nose = points[model::NOSE];
    let bridge = points[DOWN[0][0]] - nose;
    let upright = Rotation2::new(std::f64::consts::FRAC_PI_2 - libm::atan2(bridge.y, bridge.x));
    let mut points = points.map(|point| {
        let flat = upright * (point - nose).xy();
        Vector3::new(flat.x, flat.y, point.z)
    });
    let height = mean(DOWN.map(|pair| distance(&points, pair).y / model_distance(pair).y));
    let width = mean(ACROSS.map(|pair| (distance(&points, pair).x / model_distance(pair).x).abs()));
    for point in &mut points {
        point.x /= width;
        point.y /= height;
    }
    let is_finite = points.iter().flatten().all(|value| value.is_finite());
    is_finite.then_some(points)
}

fn distance(points: &Points, [from, to]: [usize; 2]) -> Vector3<f64> {
    points[from] - points[to]
}

fn model_distance([from, to]: [usize; 2]) -> Vector3<f64> {
    model::point(from) - model::point(to)
}

#[cfg(test)]
mod tests {
    use super::super::golden::{Golden, assert_near};
    use super::*;

    #[test]
    fn faces_are_normalised_as_in_the_original() {
        let sequences = Golden::read().sequences;
        let frames = sequences.iter().flat_map(|sequence| &sequence.frames);
        for frame in frames.filter(|frame| frame.normalized().is_some()) {
            let points = normalized(&frame.points()).unwrap();
            for (i, (got, want)) in points.iter().zip(frame.normalized().unwrap()).enumerate() {
                assert_near(&format!("point {i}"), got.as_slice(), want.as_slice(), 1e-4);
            }
        }
    }

    #[test]
    fn a_face_of_one_point_is_not_normal() {
        assert_eq!(normalized(&[Vector3::zeros(); 70]), None);
        assert_eq!(normalized(&[Vector3::repeat(f64::NAN); 70]), None);
    }
}
