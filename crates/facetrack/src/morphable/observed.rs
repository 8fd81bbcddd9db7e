// SPDX-License-Identifier: MPL-2.0
//! Linear equations for the coefficients of shape and expression, from landmarks that a given
//! camera sees.

use nalgebra::{DMatrix, DVector};

use super::expression::non_negative_least_squares;
use super::shape::NormalEquations;
use super::{FaceModel, Pose};
use crate::geometry::Point;

/// A point of the image, px, and a vertex.
pub(super) type Pair = (Point, usize);

/// The observed coordinates: x and y of each point. Matrices have a column for each coordinate.
pub(super) struct Observed {
    /// Derivative of a coordinate by each coefficient of the shape, px.
    shape: DMatrix<f32>,
    /// Derivative of a coordinate by each coefficient of the expressions, px.
    expression: DMatrix<f32>,
    /// Observed coordinate minus the coordinate of the mean face, px.
    misses: DVector<f32>,
}

impl Observed {
    /// Observes `pairs` for the first `components` of the shape and for all expressions.
    pub(super) fn new(model: &FaceModel, pairs: &[Pair], pose: &Pose, components: usize) -> Self {
        let (shape, expressions) = (model.shape(), model.expressions());
        let coordinates = 2 * pairs.len();
        let mut moves = Vec::with_capacity(components * coordinates);
        let mut offsets = Vec::with_capacity(expressions.len() * coordinates);
        let mut misses = Vec::with_capacity(coordinates);
        for (point, vertex) in pairs {
            let seen = pose.project(shape.mean[*vertex]);
            misses.extend([point.x - seen.x, point.y - seen.y]);
            let [x, y, z] = [0, 1, 2].map(|axis| &shape.basis_row(*vertex, axis)[..components]);
            for [a, b, c] in pose.image_from_model() {
                let basis = std::iter::zip(x, std::iter::zip(y, z));
                moves.extend(basis.map(|(x, (y, z))| a * x + b * y + c * z));
                let of_vertex = expressions.iter().map(|own| own.offsets[*vertex]);
                offsets.extend(of_vertex.map(|[x, y, z]| a * x + b * y + c * z));
            }
        }
        Self {
            shape: DMatrix::from_vec(components, coordinates, moves),
            expression: DMatrix::from_vec(expressions.len(), coordinates, offsets),
            misses: DVector::from_vec(misses),
        }
    }

    /// Equations of the shape of a face with this expression: `fit_shape_to_landmarks_linear`.
    pub(super) fn shape_equations(&self, expression: &[f32]) -> NormalEquations {
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
    pub(super) fn independent_shape_equations(
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
    pub(super) fn expression(&self, shape: &[f32]) -> Option<Vec<f32>> {
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
