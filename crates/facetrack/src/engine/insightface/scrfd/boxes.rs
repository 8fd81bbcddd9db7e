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

    /// Whether `features` have the columns and rows of `areas`, one for each stride.
    pub fn fits(features: &[ArrayD<f32>], areas: &[Area]) -> bool {
        let extents = |area: &Area| [area.size[1], area.size[0]];
        features.len() == areas.len()
            && features.iter().zip(areas).all(|(features, area)| {
                features.ndim() == 4 && features.shape()[2..] == extents(area)
            })
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

/// The columns (axis 0) or rows (axis 1) of an area, cut off at `extent`.
fn slice(area: &Area, axis: usize, extent: usize) -> Slice {
    let first = area.first[axis];
    let [first, end] = [first, first + area.size[axis]].map(|place| place.min(extent));
    Slice::from(first..end)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array, IxDyn, s};

    use super::super::super::fake::Fake;
    use super::*;

    #[test]
    fn the_layers_process_an_area() {
        let counted = |cells: &[usize]| {
            let shape = [&[1, 2], cells].concat();
            let count = shape.iter().product::<usize>() as u16;
            let values = (0..count).map(f32::from).collect();
            Array::from_shape_vec(IxDyn(&shape), values).unwrap()
        };
        let features = counted(&[5, 7]);
        let area = |first, size| Area { first, size };
        let copied = Fake::new(&[None; 4], &[&[None; 4]], |input| vec![input.to_owned()]);
        let boxes = Boxes::new(Box::new(copied), 1);
        let of_one = std::slice::from_ref(&features);
        let run = |area| boxes.run(of_one, &[area]).unwrap();
        let some = run(area([2, 1], [4, 3]));
        assert_eq!(some.0[0], features.slice(s![.., .., 1..4, 2..6]).into_dyn());
        // No cells are made up.
        let beyond = run(area([6, 4], [3, 2]));
        assert_eq!(beyond.0[0].shape(), [1, 2, 1, 1]);
        let nowhere = run(area([9, 9], [1, 1]));
        assert_eq!(nowhere.0[0].shape(), [1, 2, 0, 0]);

        let whole = area([0; 2], [7, 5]);
        let fits = Boxes::fits;
        assert!(fits(of_one, &[whole]));
        assert!(!fits(&[counted(&[7, 5])], &[whole]));
        assert!(!fits(&[counted(&[5, 7, 1])], &[whole]));
        assert!(!fits(of_one, &[whole, whole]));
    }
}
