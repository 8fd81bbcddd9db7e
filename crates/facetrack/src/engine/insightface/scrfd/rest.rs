// SPDX-License-Identifier: MPL-2.0
//! The layers of a detector after its first ones. Outside the frame its input is black, so the
//! values of the first layers are known there. The first layers process only a part of the input:
//! seven tenths of the square for a frame of 16:9.

use facetrack_graph::parts::Border;
use ndarray::{ArrayD, Slice};

use crate::engine::network::Outputs;
use crate::model::{Model, ModelError, TensorSpec};

/// Columns and rows.
type Size = [usize; 2];

/// The layers after the first ones.
pub struct Rest {
    model: Box<dyn Model>,
    border: Border,
    /// Size of the black input that `black` was computed from.
    whole: Size,
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
        Self {
            model,
            border,
            whole: [0; 2],
            black: Vec::new(),
            values: Vec::new(),
            valid: [0; 2],
        }
    }

    /// Outputs of the network.
    pub fn outputs(&self) -> &[TensorSpec] {
        self.model.outputs()
    }

    /// Whether the values for a black input of the size `whole` are known.
    pub fn knows(&self, whole: Size) -> bool {
        self.whole == whole
    }

    /// Runs the layers on `black`, the values of the first layers for a black input of the size
    /// `whole`, and keeps these values.
    ///
    /// # Errors
    /// Those of the network.
    pub fn run_on_black(&mut self, black: Outputs, whole: Size) -> Result<Outputs, ModelError> {
        (self.whole, self.black, self.valid) = (whole, black.0, [0; 2]);
        self.run_on(&self.black)
    }

    /// Part of the black input that the first layers have to process, if a frame of the size `frame`
    /// is at its top left.
    pub fn seen(&self, frame: Size) -> Size {
        self.parts(frame).0
    }

    /// Runs the layers on `values`, the values of the first layers for that part.
    ///
    /// # Errors
    /// Those of the network.
    pub fn run(&mut self, values: &Outputs, frame: Size) -> Result<Outputs, ModelError> {
        let (seen, valid) = self.parts(frame);
        if seen == self.whole {
            return self.run_on(&values.0);
        }
        if self.valid != valid {
            self.values.clone_from(&self.black);
            self.valid = valid;
        }
        let pairs = self.values.iter_mut().zip(&values.0);
        for ((all, some), stride) in pairs.zip(&self.border.strides) {
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
        self.run_on(&self.values)
    }

    fn run_on(&self, values: &[ArrayD<f32>]) -> Result<Outputs, ModelError> {
        let views: Vec<_> = values.iter().map(|value| value.view()).collect();
        self.model.run(&views).map(Outputs)
    }

    /// Part of the input that the first layers process for a frame, and the part of it for which
    /// their values are right: the input does not end there, so values near its edge are wrong.
    fn parts(&self, frame: Size) -> (Size, Size) {
        let Border { strides, reach } = &self.border;
        let step = strides.iter().copied().max().unwrap_or(1);
        let (mut seen, mut valid) = (self.whole, self.whole);
        for axis in 0..2 {
            let right = (frame[axis] + reach).next_multiple_of(step);
            let needed = (right + reach).next_multiple_of(step);
            if needed < self.whole[axis] {
                (seen[axis], valid[axis]) = (needed, right);
            }
        }
        (seen, valid)
    }
}
