// SPDX-License-Identifier: MPL-2.0
//! Images of another size.

use facetrack_graph::{Node, Value};

use super::{Form, Lowering, Piece, Result, operand};
use crate::layer::{Extent, Interpolation, Operator};

impl Lowering<'_> {
    pub(super) fn resize(&mut self, node: &Node) -> Result<Piece> {
        let piece = self.image(operand(node, 0)?)?;
        let interpolation = interpolation(node)?;
        let [height, width] = self.size(node)?;
        if interpolation == Interpolation::AlignedCorners
            && [height, width]
                .iter()
                .any(|own| matches!(own, Extent::Times(_)))
        {
            return Err("a factor for linear interpolation".to_owned());
        }
        self.add_like(Operator::Resize(interpolation, [height, width]), piece)
    }

    fn size(&self, node: &Node) -> Result<[Extent; 2]> {
        if let Some(value) = node.inputs.get(2)
            && let Some([batch, channels, height, width]) = self.numbers(*value).as_deref()
        {
            return match [*batch, *channels] {
                [1.0, 1.0] => Ok([Extent::Times(*height), Extent::Times(*width)]),
                _ => Err("a factor of channels".to_owned()),
            };
        }
        match self.form(operand(node, 3)?)? {
            Form::Extents(extents) if extents.len() == 4 => Ok([extents[2], extents[3]]),
            _ => Err("a size that is not known".to_owned()),
        }
    }

    /// Constant numbers.
    fn numbers(&self, value: Value) -> Option<Vec<f32>> {
        match self.forms.get(&value) {
            Some(Form::Numbers(numbers)) => Some(numbers.clone()),
            _ => self
                .graph
                .floats(value)
                .map(|own| own.iter().copied().collect()),
        }
    }
}

fn interpolation(node: &Node) -> Result<Interpolation> {
    let text = |name| {
        let text = node.attribute(name).and_then(|own| own.s.clone());
        text.map_or_else(String::new, |text| {
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let mode = ["mode", "coordinate_transformation_mode", "nearest_mode"].map(text);
    match mode.each_ref().map(|own| &own[..]) {
        ["nearest", "asymmetric", "floor"] => Ok(Interpolation::Nearest),
        ["linear", "align_corners", _] => Ok(Interpolation::AlignedCorners),
        other => Err(format!("the mode {other:?}")),
    }
}
