// SPDX-License-Identifier: MPL-2.0
//! The whole fit: pose, shape, expression and outline in turns, as eos' `fit_shape_and_pose`.

use std::sync::Arc;

use super::identity::{Known, Past};
use super::shape::NormalEquations;
use super::turns::Turns;
use super::{FaceModel, Fit, landmarks};
use crate::face::geometry::Point;
use crate::face::observation::FitFailure;

/// Turns with the shape of a face that is known from the frame before, after one without it.
const TURNS_OF_A_KNOWN_FACE: usize = 1;

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
    /// frame is fitted by itself.
    ///
    /// # Errors
    /// As [`Fitter::fit`].
    pub fn follow(&mut self, landmarks: &[Point], past: &mut Past) -> Result<Fit, FitFailure> {
        landmarks::check(landmarks, self.model.mapping())?;
        match &mut past.0 {
            Some(known) => self.fit_known(landmarks, known),
            None => {
                let (fit, equations) = self.fit_unknown(landmarks)?;
                past.0 = Some(Known::first(&fit, equations));
                Ok(fit)
            }
        }
    }

    /// Also yields what the landmarks say of the shape.
    fn fit_unknown(&mut self, landmarks: &[Point]) -> Result<(Fit, NormalEquations), FitFailure> {
        let Self { model, turns, .. } = self;
        let pose = turns.start(model, landmarks)?;
        let (mut pose, mut equations) = turns.turn(model, landmarks, &pose, None)?;
        for _ in 1..self.iterations {
            (pose, equations) = turns.turn(model, landmarks, &pose, None)?;
        }
        let fit = turns.finish(model, landmarks, pose)?;
        Ok((fit, equations))
    }

    fn fit_known(&mut self, landmarks: &[Point], known: &mut Known) -> Result<Fit, FitFailure> {
        let Self { model, turns, .. } = self;
        let pose = turns.start_from(model, landmarks, &known.shape, &known.expression)?;
        let pose = turns.turn_of_shape(model, landmarks, &pose)?;
        let residual = f64::from(turns.residual(model, landmarks, &pose)) / pose.scale;
        let weight = known.weight(residual);
        let before = known.faded();
        let (mut pose, mut equations) =
            turns.turn(model, landmarks, &pose, Some((&before, weight)))?;
        for _ in 1..TURNS_OF_A_KNOWN_FACE {
            (pose, equations) = turns.turn(model, landmarks, &pose, Some((&before, weight)))?;
        }
        let fit = turns.finish(model, landmarks, pose)?;
        known.add(&fit, &equations, residual);
        Ok(fit)
    }
}
