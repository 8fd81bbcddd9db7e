// SPDX-License-Identifier: MPL-2.0
//! The fit: pose, shape, expression and outline, each computed from the others in several
//! iterations, as in eos' `fit_shape_and_pose`.

use std::sync::Arc;

use nalgebra::DMatrix;
use smart_default::SmartDefault;

use super::correspondence::Outline;
use super::identity::{Known, Past};
use super::mesh::{Mesh, Sampler};
use super::observed::{Observed, Pair};
use super::shape::NormalEquations;
use super::{FaceModel, Fit, Pose, landmarks};
use crate::geometry::Point;
use crate::observation::FitFailure;

/// Settings of a fit. The defaults come from eos-py.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
pub struct FitSettings {
    /// Iterations; 0 means 1. `num_iterations` in eos.
    #[default(5)]
    pub iterations: usize,
    /// Number of shape components to fit, from the first on; `None` for all.
    /// `num_shape_coefficients_to_fit` in eos.
    pub shape_coefficients: Option<usize>,
    /// Weight of the mean face. `lambda_identity` in eos.
    #[default(30.0)]
    pub lambda: f32,
}

/// Fits a model to faces. Only working memory is kept from one face to the next.
pub struct Fitter {
    model: Arc<FaceModel>,
    settings: FitSettings,
    /// Number of shape components to fit, from the first on.
    fitted: usize,
    sampler: Sampler,
    mesh: Mesh,
    outline: Outline,
    /// Points of the landmarks, each with the vertex that it is matched with.
    pairs: Vec<Pair>,
    /// Coefficients of all components.
    shape: Vec<f32>,
    expression: Vec<f32>,
}

impl Fitter {
    /// Creates a fitter of `model`.
    pub fn new(model: Arc<FaceModel>, settings: FitSettings) -> Self {
        let components = model.shape().components;
        let fitted = settings.shape_coefficients.unwrap_or(components);
        Self {
            settings,
            fitted: fitted.min(components),
            sampler: Sampler::new(&model),
            mesh: Mesh::default(),
            outline: Outline::default(),
            pairs: Vec::new(),
            shape: Vec::new(),
            expression: Vec::new(),
            model,
        }
    }

    /// The model.
    pub fn model(&self) -> &Arc<FaceModel> {
        &self.model
    }

    /// Fits a single picture of a face, as eos does. `landmarks` are
    /// [`LANDMARKS`](super::LANDMARKS) points, px.
    ///
    /// # Errors
    /// Returns [`FitFailure`] if the landmarks cannot be a face's.
    pub fn fit(&mut self, landmarks: &[Point]) -> Result<Fit, FitFailure> {
        landmarks::check(landmarks, self.model.mapping())?;
        self.fit_unknown(landmarks).map(|(fit, _)| fit)
    }

    /// Fits the next frame of a face in a video, starting from `past`, and adds the result to
    /// `past`. If the fit fails, `past` is unchanged. The first frame, or a frame whose `past`
    /// comes from another model, is fitted as a single picture.
    ///
    /// # Errors
    /// Returns the errors of [`Fitter::fit`].
    pub fn follow(&mut self, landmarks: &[Point], past: &mut Past) -> Result<Fit, FitFailure> {
        landmarks::check(landmarks, self.model.mapping())?;
        if let Some(known) = past.known_to(&self.model, self.fitted) {
            return self.fit_known(landmarks, known);
        }
        let (fit, observed) = self.fit_unknown(landmarks)?;
        let equations = self.shape_equations(&observed, &fit.pose);
        past.0 = Some(Known::first(&fit, equations));
        Ok(fit)
    }

    fn fit_unknown(&mut self, landmarks: &[Point]) -> Result<(Fit, Observed), FitFailure> {
        let shape = vec![0.0; self.model.shape().components];
        let expression = vec![0.0; self.model.expressions().len()];
        let mut pose = self.start(landmarks, &shape, &expression)?;
        let mut observed = self.observed(&pose);
        self.fit_expression(&observed)?;
        for _ in 0..self.settings.iterations.max(1) {
            (pose, observed) = self.observe(landmarks, &pose)?;
            self.fit_shape(&observed.shape_equations(&self.expression))?;
            self.fit_expression(&observed)?;
        }
        Ok((self.finish(landmarks, pose)?, observed))
    }

