// SPDX-License-Identifier: MPL-2.0
//! The identity of a face from landmarks, in closed form: eos' `linear_shape_fitting.hpp`, after Aldrian & Smith, "Inverse
//! Rendering of Faces with a 3D Morphable Model", PAMI 2013.

use nalgebra::{DMatrix, DVector};

/// The variance of a landmark, px²: the default that the original takes from the paper.
const LANDMARK_VARIANCE: f64 = 3.0;

/// What landmarks say of a shape: `matrix`·coefficients = `vector`, before any prior. Sums of such equations are the
/// equations of all the landmarks together.
#[derive(Debug, Clone, PartialEq)]
pub struct NormalEquations {
    /// Aᵀ·Ω·A, components × components.
    pub matrix: DMatrix<f64>,
    /// −Aᵀ·Ω·b.
    pub vector: DVector<f64>,
}

impl NormalEquations {
    /// Equations that say nothing.
    pub fn none(components: usize) -> Self {
        Self {
            matrix: DMatrix::zeros(components, components),
            vector: DVector::zeros(components),
        }
    }

    /// The equations of observed coordinates: `slopes` has a column for each, how many px it moves with each coefficient,
    /// and `misses` how many px the face without any coefficient is short of it.
    pub fn observed(slopes: &DMatrix<f32>, misses: &DVector<f32>) -> Self {
        let weight = 1.0 / LANDMARK_VARIANCE;
        let matrix = slopes * slopes.transpose();
        let vector = slopes * misses;
        Self {
            matrix: matrix.map(|value| weight * f64::from(value)),
            vector: vector.map(|value| weight * f64::from(value)),
        }
    }

    /// The coefficients with the prior of weight `lambda` towards the mean face; `None` where there is no finite solution.
    pub fn solve(&self, lambda: f64) -> Option<Vec<f32>> {
        let mut matrix = self.matrix.clone();
        for i in 0..matrix.nrows() {
            matrix[(i, i)] += lambda;
        }
        let coefficients = matrix.cholesky()?.solve(&self.vector);
        let coefficients: Vec<f32> = coefficients.iter().map(|value| *value as f32).collect();
        let is_finite = coefficients.iter().all(|value| value.is_finite());
        is_finite.then_some(coefficients)
    }
}
