// SPDX-License-Identifier: MPL-2.0
//! Checks of landmarks before a fit, and the landmarks of a fitted mesh.

use std::collections::{BTreeMap, HashSet};

use nalgebra::{Matrix2, Vector2};

use super::{LANDMARKS, LandmarkMapping, ShapeModel};
use crate::geometry::Point;
use crate::observation::FitFailure;
use crate::sample::FARTHEST;

/// Minimum extent of landmarks across their longest direction, relative to the extent along it;
/// extents are root mean squares. All views of the Surrey Face Model have at least 0.3, the faces
/// of eos' recorded results at least 0.45.
const MIN_BREADTH: f64 = 0.05;

/// Minimum extent relative to the coordinates: some rounding errors of `f32`.
const MIN_RESOLUTION: f64 = 8.0 * f32::EPSILON as f64;

/// The inner corners of the mouth, on the image's left and right, which eos' mapping leaves out.
const MOUTH_CORNERS: [usize; 2] = [60, 64];

/// The other landmarks of the inner lips.
const INNER_LIPS: [usize; 6] = [61, 62, 63, 65, 66, 67];

/// Checks that `landmarks`, px, can be a face's.
///
/// # Errors
/// Returns [`FitFailure::NoLandmarks`] if the number of landmarks is not [`LANDMARKS`],
/// [`FitFailure::NotFinite`] if one is not finite, or [`FitFailure::Degenerate`] if the landmarks
/// with a vertex of their own, which yield the first pose, lie on a line or in one point.
pub(super) fn check(landmarks: &[Point], mapping: &LandmarkMapping) -> Result<(), FitFailure> {
    if landmarks.len() != LANDMARKS {
        return Err(FitFailure::NoLandmarks);
    }
    let is_near = |value: f32| f64::from(value).abs() <= FARTHEST;
    if !landmarks.iter().all(|p| is_near(p.x) && is_near(p.y)) {
        return Err(FitFailure::NotFinite);
    }
    let fixed = mapping
        .vertices
        .iter()
        .map(|(landmark, _)| landmarks[*landmark]);
    let (length, breadth) = extent(fixed.clone());
    let farthest = fixed.fold(0.0f32, |farthest, p| farthest.max(p.x.abs()).max(p.y.abs()));
    let least = (MIN_BREADTH * length).max(MIN_RESOLUTION * f64::from(farthest));
    // The comparison with `>` also refuses a single point, for which both are 0.
    if breadth > least {
        Ok(())
    } else {
        Err(FitFailure::Degenerate)
    }
}

/// Root mean squares of the distances from the mean, along the longest direction of the points and
/// across it.
fn extent(points: impl Iterator<Item = Point>) -> (f64, f64) {
    let places = points.map(|p| Vector2::new(f64::from(p.x), f64::from(p.y)));
    let places: Vec<Vector2<f64>> = places.collect();
    let count = places.len().max(1) as f64;
    let mean = places.iter().sum::<Vector2<f64>>() / count;
    let squares = places.iter().map(|p| (p - mean) * (p - mean).transpose());
    let scatter = squares.sum::<Matrix2<f64>>() / count;
    let extents = scatter
        .symmetric_eigenvalues()
        .map(|square| square.max(0.0).sqrt());
    (extents.max(), extents.min())
}

/// The vertex of each landmark. Landmarks of the outline are included, but every fit matches them
/// again.
///
/// It is the vertex of the mapping, if there is one. The inner corners of the mouth take the
/// vertices of the upper lip next to the corners of the mesh's opening: in eos' recorded fits these
/// are a fifth nearer to the landmarks than the mesh's own corners, which are the outer ones. Any
/// other landmark takes the vertex of the landmark with the nearest number.
pub(super) fn landmark_vertices(
    shape: &ShapeModel,
    mapping: &LandmarkMapping,
) -> [usize; LANDMARKS] {
    let mut known: BTreeMap<usize, usize> = mapping.vertices.iter().copied().collect();
    if let Some(corners) = mouth_corners(shape, &known) {
        for (landmark, vertex) in std::iter::zip(MOUTH_CORNERS, corners) {
            known.entry(landmark).or_insert(vertex);
        }
    }
    std::array::from_fn(|landmark| {
        let nearest = known
            .iter()
            .min_by_key(|(other, _)| other.abs_diff(landmark));
        nearest.map_or(0, |(_, vertex)| *vertex)
    })
}

/// The vertices of the upper lip next to the corners of the opening between the inner lips, the one
/// on the image's left first; `None` if the mesh has no opening.
fn mouth_corners(shape: &ShapeModel, known: &BTreeMap<usize, usize>) -> Option<[usize; 2]> {
    let next = rim(shape);
    let lips = INNER_LIPS.iter().filter_map(|landmark| known.get(landmark));
    let start = *lips.clone().find(|vertex| next.contains_key(vertex))?;
    let around = std::iter::successors(Some(start), |vertex| next.get(vertex).copied());
    let around = around.take(next.len() + 1);
    let length = 1 + around.clone().skip(1).position(|vertex| vertex == start)?;
    let opening: Vec<usize> = around.take(length).collect();
    let x = |place: &usize| shape.mean[opening[*place]][0];
    let left = (0..length).min_by(|a, b| x(a).total_cmp(&x(b)))?;
    let right = (0..length).max_by(|a, b| x(a).total_cmp(&x(b)))?;
    // Seen from the front the opening is on the right of its rim, so the rim runs over the upper
    // lip from left to right.
    Some([
        opening[(left + 1) % length],
        opening[(right + length - 1) % length],
    ])
}

/// For each vertex at an edge of only one triangle the next one, in the triangle's order.
fn rim(shape: &ShapeModel) -> BTreeMap<usize, usize> {
    let sides = shape
        .triangles
        .iter()
        .flat_map(|[a, b, c]| [(*a, *b), (*b, *c), (*c, *a)]);
    let all: HashSet<(u32, u32)> = sides.clone().collect();
    let rim = sides.filter(|(from, to)| !all.contains(&(*to, *from)));
    rim.map(|(from, to)| (from as usize, to as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::synthetic::head;
    use super::*;

    #[test]
    fn the_inner_corners_of_the_mouth_are_on_the_upper_lip_next_to_the_corners_of_its_opening() {
        let model = head();
        let vertices = model.landmark_vertices();
        for (landmark, vertex) in &model.mapping().vertices {
            assert_eq!(vertices[*landmark], *vertex);
        }
        let next = rim(model.shape());
        let [left, right] = MOUTH_CORNERS.map(|corner| vertices[corner]);
        assert!(next.contains_key(&left) && next.contains_key(&right));
        let place = |vertex: usize| model.shape().mean[vertex];
        assert!(
            place(left)[0] < place(vertices[61])[0] && place(vertices[63])[0] < place(right)[0]
        );
        // The opening is a row of eight squares, whose upper side is the upper lip.
        assert_eq!(right - left, 6);
        assert!(place(left)[1] > -45.0);
    }

    #[test]
    fn a_landmark_without_a_vertex_takes_the_nearest_ones() {
        let model = head();
        let mut shape = model.shape().clone();
        shape.triangles.truncate(1);
        let mapping = LandmarkMapping {
            vertices: vec![(8, 3), (30, 5), (62, 7), (66, 9)],
            ..model.mapping().clone()
        };
        let vertices = landmark_vertices(&shape, &mapping);
        for (landmark, vertex) in [(0, 3), (19, 3), (20, 5), (60, 7), (64, 7), (65, 9), (67, 9)] {
            assert_eq!(vertices[landmark], vertex, "{landmark}");
        }
    }
}
