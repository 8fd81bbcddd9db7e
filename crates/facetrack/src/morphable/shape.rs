// SPDX-License-Identifier: MPL-2.0
//! Computes the identity of a face from landmarks, in closed form: eos' `linear_shape_fitting.hpp`,
//! after Aldrian & Smith, "Inverse Rendering of Faces with a 3D Morphable Model", PAMI 2013.

use nalgebra::{DMatrix, DVector};

/// Variance of a landmark, px²: the original's default, from the paper.
const LANDMARK_VARIANCE: f32 = 3.0;

/// Normal equations of the shape, without prior: `matrix`·coefficients = `vector`. Equations of
/// several faces can be added: `fit_shape_to_landmarks_linear_multi`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NormalEquations {
    /// Aᵀ·Ω·A, components × components.
    pub matrix: DMatrix<f64>,
    /// −Aᵀ·Ω·b.
    pub vector: DVector<f64>,
    /// Number of faces in the sum.
    pub faces: f64,
}

impl NormalEquations {
    /// Equations of one face. `slopes` has a column for each observed coordinate, with its
    /// derivatives by the coefficients; `misses` has the observed coordinates minus the coordinates
    /// of the mean face. Both are in px.
    pub(super) fn of_face(slopes: &DMatrix<f32>, misses: &DVector<f32>) -> Self {
        let weighted = slopes / LANDMARK_VARIANCE;
        Self {
            matrix: (&weighted * slopes.transpose()).cast(),
            vector: (&weighted * misses).cast(),
            faces: 1.0,
        }
    }

    /// Multiplies the equations by `part`.
    pub(super) fn fade(&mut self, part: f64) {
        self.matrix *= part;
        self.vector *= part;
        self.faces *= part;
    }

    /// Adds `weight` times `others`.
    pub(super) fn add(&mut self, others: &Self, weight: f64) {
        self.matrix
            .zip_apply(&others.matrix, |sum, value| *sum += weight * value);
        self.vector.axpy(weight, &others.vector, 1.0);
        self.faces += weight * others.faces;
    }

    /// The coefficients, with a prior of weight `lambda` per face towards the mean face; `None` if
    /// there is no finite solution.
    pub(super) fn solve(&self, lambda: f64) -> Option<Vec<f32>> {
        let mut matrix = self.matrix.clone();
        for i in 0..matrix.nrows() {
            matrix[(i, i)] += lambda * self.faces;
        }
        let coefficients = matrix.cholesky()?.solve(&self.vector);
        let coefficients: Vec<f32> = coefficients.iter().map(|value| *value as f32).collect();
        let is_finite = coefficients.iter().all(|value| value.is_finite());
        is_finite.then_some(coefficients)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::synthetic::Noise;
    use super::*;

    fn face(seed: u64) -> NormalEquations {
        let mut noise = Noise(seed);
        let slopes = DMatrix::from_vec(4, 30, noise.take(120));
        NormalEquations::of_face(&slopes, &DVector::from_vec(noise.take(30)))
    }

    #[test]
    fn coefficients_minimise_error_and_prior_together() {
        // Two coordinates of variance 3 that move 2 and 1 px with the one coefficient, and a prior
        // of weight 5: (2·6 + 1·3) / 3 = (5 + (4 + 1) / 3)·coefficient.
        let slopes = DMatrix::from_row_slice(1, 2, &[2.0, 1.0]);
        let equations = NormalEquations::of_face(&slopes, &DVector::from_vec(vec![6.0, 3.0]));
        let [coefficient] = equations.solve(5.0).unwrap()[..] else {
            panic!("one coefficient");
        };
        assert!((coefficient - 0.75).abs() < 1e-6);
    }

    #[test]
    fn the_same_face_twice_is_that_face() {
        let once = face(1);
        let mut twice = once.clone();
        twice.add(&once, 1.0);
        twice.fade(0.3);
        assert!((twice.faces - 0.6).abs() < 1e-12);
        for (a, b) in std::iter::zip(once.solve(30.0).unwrap(), twice.solve(30.0).unwrap()) {
            assert!((a - b).abs() < 1e-6);
        }
    }

    #[test]
    fn a_face_of_no_weight_says_nothing() {
        let mut equations = face(1);
        equations.add(&face(2), 0.0);
        assert_eq!(equations, face(1));
    }

    #[test]
    fn what_is_not_finite_has_no_solution() {
        let mut equations = face(1);
        equations.vector[2] = f64::NAN;
        assert_eq!(equations.solve(30.0), None);
        equations.matrix[(0, 0)] = f64::NAN;
        assert_eq!(equations.solve(30.0), None);
        assert_eq!(face(1).solve(f64::NAN), None);
    }
}
