// SPDX-License-Identifier: MPL-2.0
//! Linear equations that landmarks seen by a given camera yield for the coefficients of shape and
//! expression.

use nalgebra::{DMatrix, DVector};

use super::expression::non_negative_least_squares;
use super::shape::NormalEquations;
use super::{FaceModel, Pose};
use crate::geometry::Point;

/// Points of the image, each with a vertex.
#[derive(Debug, Default)]
pub struct Pairs {
    /// Positions in the image, px.
    pub points: Vec<Point>,
    /// One for each point.
    pub vertices: Vec<usize>,
}

impl Pairs {
    /// Replaces the pairs by `matches` of landmark and vertex.
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

/// The observed coordinates: x and y of each point. Matrices have a column for each coordinate.
pub struct Observed {
    /// Derivative of a coordinate by each coefficient of the shape, px.
    shape: DMatrix<f32>,
    /// Derivative of a coordinate by each coefficient of the expressions, px.
    expression: DMatrix<f32>,
    /// Observed coordinate minus the coordinate of the mean face, px.
    misses: DVector<f32>,
}

impl Observed {
    /// Observes `pairs` for the first `components` of the shape and for all expressions.
    pub fn new(model: &FaceModel, pairs: &Pairs, pose: &Pose, components: usize) -> Self {
        let (shape, expressions) = (model.shape(), model.expressions());
        let coordinates = 2 * pairs.vertices.len();
        let mut moves = DMatrix::zeros(components, coordinates);
        let mut offsets = DMatrix::zeros(expressions.len(), coordinates);
        let mut misses = Vec::with_capacity(coordinates);
        for (pair, (point, vertex)) in std::iter::zip(&pairs.points, &pairs.vertices).enumerate() {
            let seen = pose.project(shape.mean[*vertex]);
            misses.extend([point.x - seen.x, point.y - seen.y]);
            let basis = [0, 1, 2].map(|axis| &shape.basis_row(*vertex, axis)[..components]);
            for (axis, image_from_model) in pose.image_from_model().into_iter().enumerate() {
                let mut column = moves.column_mut(2 * pair + axis);
                combine(image_from_model, basis, column.as_mut_slice());
                let mut column = offsets.column_mut(2 * pair + axis);
                for (out, expression) in std::iter::zip(column.iter_mut(), expressions) {
                    let [a, b, c] = image_from_model;
                    let [x, y, z] = expression.offsets[*vertex];
                    *out = a * x + b * y + c * z;
                }
            }
        }
        Self {
            shape: moves,
            expression: offsets,
            misses: DVector::from_vec(misses),
        }
    }

    /// Equations of the shape of a face with this expression: `fit_shape_to_landmarks_linear`.
    pub fn shape_equations(&self, expression: &[f32]) -> NormalEquations {
        NormalEquations::of_face(&self.shape, &self.misses_with(&self.expression, expression))
    }

    /// Equations of the shape that do not depend on pose and expression:
    /// [`Observed::shape_equations`] without the part that another pose, or other coefficients of
    /// the present expressions, would explain as well. `moves` has a column for each parameter of
    /// the camera.
    ///
    /// Only such equations can be added over many frames: pose and expression that were found for a
    /// wrong shape would confirm that shape. (Golub & Pereyra, "The Differentiation of
    /// Pseudo-Inverses and Nonlinear Least Squares Problems Whose Variables Separate", 1973.)
    pub fn independent_shape_equations(
        &self,
        expression: &[f32],
        moves: &DMatrix<f32>,
    ) -> NormalEquations {
        let strengths = expression.iter().enumerate();
        let shown = strengths.filter_map(|(i, strength)| (*strength > 0.0).then_some(i));
        let shown = self.expression.select_rows(&shown.collect::<Vec<_>>());
        let camera = moves.ncols();
        let mut others = moves
            .clone()
            .resize_horizontally(camera + shown.nrows(), 0.0);
        others
            .columns_mut(camera, shown.nrows())
            .tr_copy_from(&shown);
        let others = others.qr().q();
        let misses = self.misses_with(&self.expression, expression);
        let misses = &misses - &others * others.tr_mul(&misses);
        let slopes = &self.shape - (&self.shape * &others) * others.transpose();
        NormalEquations::of_face(&slopes, &misses)
    }

    /// The expression of a face with this shape: `fit_blendshapes_to_landmarks_nnls`.
    pub fn expression(&self, shape: &[f32]) -> Option<Vec<f32>> {
        let misses = self.misses_with(&self.shape, shape);
        let gram = &self.expression * self.expression.transpose();
        let target = &self.expression * misses;
        let solved = non_negative_least_squares(&gram.cast(), &target.cast())?;
        Some(solved.iter().map(|value| *value as f32).collect())
    }

    /// Observed coordinates minus the coordinates of a face with these coefficients, px.
    fn misses_with(&self, slopes: &DMatrix<f32>, coefficients: &[f32]) -> DVector<f32> {
        let coefficients = DVector::from_column_slice(coefficients);
        let mut misses = self.misses.clone();
        misses.gemv_tr(-1.0, slopes, &coefficients, 1.0);
        misses
    }
}

/// a·x + b·y + c·z.
fn combine([a, b, c]: [f32; 3], [x, y, z]: [&[f32]; 3], out: &mut [f32]) {
    for (out, (x, (y, z))) in std::iter::zip(out, std::iter::zip(x, std::iter::zip(y, z))) {
        *out = a * x + b * y + c * z;
    }
}
