// SPDX-License-Identifier: MPL-2.0
//! A network with one input that is filled in place.

use ndarray::{ArrayD, IxDyn};

use crate::model::{Model, ModelError};
use crate::sample::ValueRange;

/// What red, green and blue of 0…1 are normalised with: `mean` and `std` in `Tracker`, which are ImageNet's.
pub const RANGE: ValueRange = ValueRange::normalized([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// The network.
pub struct Network {
    model: Box<dyn Model>,
    input: ArrayD<f32>,
}

impl Network {
    /// The network that runs `model` on an input of the shape `input`.
    pub fn new(model: Box<dyn Model>, input: &[usize]) -> Self {
        Self {
            model,
            input: ArrayD::zeros(IxDyn(input)),
        }
    }

    /// The input's elements, for the next run.
    pub fn input(&mut self) -> &mut [f32] {
        self.input.as_slice_mut().unwrap_or_default()
    }

    /// Runs the network on its input.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn run(&mut self) -> Result<Vec<ArrayD<f32>>, ModelError> {
        self.model.run(&[self.input.view()])
    }
}

/// The elements of an output; none where it is missing.
pub fn output(outputs: &[ArrayD<f32>], index: usize) -> &[f32] {
    outputs
        .get(index)
        .and_then(|tensor| tensor.as_slice())
        .unwrap_or_default()
}
