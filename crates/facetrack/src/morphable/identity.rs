// SPDX-License-Identifier: MPL-2.0
//! Knowledge of one face from earlier frames: its shape, which does not change, and its last
//! expression.
//!
//! The landmarks of every frame yield linear equations in the coefficients of the shape; eos'
//! `fit_shape_to_landmarks_linear_multi` solves the sum of the equations of several pictures of one
//! person. [`Past`] keeps this sum. Unlike the original it adds only equations that do not depend
//! on pose and expression (`Observed::independent_shape_equations`). Old frames fade, so that
//! errors are forgotten, and frames that do not match the known face get a small weight.

use super::shape::NormalEquations;
use super::{FaceModel, Fit};

/// Number of frames after which the weight of a frame has fallen to 1/e. The sum of all weights
/// never exceeds it by much.
const MEMORY: f64 = 150.0;

/// Number of frames over which the usual residual is averaged.
const USUAL: f64 = 30.0;

/// Maximum residual, as a multiple of the usual one, of a frame with full weight.
const TOLERANCE: f64 = 1.5;

/// Minimum of the usual residual, in units of the model: no detector's landmarks are nearer to a
/// mesh than half a millimetre.
const MIN_USUAL: f64 = 0.5;

/// The past of one face in a video, for [`Fitter::follow`](super::Fitter::follow).
#[derive(Debug, Clone, Default)]
pub struct Past(pub(super) Option<Known>);

impl Past {
    /// The known face, if it was fitted with as many components of a model like `model`.
    pub(super) fn known_to(&mut self, model: &FaceModel, components: usize) -> Option<&mut Known> {
        let shape = [model.shape().components, model.expressions().len()];
        let is_of = |known: &Known| {
            [known.shape.len(), known.expression.len()] == shape
                && known.equations.vector.len() == components
        };
        self.0.as_mut().filter(|known| is_of(known))
    }
}

/// A known face.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// Sum over all frames.
    pub equations: NormalEquations,
    /// Shape in the last frame.
    pub shape: Vec<f32>,
    /// Expression in the last frame with full weight.
    pub expression: Vec<f32>,
    /// The usual residual, in units of the model.
    usual: f64,
    /// Number of frames that were added.
    frames: f64,
}

impl Known {
    /// The face of a first frame.
    pub(super) fn first(fit: &Fit, equations: NormalEquations) -> Self {
        Self {
            equations,
            shape: fit.shape.clone(),
            expression: fit.expression.clone(),
            usual: f64::from(fit.residual) / fit.pose.scale,
            frames: 1.0,
        }
    }

    /// Weight, 0…1, of a frame whose landmarks are `residual` away from the known face, in units of
    /// the model.
    pub(super) fn weight(&self, residual: f64) -> f64 {
        let share = (self.tolerated() / residual).min(1.0);
        share * share
    }

    fn tolerated(&self) -> f64 {
        TOLERANCE * self.usual.max(MIN_USUAL)
    }

    /// The equations with the weight that they have in the next frame.
    pub(super) fn faded(&self) -> NormalEquations {
        let mut equations = self.equations.clone();
        equations.fade(libm::exp(-1.0 / MEMORY));
        equations
    }

    /// Adds a frame. `equations` is the sum over all frames including this one; its landmarks were
    /// `residual` away from the known face.
    pub(super) fn add(&mut self, fit: &Fit, equations: NormalEquations, residual: f64) {
        self.equations = equations;
        self.shape.clone_from(&fit.shape);
        if self.weight(residual) == 1.0 {
            self.expression.clone_from(&fit.expression);
        }
        self.frames += 1.0;
        let residual = residual.min(self.tolerated());
        self.usual += (residual - self.usual) / self.frames.min(USUAL);
    }
}

#[cfg(test)]
mod tests;