    /// Fits a known face. The first iteration measures how well the landmarks match the face, and
    /// the second one updates its shape.
    fn fit_known(&mut self, landmarks: &[Point], known: &mut Known) -> Result<Fit, FitFailure> {
        let pose = self.start(landmarks, &known.shape, &known.expression)?;
        let (pose, observed) = self.observe(landmarks, &pose)?;
        self.fit_expression(&observed)?;
        let residual = f64::from(self.residual(landmarks, &pose)) / pose.scale;
        let (pose, observed) = self.observe(landmarks, &pose)?;
        let mut equations = known.faded();
        equations.add(
            &self.shape_equations(&observed, &pose),
            known.weight(residual),
        );
        self.fit_shape(&equations)?;
        self.fit_expression(&observed)?;
        let fit = self.finish(landmarks, pose)?;
        known.add(&fit, equations, residual);
        Ok(fit)
    }

    /// Starts from a face with these coefficients. Returns the pose that shows its vertices at the
    /// landmarks that have a vertex of their own.
    fn start(
        &mut self,
        landmarks: &[Point],
        shape: &[f32],
        expression: &[f32],
    ) -> Result<Pose, FitFailure> {
        self.shape = shape.to_vec();
        self.expression = expression.to_vec();
        self.sampler.sample(shape, expression, &mut self.mesh);
        let fixed = self.model.mapping().vertices.iter();
        self.pairs = fixed.map(paired(landmarks)).collect();
        self.pose()
    }

    /// Matches the outline as `pose` shows it, and computes the pose again.
    fn observe(
        &mut self,
        landmarks: &[Point],
        pose: &Pose,
    ) -> Result<(Pose, Observed), FitFailure> {
        self.outline.find(&self.model, landmarks, &self.mesh, pose);
        let fixed = self.model.mapping().vertices.iter();
        let matches = fixed.chain(self.outline.matches());
        self.pairs = matches.map(paired(landmarks)).collect();
        let pose = self.pose()?;
        Ok((pose, self.observed(&pose)))
    }

    fn observed(&self, pose: &Pose) -> Observed {
        Observed::new(&self.model, &self.pairs, pose, self.fitted)
    }

    fn pose(&self) -> Result<Pose, FitFailure> {
        let pairs = self.pairs.iter();
        let pairs = pairs.map(|(point, vertex)| (*point, self.mesh.vertex(*vertex)));
        let (points, vertices): (Vec<_>, Vec<_>) = pairs.unzip();
        Pose::estimate(&points, &vertices)
    }

    fn fit_shape(&mut self, equations: &NormalEquations) -> Result<(), FitFailure> {
        let solved = equations.solve(f64::from(self.settings.lambda));
        self.shape[..self.fitted].copy_from_slice(&solved.ok_or(FitFailure::Unsolvable)?);
        Ok(())
    }

    fn fit_expression(&mut self, observed: &Observed) -> Result<(), FitFailure> {
        let solved = observed.expression(&self.shape[..self.fitted]);
        self.expression = solved.ok_or(FitFailure::Unsolvable)?;
        self.sampler
            .sample(&self.shape, &self.expression, &mut self.mesh);
        Ok(())
    }

    /// Equations of the shape that can be added to the equations of other frames, from landmarks
    /// seen in `pose`.
    fn shape_equations(&self, observed: &Observed, pose: &Pose) -> NormalEquations {
        let pairs = self.pairs.iter();
        let rows = pairs.flat_map(|(_, vertex)| pose.derivatives(self.mesh.vertex(*vertex)));
        let moves = DMatrix::from_row_iterator(2 * self.pairs.len(), 6, rows.flatten());
        observed.independent_shape_equations(&self.expression, &moves)
    }

    /// Mean distance between the landmarks that have a vertex of their own and these vertices, px.
    fn residual(&self, landmarks: &[Point], pose: &Pose) -> f32 {
        let fixed = &self.model.mapping().vertices;
        let distance = |(landmark, vertex): &(usize, usize)| {
            landmarks[*landmark].distance(pose.project(self.mesh.vertex(*vertex)))
        };
        fixed.iter().map(distance).sum::<f32>() / fixed.len().max(1) as f32
    }

    /// Returns the current face, or an error if one of its values is beyond `f32`.
    fn finish(&self, landmarks: &[Point], pose: Pose) -> Result<Fit, FitFailure> {
        let vertices = 0..self.model.shape().mean.len();
        let fit = Fit {
            pose,
            shape: self.shape.clone(),
            expression: self.expression.clone(),
            residual: self.residual(landmarks, &pose),
            contour: self.outline.vertices(&self.model, landmarks),
            vertices: vertices.map(|vertex| self.mesh.vertex(vertex)).collect(),
        };
        Some(fit)
            .filter(Fit::is_finite)
            .ok_or(FitFailure::Unsolvable)
    }
}

/// Replaces the number of a landmark by its position.
fn paired(landmarks: &[Point]) -> impl Fn(&(usize, usize)) -> Pair {
    |(landmark, vertex)| (landmarks[*landmark], *vertex)
}

#[cfg(test)]
mod tests;
