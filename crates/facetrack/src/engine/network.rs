// SPDX-License-Identifier: MPL-2.0
//! A network with one input, for engines.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::{ArrayD, Axis, IxDyn, Slice};

use super::last_search::LastSearch;
use crate::image::ImageView;
use crate::memory;
use crate::model::{Model, ModelError};
use crate::sample::{Crop, SampleError};

/// Tensors that an engine expects of a network.
#[derive(Debug, Clone, Default)]
pub struct Contract {
    /// Name of the network, for messages.
    pub name: &'static str,
    /// Shape of the only input.
    pub input: Vec<usize>,
    /// Number of elements of each of the first outputs. Further outputs are ignored.
    pub outputs: Vec<usize>,
}

/// A network whose input tensor is filled in place. A clone shares the network, but not the input.
#[derive(Clone)]
pub struct Network {
    model: Arc<dyn Model>,
    /// File that the network was read from, for messages.
    pub path: PathBuf,
    contract: Contract,
    input: ArrayD<f32>,
}

/// The outputs of the last search of a network.
pub(super) type LastRun = LastSearch<ArrayD<f32>, Outputs>;

/// The outputs of a run.
pub struct Outputs(pub Vec<ArrayD<f32>>);

impl Network {
    /// Wraps `model`, which was read from `path`, without checking it. It needs an input
    /// ([`Network::resize`]) before it runs.
    pub fn new(model: Box<dyn Model>, path: &Path) -> Self {
        Self {
            model: model.into(),
            path: path.to_owned(),
            contract: Contract::default(),
            input: ArrayD::default(IxDyn(&[0])),
        }
    }

    /// Returns the network with an input of zeros whose shape is from `contract`. Each run checks
    /// the outputs.
    ///
    /// # Errors
    /// Returns [`ModelError::Memory`].
    pub fn with(mut self, contract: Contract) -> Result<Self, ModelError> {
        self.resize(&contract.input)?;
        Ok(Self { contract, ..self })
    }

    /// Wraps `model`, which was read from `path`, checks its tensors, and runs it once on zeros. A
    /// network that cannot run is found here, and the first frame takes no longer than the others.
    ///
    /// # Errors
    /// Returns [`ModelError::Tensors`] if it has other tensors, [`ModelError::Run`] if it does not
    /// run.
    pub fn checked(
        model: Box<dyn Model>,
        path: &Path,
        contract: Contract,
    ) -> Result<Self, ModelError> {
        let network = Self::new(model, path).with(contract)?;
        if !takes(&*network.model, &network.contract.input) {
            return Err(network.other_tensors());
        }
        let outputs = network.model.run(&[network.input.view()])?;
        if !network.are_expected(&outputs) {
            return Err(network.other_tensors());
        }
        Ok(network)
    }

