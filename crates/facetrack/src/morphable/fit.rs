// SPDX-License-Identifier: MPL-2.0
//! The whole fit: pose, shape, expression and outline in turns, as eos' `fit_shape_and_pose`.

use std::sync::Arc;

use super::identity::{Known, Past};
use super::observed::Observed;
use super::turns::Turns;
use super::{FaceModel, Fit, landmarks};
use crate::geometry::Point;
use crate::observation::FitFailure;

/// How a model is fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitSettings {
    /// Turns, 1 at least: `num_iterations`.
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
    iterations: usize,
    turns: Turns,
}

impl Fitter {
    /// Fits `model`.
    pub fn new(model: Arc<FaceModel>, settings: FitSettings) -> Self {
        Self {
            iterations: settings.iterations.max(1),
            turns: Turns::new(&model, &settings),
            model,
        }
    }

    /// What is fitted.
    pub fn model(&self) -> &Arc<FaceModel> {
        &self.model
    }

    /// The face with these [`LANDMARKS`](super::LANDMARKS), px, by itself, as eos does it.
    ///
    /// # Errors
    /// [`FitFailure`] for landmarks that are no face.
    pub fn fit(&mut self, landmarks: &[Point]) -> Result<Fit, FitFailure> {
        landmarks::check(landmarks, self.model.mapping())?;
        self.fit_unknown(landmarks).map(|(fit, _)| fit)
    }

    /// The next frame of a face in a video: goes on from `past`, and adds to it. A failure leaves `past` as it was. The first
    /// frame is fitted by itself, as is one whose past is of another model.
    ///
    /// # Errors
    /// As [`Fitter::fit`].
    pub fn follow(&mut self, landmarks: &[Point], past: &mut Past) -> Result<Fit, FitFailure> {
        landmarks::check(landmarks, self.model.mapping())?;
        if let Some(known) = past.known_to(&self.model, self.turns.fitted()) {
            return self.fit_known(landmarks, known);
        }
        let (fit, observed) = self.fit_unknown(landmarks)?;
        let equations = self.turns.shape_equations(&observed, &fit.pose);
        past.0 = Some(Known::first(&fit, equations));
        Ok(fit)
    }

    fn fit_unknown(&mut self, landmarks: &[Point]) -> Result<(Fit, Observed), FitFailure> {
        let Self { model, turns, .. } = self;
        let pose = turns.start(model, landmarks)?;
        let (mut pose, mut observed) = turns.turn(model, landmarks, &pose)?;
        for _ in 1..self.iterations {
            (pose, observed) = turns.turn(model, landmarks, &pose)?;
        }
        let fit = turns.finish(model, landmarks, pose)?;
        Ok((fit, observed))
    }

    /// One turn tells how well the landmarks fit the face so far, a second what they say of its shape.
    fn fit_known(&mut self, landmarks: &[Point], known: &mut Known) -> Result<Fit, FitFailure> {
        let Self { model, turns, .. } = self;
        let pose = turns.start_from(model, landmarks, &known.shape, &known.expression)?;
        let pose = turns.turn_without_shape(model, landmarks, &pose)?;
        let residual = f64::from(turns.residual(model, landmarks, &pose)) / pose.scale;
        let before = (known.faded(), known.weight(residual));
        let (pose, equations) = turns.turn_of_known(model, landmarks, &pose, before)?;
        let fit = turns.finish(model, landmarks, pose)?;
        known.add(&fit, equations, residual);
        Ok(fit)
    }
}

#[cfg(test)]
mod tests;
