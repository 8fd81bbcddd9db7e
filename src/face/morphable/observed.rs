// SPDX-License-Identifier: MPL-2.0
//! What landmarks say of shape and expression under a given camera: both are linear in their coefficients.

use nalgebra::{DMatrix, DVector};

use super::expression::non_negative_least_squares;
use super::shape::NormalEquations;
use super::{FaceModel, Pose};
use crate::face::geometry::Point;

/// Points of the image and the vertices that they belong to.
#[derive(Debug, Default)]
pub struct Pairs {
    /// px.
    pub points: Vec<Point>,
    /// One for each point.
    pub vertices: Vec<usize>,
}

impl Pairs {
    /// Replaces what is there.
    pub fn set<'a>(
        &mut self,
        landmarks: &[Point],
        matches: impl Iterator<Item = &'a (usize, usize)>,
    ) {
        self.points.clear();
        self.vertices.clear();
        for (landmark, vertex) in matches {
            self.points.push(landmarks[*landmark]);
            self.vertices.push(*vertex);
        }
    }
}

/// The observed coordinates: rightward and downward of each point. Matrices have a column for each.
pub struct Observed {
    /// How many px a coordinate moves with each coefficient of the shape.
    shape: DMatrix<f32>,
    /// The same of the expressions.
    expression: DMatrix<f32>,
    /// How many px the mean face is short of it.
    misses: DVector<f32>,
}

impl Observed {
    /// What `pairs` say of the first `components` of the shape, and of the expressions.
    pub fn new(model: &FaceModel, pairs: &Pairs, pose: &Pose, components: usize) -> Self {
        let (shape, expressions) = (model.shape(), model.expressions());
        let coordinates = 2 * pairs.vertices.len();
        let mut moves = Vec::with_capacity(coordinates * components);
        let mut offsets = Vec::with_capacity(coordinates * expressions.len());
        let mut misses = Vec::with_capacity(coordinates);
        for (point, vertex) in std::iter::zip(&pairs.points, &pairs.vertices) {
            let seen = pose.project(shape.mean[*vertex]);
            misses.extend([point.x - seen.x, point.y - seen.y]);
            let [x, y, z] = [0, 1, 2].map(|axis| &shape.basis_row(*vertex, axis)[..components]);
            for [a, b, c] in pose.image_from_model() {
                let rows = std::iter::zip(x, std::iter::zip(y, z));
                moves.extend(rows.map(|(x, (y, z))| a * x + b * y + c * z));
                let each = expressions.iter().map(|e| e.offsets[*vertex]);
                offsets.extend(each.map(|[x, y, z]| a * x + b * y + c * z));
            }
        }
        Self {
            shape: DMatrix::from_vec(components, coordinates, moves),
            expression: DMatrix::from_vec(expressions.len(), coordinates, offsets),
            misses: DVector::from_vec(misses),
        }
    }

    /// What they say of the shape of a face with this expression: `fit_shape_to_landmarks_linear`.
    pub fn shape_equations(&self, expression: &[f32]) -> NormalEquations {
        NormalEquations::of_face(&self.shape, &self.misses_with(&self.expression, expression))
    }

    /// The expression of a face of this shape: `fit_blendshapes_to_landmarks_nnls`.
    pub fn expression(&self, shape: &[f32]) -> Option<Vec<f32>> {
        let misses = self.misses_with(&self.shape, shape);
        let gram = &self.expression * self.expression.transpose();
        let target = &self.expression * misses;
        let solved = non_negative_least_squares(&gram.cast(), &target.cast())?;
        Some(solved.iter().map(|value| *value as f32).collect())
    }

    /// How many px a face with these coefficients is short of what was observed.
    fn misses_with(&self, slopes: &DMatrix<f32>, coefficients: &[f32]) -> DVector<f32> {
        let coefficients = DVector::from_column_slice(coefficients);
        let mut misses = self.misses.clone();
        misses.gemv_tr(-1.0, slopes, &coefficients, 1.0);
        misses
    }
}
