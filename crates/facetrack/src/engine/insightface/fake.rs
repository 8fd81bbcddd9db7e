// SPDX-License-Identifier: MPL-2.0
//! Networks by script, for tests.

use std::sync::{Arc, Mutex};

use ndarray::{ArrayD, ArrayViewD, IxDyn};

use super::Module;
use super::opened::Opened;
use crate::model::{Model, ModelError, ModelFile, TensorSpec};
use crate::sample::ValueRange;
use facetrack_assets::lock::lock;

/// Yields outputs for an input.
type Script = Box<dyn FnMut(&ArrayViewD<'_, f32>) -> Vec<ArrayD<f32>> + Send>;

/// Shapes of the inputs of each run.
pub(super) type Runs = Arc<Mutex<Vec<Vec<usize>>>>;

pub(super) struct Fake {
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
    script: Mutex<Script>,
    pub runs: Runs,
}

pub(super) fn spec(shape: &[Option<usize>]) -> TensorSpec {
    TensorSpec {
        name: String::new(),
        shape: shape.to_vec(),
    }
}

impl Fake {
    pub(super) fn new(
        input: &[Option<usize>],
        outputs: &[&[Option<usize>]],
        script: impl FnMut(&ArrayViewD<'_, f32>) -> Vec<ArrayD<f32>> + Send + 'static,
    ) -> Self {
        Self {
            inputs: vec![spec(input)],
            outputs: outputs.iter().map(|shape| spec(shape)).collect(),
            script: Mutex::new(Box::new(script)),
            runs: Runs::default(),
        }
    }

    /// A network that says `answer` of the pixels of each face.
    pub(super) fn of_faces(
        batch: Option<usize>,
        side: usize,
        values: usize,
        answer: impl Fn(&[f32]) -> Vec<f32> + Send + 'static,
    ) -> Self {
        let input = [batch, Some(3), Some(side), Some(side)];
        Self::new(&input, &[&[Some(1), Some(values)]], move |input| {
            let faces = input.shape()[0];
            let pixels: Vec<f32> = input.iter().copied().collect();
            let rows = pixels.chunks(3 * side * side).flat_map(&answer);
            vec![ArrayD::from_shape_vec(IxDyn(&[faces, values]), rows.collect()).unwrap()]
        })
    }

    pub(super) fn opened(self, module: Module) -> Opened {
        Opened {
            module,
            model: Box::new(self),
            rest: None,
            boxes: None,
            range: ValueRange::BYTE,
            path: "fake.onnx".into(),
            file: ModelFile {
                name: format!("{}.onnx", module.name()),
                sha256: "00".repeat(32),
            },
        }
    }
}

impl Model for Fake {
    fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn run(&self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        self.runs.lock().unwrap().push(inputs[0].shape().to_vec());
        Ok(lock(&self.script)(&inputs[0]))
    }
}
