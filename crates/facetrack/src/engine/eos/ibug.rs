// SPDX-License-Identifier: MPL-2.0
//! iBUG's 68 landmarks among the 478 of MediaPipe's mesh.
//!
//! For eyes, brows and mouth, all common tables agree. Where they differ (nose, lower lip,
//! outline), the vertices nearest to dlib's 68 landmarks were chosen. On 582 faces of 2 clips and 7
//! pictures, the mean distance from dlib's landmarks, relative to the distance of the outer eye
//! corners, is:
//!
//! | outline | brows | bridge of the nose | base of the nose | eyes | outer lips | inner lips | all |
//! |---|---|---|---|---|---|---|---|
//! | 0.067 | 0.051 | 0.034 | 0.025 | 0.019 | 0.029 | 0.024 | 0.039 |
//!
//! A fit slides outline landmarks along the model's outline, so only the distance across the
//! outline matters there.

use crate::observation::{LandmarkScheme, Landmarks};

/// The vertex of each landmark, each row from the image's left.
#[rustfmt::skip]
const VERTICES: [usize; 68] = [
    // The outline and the chin: 0–16.
    127, 234, 93, 58, 172, 136, 149, 148, 152, 377, 378, 365, 397, 288, 323, 454, 356,
    // Brows, their upper edges: 17–26.
    70, 63, 105, 66, 107, 336, 296, 334, 293, 300,
    // Bridge and base of the nose: 27–35.
    168, 197, 5, 4, 75, 97, 2, 326, 305,
    // Eyes, each from a corner along the upper lid: 36–47.
    33, 160, 158, 133, 153, 144,
    362, 385, 387, 263, 373, 380,
    // Outer lips, along the upper one, then back along the lower one: 48–59.
    61, 39, 37, 0, 267, 269, 291, 405, 314, 17, 84, 181,
    // Inner lips, likewise: 60–67.
    78, 82, 13, 312, 308, 317, 14, 87,
];

/// iBUG's landmarks of a `mesh`; `None` for another scheme.
pub(super) fn from_mesh(mesh: &Landmarks) -> Option<Landmarks> {
    let points = &mesh.points;
    let points: Option<Vec<_>> = VERTICES.iter().map(|i| points.get(*i).copied()).collect();
    let is_mesh = mesh.scheme == LandmarkScheme::MediaPipe478;
    let points = points.filter(|_| is_mesh)?;
    Some(Landmarks::new(LandmarkScheme::Ibug68, points))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Landmark;

    #[test]
    fn every_landmark_is_a_vertex_of_its_own() {
        let mut seen = VERTICES.to_vec();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), LandmarkScheme::Ibug68.count());
        assert!(seen.iter().all(|i| *i < 468), "none on an iris");
    }

    #[test]
    fn landmarks_are_taken_from_a_mesh_alone() {
        let points: Vec<_> = (0..478)
            .map(|i| Landmark {
                x: i as f32,
                y: 2.0,
                z: -1.0,
            })
            .collect();
        let mesh = Landmarks::new(LandmarkScheme::MediaPipe478, points);
        let found = from_mesh(&mesh).unwrap();
        assert_eq!(found.scheme, LandmarkScheme::Ibug68);
        assert_eq!(found.points[8], mesh.points[152], "the chin");
        let short = Landmarks::new(mesh.scheme, mesh.points[..400].to_vec());
        assert_eq!(from_mesh(&short), None);
        let other = Landmarks::new(LandmarkScheme::OpenSeeFace66, mesh.points);
        assert_eq!(from_mesh(&other), None);
    }
}
