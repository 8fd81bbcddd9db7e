// SPDX-License-Identifier: MPL-2.0
//! The whole fit: pose, shape, expression and outline in turns, as eos' `fit_shape_and_pose`.

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};

use super::correspondence::Outline;
use super::expression::non_negative_least_squares;
use super::identity::Past;
use super::mesh::{Mesh, Sampler};
use super::shape::NormalEquations;
use super::{FaceModel, LANDMARKS, Pose};
use crate::face::geometry::Point;
use crate::face::observation::{FitFailure, LandmarkScheme, Landmarks};

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
    sampler: Sampler,
    work: Work,
}

/// What a fit works on.
#[derive(Default)]
struct Work {
    mesh: Mesh,
    outline: Outline,
    /// Of the shape, then of the expressions.
    coefficients: Vec<f32>,
    points: Vec<Point>,
    vertices: Vec<usize>,
    positions: Vec<[f32; 3]>,
}

impl Fitter {
    /// Fits `model`.
    pub fn new(model: Arc<FaceModel>, settings: FitSettings) -> Self {
        Self {
            sampler: Sampler::new(&model),
            model,
            settings,
            work: Work::default(),
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
        if landmarks.len() != LANDMARKS {
            return Err(FitFailure::NoLandmarks);
        }
        let components = self.model.shape().components;
        let work = &mut self.work;
        work.coefficients.clear();
        work.coefficients
            .resize(components + self.model.expressions().len(), 0.0);
        self.sampler.sample(&work.coefficients, &mut work.mesh);
        self.take_fixed(landmarks);
        let mut pose = self.pose()?;
        self.fit_expression(&pose)?;
        for _ in 0..self.settings.iterations {
            self.sampler
                .sample(&self.work.coefficients, &mut self.work.mesh);
            let work = &mut self.work;
            work.outline.find(&self.model, landmarks, &work.mesh, &pose);
            self.take_fixed(landmarks);
            self.take_outline(landmarks);
            pose = self.pose()?;
            self.fit_shape(&pose)?;
            self.fit_expression(&pose)?;
        }
        self.sampler
            .sample(&self.work.coefficients, &mut self.work.mesh);
        Ok(self.result(landmarks, pose))
    }

    fn take_fixed(&mut self, landmarks: &[Point]) {
        let work = &mut self.work;
        work.points.clear();
        work.vertices.clear();
        for (landmark, vertex) in &self.model.mapping().vertices {
            work.points.push(landmarks[*landmark]);
            work.vertices.push(*vertex);
        }
    }

    fn take_outline(&mut self, landmarks: &[Point]) {
        let work = &mut self.work;
        for (landmark, vertex) in work.outline.facing.iter().chain(&work.outline.occluding) {
            work.points.push(landmarks[*landmark]);
            work.vertices.push(*vertex);
        }
    }

    fn pose(&mut self) -> Result<Pose, FitFailure> {
        let work = &mut self.work;
        work.positions.clear();
        work.positions
            .extend(work.vertices.iter().map(|v| work.mesh.vertex(*v)));
        Pose::estimate(&work.points, &work.positions)
    }

    fn slopes(&self, pose: &Pose) -> DMatrix<f32> {
        let shape = self.model.shape();
        let rows = [0, 1].map(|axis| {
            let sign = if axis == 0 { 1.0 } else { -1.0 };
            [0, 1, 2].map(|c| (sign * pose.scale * pose.rotation[(axis, c)]) as f32)
        });
        let mut all = Vec::with_capacity(2 * self.work.vertices.len() * shape.components);
        for vertex in &self.work.vertices {
            let [x, y, z] = [0, 1, 2].map(|axis| shape.basis_row(*vertex, axis));
            for row in &rows {
                let values = std::iter::zip(x, std::iter::zip(y, z));
                all.extend(values.map(|(x, (y, z))| row[0] * x + row[1] * y + row[2] * z));
            }
        }
        DMatrix::from_vec(shape.components, 2 * self.work.vertices.len(), all)
    }

    fn fit_shape(&mut self, pose: &Pose) -> Result<(), FitFailure> {
        let slopes = self.slopes(pose);
        let components = self.model.shape().components;
        let expression = &self.work.coefficients[components..];
        let mut misses = Vec::with_capacity(2 * self.work.points.len());
        for (point, vertex) in std::iter::zip(&self.work.points, &self.work.vertices) {
            let mut position = self.model.shape().mean[*vertex];
            for (e, c) in std::iter::zip(self.model.expressions(), expression) {
                for axis in 0..3 {
                    position[axis] += c * e.offsets[*vertex][axis];
                }
            }
            let seen = pose.project(position);
            misses.extend([point.x - seen.x, point.y - seen.y]);
        }
        let equations = NormalEquations::observed(&slopes, &DVector::from_vec(misses));
        let solved = equations.solve(f64::from(self.settings.lambda));
        let solved = solved.ok_or(FitFailure::Unsolvable)?;
        self.work.coefficients[..components].copy_from_slice(&solved);
        Ok(())
    }

    fn fit_expression(&mut self, pose: &Pose) -> Result<(), FitFailure> {
        let components = self.model.shape().components;
        let count = self.model.expressions().len();
        let mut gram = DMatrix::zeros(count, count);
        let mut target = DVector::zeros(count);
        let mut slope = [DVector::zeros(count), DVector::zeros(count)];
        for (point, vertex) in std::iter::zip(&self.work.points, &self.work.vertices) {
            let mut position = self.model.shape().mean[*vertex];
            for axis in 0..3 {
                let row = self.model.shape().basis_row(*vertex, axis);
                position[axis] += std::iter::zip(row, &self.work.coefficients[..components])
                    .map(|(a, b)| a * b)
                    .sum::<f32>();
            }
            let seen = pose.project(position);
            let misses = [point.x - seen.x, point.y - seen.y];
            for axis in 0..2 {
                let sign = if axis == 0 { 1.0 } else { -1.0 };
                for (i, e) in self.model.expressions().iter().enumerate() {
                    let o = e.offsets[*vertex];
                    slope[axis][i] = (0..3)
                        .map(|c| sign * pose.scale * pose.rotation[(axis, c)] * f64::from(o[c]))
                        .sum::<f64>();
                }
                gram += &slope[axis] * slope[axis].transpose();
                target += &slope[axis] * f64::from(misses[axis]);
            }
        }
        let solved = non_negative_least_squares(&gram, &target).ok_or(FitFailure::Unsolvable)?;
        for (c, v) in std::iter::zip(&mut self.work.coefficients[components..], solved.iter()) {
            *c = *v as f32;
        }
        Ok(())
    }

    fn result(&self, landmarks: &[Point], pose: Pose) -> Fit {
        let components = self.model.shape().components;
        let mesh = &self.work.mesh;
        let vertices: Vec<_> = (0..self.model.shape().mean.len())
            .map(|v| mesh.vertex(v))
            .collect();
        let mapping = &self.model.mapping().vertices;
        let residual = mapping
            .iter()
            .map(|(l, v)| landmarks[*l].distance(pose.project(vertices[*v])))
            .sum::<f32>()
            / mapping.len() as f32;
        Fit {
            pose,
            shape: self.work.coefficients[..components].to_vec(),
            expression: self.work.coefficients[components..].to_vec(),
            residual,
            contour: self.work.outline.facing.clone(),
            vertices,
        }
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
    /// Landmarks of the outline and the vertices that they were matched with, in the order of the landmarks.
    pub contour: Vec<(usize, usize)>,
    /// Every vertex, in the model's space and unit.
    pub vertices: Vec<[f32; 3]>,
}

impl Fit {
    /// The 68 landmarks of the fitted mesh, px: [`LandmarkScheme::Ibug68`](crate::face::observation::LandmarkScheme).
    pub fn landmarks(&self, _model: &FaceModel) -> Landmarks {
        Landmarks::new(LandmarkScheme::Ibug68, Vec::new())
    }
}
