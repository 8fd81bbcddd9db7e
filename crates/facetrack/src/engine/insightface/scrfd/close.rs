// SPDX-License-Identifier: MPL-2.0
//! A detector whose frames are searched in inputs of two sizes, on a GPU. cuDNN prepares the
//! convolutions of a session whenever the size of its input changes, which takes a second and more.
//! So each size has a session of its own.

use ndarray::{ArrayD, ArrayViewD};

use super::CLOSE;
use crate::model::{Model, ModelError, TensorSpec};

/// The sessions of a detector.
pub(crate) struct TwoSizes {
    /// Runs with inputs of any other size than [`CLOSE`] px.
    pub usual: Box<dyn Model>,
    /// Runs with inputs of [`CLOSE`] px.
    pub close: Box<dyn Model>,
}

impl Model for TwoSizes {
    fn inputs(&self) -> &[TensorSpec] {
        self.usual.inputs()
    }

    fn outputs(&self) -> &[TensorSpec] {
        self.usual.outputs()
    }

    fn run(&self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        let is_close = |input: &ArrayViewD<'_, f32>| input.shape().ends_with(&[CLOSE, CLOSE]);
        if inputs.iter().all(is_close) {
            self.close.run(inputs)
        } else {
            self.usual.run(inputs)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::insightface::fake::Fake;
    use ndarray::IxDyn;

    #[test]
    fn each_session_runs_with_inputs_of_one_size() {
        let session = || Fake::new(&[None; 4], &[&[None]], |_| Vec::new());
        let (usual, close) = (session(), session());
        let runs = [usual.runs.clone(), close.runs.clone()];
        let detector = TwoSizes {
            usual: Box::new(usual),
            close: Box::new(close),
        };
        for side in [128, 640, 128, 640] {
            let input = ArrayD::zeros(IxDyn(&[1, 3, side, side]));
            detector.run(&[input.view()]).unwrap();
        }
        let sides = runs.map(|runs| {
            let runs = runs.lock().unwrap();
            runs.iter().map(|shape| shape[2]).collect::<Vec<_>>()
        });
        assert_eq!(sides, [[640, 640], [128, 128]]);
    }
}
