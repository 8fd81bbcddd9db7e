// SPDX-License-Identifier: MPL-2.0
//! The layers of a detector after its first ones. Outside the frame its input is black, so the
//! values of the first layers are known there. The first layers process only a part of the input:
//! seven tenths of the square for a frame of 16:9.

use facetrack_graph::parts::Border;
use ndarray::{ArrayD, Slice};

use super::SIZES;
use crate::engine::network::Outputs;
use crate::model::{Model, ModelError, TensorSpec};

/// Columns and rows.
type Size = [usize; 2];

/// The layers after the first ones.
pub struct Rest {
    model: Box<dyn Model>,
    border: Border,
    /// The last used sizes of the input.
    inputs: Vec<Input>,
}

/// An input of the first layers.
struct Input {
    size: Size,
    /// Values of the first layers for a black input.
    black: Vec<ArrayD<f32>>,
    /// A copy of `black` with the values for the last frame in the part `valid`.
    values: Vec<ArrayD<f32>>,
    /// Part of the input, px.
    valid: Size,
}

impl Rest {
    /// The layers in `model`, which takes values that depend on the image as `border` says.
    pub fn new(model: Box<dyn Model>, border: Border) -> Self {
        let inputs = Vec::new();
        Self {
            model,
            border,
            inputs,
        }
    }

    /// Outputs of the network.
    pub fn outputs(&self) -> &[TensorSpec] {
        self.model.outputs()
    }

    /// Returns true if the values for a black input of this size are known.
    pub fn knows(&self, size: Size) -> bool {
        self.inputs.iter().any(|input| input.size == size)
    }

    /// Runs the layers on `black`, the values of the first layers for a black input of this size, and
    /// keeps these values.
    ///
    /// # Errors
    /// Returns an error if the network does not run.
    pub fn run_on_black(&mut self, black: Outputs, size: Size) -> Result<Outputs, ModelError> {
        let outputs = run(&*self.model, &black.0)?;
        if self.inputs.len() == SIZES {
            self.inputs.remove(0);
        }
        self.inputs.push(Input {
            size,
            black: black.0,
            values: Vec::new(),
            valid: [0; 2],
        });
        Ok(outputs)
    }

    /// Part of an input of the size `whole` that the first layers have to process, if it is black
    /// except for a frame of the size `frame` at its top left.
    pub fn seen(&self, frame: Size, whole: Size) -> Size {
        parts(&self.border, frame, whole).0
    }

    /// Runs the layers on `values`, the values of the first layers for that part. The values for a
    /// black input of the size `whole` are known.
    ///
    /// # Errors
    /// Returns an error if the network does not run.
    pub fn run(
        &mut self,
        values: &Outputs,
        frame: Size,
        whole: Size,
    ) -> Result<Outputs, ModelError> {
        let (seen, valid) = parts(&self.border, frame, whole);
        let input = self.inputs.iter_mut().find(|input| input.size == whole);
        let Some(input) = input.filter(|_| seen != whole) else {
            return run(&*self.model, &values.0);
        };
        input.show(values, valid, &self.border.strides);
        run(&*self.model, &input.values)
    }
}

impl Input {
    /// Puts the part `valid` of `values` into the values for a black input.
    fn show(&mut self, values: &Outputs, valid: Size, strides: &[usize]) {
        if self.valid != valid {
            self.values.clone_from(&self.black);
            self.valid = valid;
        }
        let pairs = self.values.iter_mut().zip(&values.0);
        for ((all, some), stride) in pairs.zip(strides) {
            let [columns, rows] = valid.map(|extent| Slice::from(..extent / stride));
            let slice = |axis: usize| match axis {
                2 => rows,
                3 => columns,
                _ => Slice::from(..),
            };
            let some = some.slice_each_axis(|axis| slice(axis.axis.index()));
            all.slice_each_axis_mut(|axis| slice(axis.axis.index()))
                .assign(&some);
        }
    }
}

fn run(model: &dyn Model, values: &[ArrayD<f32>]) -> Result<Outputs, ModelError> {
    let views: Vec<_> = values.iter().map(|value| value.view()).collect();
    model.run(&views).map(Outputs)
}

/// Part of an input of the size `whole` that the first layers process for a frame, and the part of
/// it for which their values are right: the input does not end there, so values near its edge are
/// wrong.
fn parts(Border { strides, reach }: &Border, frame: Size, whole: Size) -> (Size, Size) {
    let step = strides.iter().copied().max().unwrap_or(1);
    let (mut seen, mut valid) = (whole, whole);
    for axis in 0..2 {
        let right = (frame[axis] + reach).next_multiple_of(step);
        let needed = (right + reach).next_multiple_of(step);
        if needed < whole[axis] {
            (seen[axis], valid[axis]) = (needed, right);
        }
    }
    (seen, valid)
}
