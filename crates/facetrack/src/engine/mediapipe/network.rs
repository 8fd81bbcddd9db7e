// SPDX-License-Identifier: MPL-2.0
//! A network whose tensors are known to be the engine's.

use std::path::Path;

use ndarray::{ArrayD, IxDyn};

use crate::model::{Model, ModelError};

/// Tensors that the engine needs of a network.
#[derive(Debug, Clone, Copy)]
pub struct Contract {
    /// What the network does, for messages.
    pub name: &'static str,
    /// Shape of the only input.
    pub input: &'static [usize],
    /// Elements of the first outputs; further ones are ignored.
    pub outputs: &'static [usize],
}

/// A network with one input, filled in place.
pub struct Network {
    contract: Contract,
    model: Box<dyn Model>,
    input: ArrayD<f32>,
}

/// What a run yields, as long as the contract says.
pub struct Outputs(Vec<ArrayD<f32>>);

impl Network {
    /// Checks the tensors of `model`, which was read from `path`, and runs it once, so that a model that can't run is
    /// found out here and the first frame is as fast as the others.
    ///
    /// # Errors
    /// [`ModelError::Tensors`] when it has other tensors, [`ModelError::Run`] when it does not run.
    pub fn new(model: Box<dyn Model>, contract: Contract, path: &Path) -> Result<Self, ModelError> {
        let mut network = Self {
            contract,
            model,
            input: ArrayD::zeros(IxDyn(contract.input)),
        };
        if !network.takes_the_input() {
            return Err(network.mismatch(path));
        }
        let outputs = network.run_unchecked()?;
        if !network.is_expected(&outputs) {
            return Err(network.mismatch(path));
        }
        Ok(network)
    }

    /// The input's elements, for the next run.
    pub fn input(&mut self) -> &mut [f32] {
        self.input.as_slice_mut().unwrap_or_default()
    }

    /// Runs the network on its input.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn run(&mut self) -> Result<Outputs, ModelError> {
        let outputs = self.run_unchecked()?;
        if self.is_expected(&outputs) {
            return Ok(Outputs(outputs));
        }
        Err(ModelError::Run {
            model: self.contract.name.to_owned(),
            reason: "an output changed its size".to_owned(),
        })
    }

    fn run_unchecked(&mut self) -> Result<Vec<ArrayD<f32>>, ModelError> {
        self.model.run(&[self.input.view()])
    }

    fn takes_the_input(&self) -> bool {
        matches!(self.model.inputs(), [input] if input.takes(self.contract.input))
    }

    fn is_expected(&self, outputs: &[ArrayD<f32>]) -> bool {
        let wanted = self.contract.outputs;
        outputs.len() >= wanted.len()
            && outputs
                .iter()
                .zip(wanted)
                .all(|(has, wants)| elements(has).len() == *wants)
    }

    fn mismatch(&self, path: &Path) -> ModelError {
        let Contract {
            name,
            input,
            outputs,
        } = self.contract;
        ModelError::Tensors {
            path: path.to_owned(),
            expected: format!("{name} ({input:?} to outputs of {outputs:?} elements)"),
            actual: format!("{:?} to {:?}", self.model.inputs(), self.model.outputs()),
        }
    }
}

impl Outputs {
    /// The elements of an output of the contract.
    pub fn get(&self, index: usize) -> &[f32] {
        self.0.get(index).map(elements).unwrap_or_default()
    }
}

/// Elements in order; none for a tensor that does not lie in order.
fn elements(tensor: &ArrayD<f32>) -> &[f32] {
    tensor.as_slice().unwrap_or_default()
}
