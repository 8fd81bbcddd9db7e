// SPDX-License-Identifier: MPL-2.0
//! A face on its way to a fit: pose, shape and expression, each from the others, in turns.

use nalgebra::DMatrix;

use super::correspondence::Outline;
use super::mesh::{Mesh, Sampler};
use super::observed::{Observed, Pairs};
use super::shape::NormalEquations;
use super::{FaceModel, Fit, FitSettings, Pose};
use crate::geometry::Point;
use crate::observation::FitFailure;

/// A face on its way, and memory to work in.
pub struct Turns {
    sampler: Sampler,
    mesh: Mesh,
    outline: Outline,
    pairs: Pairs,
    /// Coefficients of all components.
    shape: Vec<f32>,
    expression: Vec<f32>,
    /// Components that are fitted, the first ones.
    fitted: usize,
    lambda: f64,
}

impl Turns {
    /// Fits `model`.
    pub fn new(model: &FaceModel, settings: &FitSettings) -> Self {
        let components = model.shape().components;
        let fitted = settings.shape_coefficients.unwrap_or(components);
        Self {
            sampler: Sampler::new(model),
            mesh: Mesh::default(),
            outline: Outline::default(),
            pairs: Pairs::default(),
            shape: Vec::new(),
            expression: Vec::new(),
            fitted: fitted.min(components),
            lambda: f64::from(settings.lambda),
        }
    }

    /// Components that are fitted, the first ones.
    pub fn fitted(&self) -> usize {
        self.fitted
    }

    /// Starts from a face with these coefficients, which is turned to where the landmarks with a vertex of their own say.
    pub fn start_from(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        shape: &[f32],
        expression: &[f32],
    ) -> Result<Pose, FitFailure> {
        self.shape.clear();
        self.shape.extend_from_slice(shape);
        self.expression.clear();
        self.expression.extend_from_slice(expression);
        self.sampler.sample(shape, expression, &mut self.mesh);
        self.pairs.set(landmarks, model.mapping().vertices.iter());
        self.pose()
    }

    /// Starts from the mean face, with the expression that these landmarks say.
    pub fn start(&mut self, model: &FaceModel, landmarks: &[Point]) -> Result<Pose, FitFailure> {
        let (shape, expressions) = (model.shape().components, model.expressions().len());
        let (shape, expression) = (vec![0.0; shape], vec![0.0; expressions]);
        let pose = self.start_from(model, landmarks, &shape, &expression)?;
        self.fit_expression(&Observed::new(model, &self.pairs, &pose, self.fitted))?;
        Ok(pose)
    }

    /// One turn from `pose` on: the outline, pose, shape and expression. Yields the pose and what it came from.
    pub fn turn(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        pose: &Pose,
    ) -> Result<(Pose, Observed), FitFailure> {
        let (pose, observed) = self.observe(model, landmarks, pose)?;
        self.fit_shape(&observed.shape_equations(&self.expression))?;
        self.fit_expression(&observed)?;
        Ok((pose, observed))
    }

    /// The same with the shape as it is.
    pub fn turn_without_shape(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        pose: &Pose,
    ) -> Result<Pose, FitFailure> {
        let (pose, observed) = self.observe(model, landmarks, pose)?;
        self.fit_expression(&observed)?;
        Ok(pose)
    }

    /// The same with the shape that follows from `known` and from `weight` times what the landmarks say; it also yields the
    /// sum of these.
    pub fn turn_of_known(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        pose: &Pose,
        (mut known, weight): (NormalEquations, f64),
    ) -> Result<(Pose, NormalEquations), FitFailure> {
        let (pose, observed) = self.observe(model, landmarks, pose)?;
        known.add(&self.shape_equations(&observed, &pose), weight);
        self.fit_shape(&known)?;
        self.fit_expression(&observed)?;
        Ok((pose, known))
    }

    /// What landmarks that were seen under `pose` say of the shape, to be added to what those of other frames say.
    pub fn shape_equations(&self, observed: &Observed, pose: &Pose) -> NormalEquations {
        let vertices = self.pairs.vertices.iter();
        let rows = vertices.flat_map(|vertex| pose.derivatives(self.mesh.vertex(*vertex)));
        let moves = DMatrix::from_row_iterator(2 * self.pairs.vertices.len(), 6, rows.flatten());
        observed.shape_equations_alone(&self.expression, &moves)
    }

    /// Finds the outline and the pose.
    fn observe(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        pose: &Pose,
    ) -> Result<(Pose, Observed), FitFailure> {
        self.outline.find(model, landmarks, &self.mesh, pose);
        let fixed = model.mapping().vertices.iter();
        self.pairs
            .set(landmarks, fixed.chain(self.outline.matches()));
        let pose = self.pose()?;
        let observed = Observed::new(model, &self.pairs, &pose, self.fitted);
        Ok((pose, observed))
    }

    fn pose(&self) -> Result<Pose, FitFailure> {
        let vertices = self.pairs.vertices.iter();
        let vertices: Vec<_> = vertices.map(|vertex| self.mesh.vertex(*vertex)).collect();
        Pose::estimate(&self.pairs.points, &vertices)
    }

    fn fit_shape(&mut self, equations: &NormalEquations) -> Result<(), FitFailure> {
        let solved = equations.solve(self.lambda);
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

    /// Mean distance of the landmarks with a vertex of their own from that vertex, px.
    pub fn residual(&self, model: &FaceModel, landmarks: &[Point], pose: &Pose) -> f32 {
        let fixed = &model.mapping().vertices;
        let distance = |(landmark, vertex): &(usize, usize)| {
            landmarks[*landmark].distance(pose.project(self.mesh.vertex(*vertex)))
        };
        fixed.iter().map(distance).sum::<f32>() / fixed.len().max(1) as f32
    }

    /// The face as it is.
    ///
    /// # Errors
    /// [`FitFailure::Unsolvable`] where a figure is beyond `f32`.
    pub fn finish(
        &self,
        model: &FaceModel,
        landmarks: &[Point],
        pose: Pose,
    ) -> Result<Fit, FitFailure> {
        let vertices = 0..model.shape().mean.len();
        let fit = Fit {
            pose,
            shape: self.shape.clone(),
            expression: self.expression.clone(),
            residual: self.residual(model, landmarks, &pose),
            contour: self.outline.vertices(model, landmarks),
            vertices: vertices.map(|vertex| self.mesh.vertex(vertex)).collect(),
        };
        if fit.is_finite() {
            Ok(fit)
        } else {
            Err(FitFailure::Unsolvable)
        }
    }
}
