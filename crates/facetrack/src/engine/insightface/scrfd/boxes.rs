// SPDX-License-Identifier: MPL-2.0
//! The layers that yield boxes and key points. They process the cells around faces only.

use ndarray::{ArrayD, Slice};

use super::heads::Area;
use crate::engine::network::Outputs;
use crate::model::{Model, ModelError};

/// The layers after the features.
pub struct Boxes {
    model: Box<dyn Model>,
    /// The outputs of a cell depend on the features of this many cells to each side of it.
    pub reach: usize,
}

impl Boxes {
    /// The layers in `model`, which takes the features of each stride.
    pub fn new(model: Box<dyn Model>, reach: usize) -> Self {
        Self { model, reach }
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.model.outputs().len()
    }

    /// Runs the layers on `areas` of `features`, one for each stride.
    ///
    /// # Errors
    /// Those of the network.
    pub fn run(&self, features: &[ArrayD<f32>], areas: &[Area]) -> Result<Outputs, ModelError> {
        let cut = |(features, area): (&ArrayD<f32>, &Area)| {
            let part = features.slice_each_axis(|axis| match axis.axis.index() {
                2 => slice(area, 1, axis.len),
                3 => slice(area, 0, axis.len),
                _ => Slice::from(..),
            });
            part.as_standard_layout().into_owned()
        };
        let parts: Vec<_> = features.iter().zip(areas).map(cut).collect();
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        self.model.run(&views).map(Outputs)
    }
}

/// The columns or rows of an area, as far as there are so many.
fn slice(area: &Area, axis: usize, extent: usize) -> Slice {
    let first = area.first[axis];
    let [first, end] = [first, first + area.size[axis]].map(|place| place.min(extent));
    Slice::from(first..end)
}
