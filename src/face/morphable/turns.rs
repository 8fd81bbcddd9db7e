// SPDX-License-Identifier: MPL-2.0
//! A face on its way to a fit: pose, shape and expression, each from the others, in turns.

use super::correspondence::Outline;
use super::mesh::{Mesh, Sampler};
use super::observed::{Observed, Pairs};
use super::shape::NormalEquations;
use super::{FaceModel, Fit, FitSettings, Pose};
use crate::face::geometry::Point;
use crate::face::observation::FitFailure;

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

    /// One turn from `pose` on with the shape as it is: the outline, pose and expression. Yields the pose, and what the
    /// landmarks say of the shape.
    pub fn turn_of_shape(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        pose: &Pose,
    ) -> Result<Pose, FitFailure> {
        let (pose, observed) = self.observe(model, landmarks, pose)?;
        self.fit_expression(&observed)?;
        Ok(pose)
    }

    /// One turn from `pose` on: the outline, pose, shape and expression. The shape comes from what the landmarks say, times
    /// `weight`, and from what is `known` of it. Yields the pose, and what the landmarks say.
    pub fn turn(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        pose: &Pose,
        known: Option<(&NormalEquations, f64)>,
    ) -> Result<(Pose, NormalEquations), FitFailure> {
        let (pose, observed) = self.observe(model, landmarks, pose)?;
        let seen = observed.shape_equations(&self.expression);
        let solved = match known {
            None => seen.solve(self.lambda),
            Some((known, weight)) => {
                let mut all = known.clone();
                all.add(&seen, weight);
                all.solve(self.lambda)
            }
        };
        let solved = solved.ok_or(FitFailure::Unsolvable)?;
        self.shape[..self.fitted].copy_from_slice(&solved);
        self.fit_expression(&observed)?;
        Ok((pose, seen))
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
