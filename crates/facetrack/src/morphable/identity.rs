// SPDX-License-Identifier: MPL-2.0
//! What is known of one face from the frames before: its shape, which does not change, and its last expression.
//!
//! Every frame's landmarks are linear equations in the coefficients of the shape; the sum of many frames' equations is what
//! eos' `fit_shape_to_landmarks_linear_multi` solves for several pictures of one person. The past keeps that sum, of what the
//! landmarks say of the shape alone, which is where it differs from the original (`Observed::shape_equations_alone`). It forgets
//! slowly, so that it can recover from what was wrong, and a frame that does not fit the face so far has little weight in it.

use super::shape::NormalEquations;
use super::{FaceModel, Fit};

/// Frames that are remembered: the weight of a frame falls to 1/e after as many, and the weights of all add up to hardly
/// more, however many there were.
const MEMORY: f64 = 150.0;

/// Frames over which the usual residual is a mean.
const USUAL: f64 = 30.0;

/// Residuals, as multiples of the usual one, up to which a frame counts in full.
const TOLERANCE: f64 = 1.5;

/// The least that the usual residual is taken for, in units of the model: no detector's landmarks are nearer to a mesh than
/// half a millimetre.
const LEAST_USUAL: f64 = 0.5;

/// The past of one face in a video, for [`Fitter::follow`](super::Fitter::follow).
#[derive(Debug, Clone, Default)]
pub struct Past(pub(super) Option<Known>);

impl Past {
    /// What is known, where that is of `model` and of as many components.
    pub(super) fn known_to(&mut self, model: &FaceModel, components: usize) -> Option<&mut Known> {
        let shape = [model.shape().components, model.expressions().len()];
        let is_of = |known: &Known| {
            [known.shape.len(), known.expression.len()] == shape
                && known.equations.vector.len() == components
        };
        self.0.as_mut().filter(|known| is_of(known))
    }
}

/// What is known of a face.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// Of all frames.
    pub equations: NormalEquations,
    /// Of the last frame.
    pub shape: Vec<f32>,
    /// Of the last frame that was of this face.
    pub expression: Vec<f32>,
    /// The usual residual, in units of the model.
    usual: f64,
    /// Frames that were added.
    frames: f64,
}

impl Known {
    /// What the first frame says.
    pub fn first(fit: &Fit, equations: NormalEquations) -> Self {
        Self {
            equations,
            shape: fit.shape.clone(),
            expression: fit.expression.clone(),
            usual: f64::from(fit.residual) / fit.pose.scale,
            frames: 1.0,
        }
    }

    /// How much a frame counts whose landmarks are `residual` away from the face so far, in units of the model: the square
    /// of how often that is in what is tolerated, 1 at most.
    pub fn weight(&self, residual: f64) -> f64 {
        let tolerated = self.tolerated();
        if residual <= tolerated {
            1.0
        } else {
            (tolerated / residual).powi(2)
        }
    }

    fn tolerated(&self) -> f64 {
        TOLERANCE * self.usual.max(LEAST_USUAL)
    }

    /// What is left of it for the next frame to be added to.
    pub fn faded(&self) -> NormalEquations {
        let mut equations = self.equations.clone();
        equations.fade((-1.0 / MEMORY).exp());
        equations
    }

    /// Adds a frame: `equations` are those of all frames with it, and its landmarks were `residual` away from the face before.
    pub fn add(&mut self, fit: &Fit, equations: NormalEquations, residual: f64) {
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