    /// Gives the input another shape. Its elements are 0 if the shape changes.
    ///
    /// # Errors
    /// Returns [`ModelError::Memory`].
    pub fn resize(&mut self, shape: &[usize]) -> Result<(), ModelError> {
        if self.input.shape() != shape {
            let length = shape.iter().product();
            let purpose = format_args!("the input of model {}", self.path.display());
            let zeros = memory::zeros(length, purpose)?;
            let input = ArrayD::from_shape_vec(IxDyn(shape), zeros);
            self.input = input.map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Shape of the input.
    pub fn shape(&self) -> &[usize] {
        self.input.shape()
    }

    /// Elements of the input, for the next run.
    pub fn input(&mut self) -> &mut [f32] {
        self.input.as_slice_mut().unwrap_or_default()
    }

    /// The input as a tensor, for [`LastSearch`].
    pub(super) fn tensor(&mut self) -> &mut ArrayD<f32> {
        &mut self.input
    }

    /// Fills the input with `crop` of `image`.
    ///
    /// # Errors
    /// Returns [`ModelError::Memory`], or [`ModelError::Run`] with another reason of
    /// [`Crop::sample`].
    pub fn show(&mut self, crop: &Crop, image: &ImageView<'_>) -> Result<(), ModelError> {
        match crop.sample(image, self.input()) {
            Ok(_) => Ok(()),
            Err(SampleError::Memory(error)) => Err(error.into()),
            Err(reason) => Err(self.failed(reason)),
        }
    }

    /// Runs the network on its input.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`], also if an output has another size than the contract says.
    pub fn run(&mut self) -> Result<Outputs, ModelError> {
        self.run_first(self.input.len_of(Axis(0)))
    }

    /// Runs the network on the first `count` items of its input.
    ///
    /// # Errors
    /// Returns the errors of [`Network::run`].
    pub fn run_first(&mut self, count: usize) -> Result<Outputs, ModelError> {
        let input = self.input.slice_axis(Axis(0), Slice::from(..count));
        let outputs = self.model.run(&[input])?;
        if self.are_expected(&outputs) {
            return Ok(Outputs(outputs));
        }
        Err(self.failed("an output changed its size"))
    }

    /// Checks that `outputs` are finite. Otherwise the network would silently measure nothing.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub fn check_numbers(&self, outputs: &[ArrayD<f32>]) -> Result<(), ModelError> {
        if outputs.iter().flatten().all(|value| value.is_finite()) {
            return Ok(());
        }
        Err(self.failed("its outputs contain NaN or infinite values"))
    }

    fn are_expected(&self, outputs: &[ArrayD<f32>]) -> bool {
        let expected = &self.contract.outputs;
        let mut pairs = outputs.iter().zip(expected);
        outputs.len() >= expected.len() && pairs.all(|(output, len)| elements(output).len() == *len)
    }

    fn other_tensors(&self) -> ModelError {
        let Contract { name, .. } = self.contract;
        let (input, outputs) = (&self.contract.input, &self.contract.outputs);
        let expected = format!("{name} ({input:?} to outputs of {outputs:?} elements)");
        other_tensors(&*self.model, &self.path, expected)
    }

    /// The error of a run that fails for `reason`.
    pub fn failed(&self, reason: impl fmt::Display) -> ModelError {
        ModelError::Run {
            model: self.path.display().to_string(),
            reason: reason.to_string(),
        }
    }

    /// The error of outputs that have other shapes than those `expected`.
    pub fn other_outputs(&self, outputs: &Outputs, expected: String) -> ModelError {
        ModelError::Tensors {
            path: self.path.clone(),
            expected,
            actual: format!("{:?}", outputs.shapes()),
        }
    }
}

impl Outputs {
    /// Elements of an output, in order; none for an output that the network does not have.
    pub fn get(&self, index: usize) -> &[f32] {
        self.0.get(index).map(elements).unwrap_or_default()
    }

    /// Shapes of all outputs.
    pub fn shapes(&self) -> Vec<&[usize]> {
        self.0.iter().map(ArrayD::shape).collect()
    }
}

/// Returns true if the only input of `model` can have the shape `wanted`.
pub(super) fn takes(model: &dyn Model, wanted: &[usize]) -> bool {
    matches!(model.inputs(), [input] if input.takes(wanted))
}

/// The error of a model, read from `path`, that has other tensors than those `expected`.
pub(super) fn other_tensors(model: &dyn Model, path: &Path, expected: String) -> ModelError {
    ModelError::Tensors {
        path: path.to_owned(),
        expected,
        actual: format!("{:?} to {:?}", model.inputs(), model.outputs()),
    }
}

/// Elements in order; none for a tensor that is not contiguous.
fn elements(tensor: &ArrayD<f32>) -> &[f32] {
    tensor.as_slice().unwrap_or_default()
}

/// The `side` × `side` cells around `cell`, row by row: their numbers in a map of `size`, `None` for
/// those outside. Columns come before rows.
pub(super) fn around(
    [column, row]: [usize; 2],
    [columns, rows]: [usize; 2],
    side: usize,
) -> impl Iterator<Item = Option<usize>> {
    let near = move |at: usize, step: usize, end: usize| {
        let place = (at + step).checked_sub(side / 2);
        place.filter(|place| *place < end)
    };
    (0..side * side).map(move |step| {
        let row = near(row, step / side, rows)?;
        Some(row * columns + near(column, step % side, columns)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_around_a_cell_may_be_outside() {
        // 9 stands for those outside of 3×3 cells.
        for (cell, side, want) in [
            ([1, 1], 3, &[0, 1, 2, 3, 4, 5, 6, 7, 8][..]),
            ([0, 0], 3, &[9, 9, 9, 9, 0, 1, 9, 3, 4]),
            ([2, 1], 3, &[1, 2, 9, 4, 5, 9, 7, 8, 9]),
            ([1, 2], 1, &[7]),
        ] {
            let near = around(cell, [3, 3], side).map(|cell| cell.unwrap_or(9));
            assert!(near.eq(want.iter().copied()), "{cell:?}");
        }
    }
}
