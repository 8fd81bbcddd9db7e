// SPDX-License-Identifier: MPL-2.0
//! Results of the original for synthetic landmarks: `tests/golden/make_openseeface_fit.py`.

use nalgebra::{Vector2, Vector3};
use serde::Deserialize;

use super::fit::{Places, Points};

/// Everything that was recorded.
#[derive(Deserialize)]
pub(super) struct Golden {
    pub rotations: Vec<Rotation>,
    pub sequences: Vec<Sequence>,
    pub features: Vec<Feature>,
}

#[derive(Deserialize)]
pub(super) struct Rotation {
    pub vector: [f64; 3],
    /// Row-major.
    pub matrix: [[f64; 3]; 3],
    /// Derivatives of the matrix, by each component of the vector.
    pub derivatives: [[f64; 9]; 3],
    pub quaternion: [f64; 4],
    pub euler: [f64; 3],
}

/// One face from its first sight on.
#[derive(Deserialize)]
pub(super) struct Sequence {
    pub name: String,
    pub width: usize,
    pub height: usize,
    pub frames: Vec<Frame>,
}

#[derive(Deserialize)]
pub(super) struct Frame {
    /// x and y, px.
    places: Vec<[f64; 2]>,
    /// 0 where the original gave up and starts again.
    pub rotation: [f32; 3],
    pub translation: [f32; 3],
    pub quaternion: [f64; 4],
    pub euler: [f64; 3],
    pub error: f64,
    points: Vec<[f64; 3]>,
    /// Only of a good fit, like the measures.
    normalized: Option<Vec<[f64; 3]>>,
    pub measures: Option<[f32; 14]>,
}

/// A sequence of measures.
#[derive(Deserialize)]
pub(super) struct Feature {
    pub name: String,
    pub threshold: f32,
    /// Number of measures that are learned from; 0 for all.
    pub limit: usize,
    pub measures: Vec<f32>,
    pub values: Vec<f32>,
}

impl Golden {
    pub(super) fn read() -> Self {
        let text = include_str!("../../../../../../tests/golden/openseeface_fit.json");
        serde_json::from_str(text).unwrap()
    }
}

impl Sequence {
    pub(super) fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }
}

impl Frame {
    pub(super) fn places(&self) -> Places {
        std::array::from_fn(|i| Vector2::new(self.places[i][1], self.places[i][0]))
    }

    pub(super) fn points(&self) -> Points {
        std::array::from_fn(|i| Vector3::from(self.points[i]))
    }

    pub(super) fn normalized(&self) -> Option<Points> {
        let points = self.normalized.as_ref()?;
        Some(std::array::from_fn(|i| Vector3::from(points[i])))
    }
}

/// Asserts that all numbers are as close as the tolerance.
pub(super) fn assert_near(
    name: &str,
    got: impl AsRef<[f64]>,
    want: impl AsRef<[f64]>,
    tolerance: f64,
) {
    let (got, want) = (got.as_ref(), want.as_ref());
    assert_eq!(got.len(), want.len(), "{name}");
    for (a, b) in got.iter().zip(want) {
        assert!(
            (a - b).abs() <= tolerance,
            "{name}: {got:?} is not {want:?}"
        );
    }
}
