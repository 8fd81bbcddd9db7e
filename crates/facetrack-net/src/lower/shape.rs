// SPDX-License-Identifier: MPL-2.0
//! Extents, and operators that change them.

use facetrack_graph::proto::TensorProto;
use facetrack_graph::{Node, Value};

use super::{Form, Lowering, Order, Piece, Result, int, operand};
use crate::layer::{Extent, Operator};

/// The order of axes that brings channels last.
const LAST: [i64; 4] = [0, 2, 3, 1];

/// Axes of an image in a graph.
const AXES: usize = 4;

/// ONNX's number of the type of 64-bit integers.
const INT64: i64 = 7;

/// Extents in the order of the graph.
pub(super) fn extents_of(ints: &[i64]) -> Result<Vec<Extent>> {
    let extents = ints.iter().take(AXES + 1).map(|number| match *number {
        -1 => Ok(Extent::Rest),
        number => usize::try_from(number)
            .map(Extent::Fixed)
            .map_err(|_| "a negative extent".to_owned()),
    });
    extents.collect()
}

impl Lowering<'_> {
    pub(super) fn transpose(&mut self, node: &Node) -> Result<Form> {
        let piece = self.image(operand(node, 0)?)?;
        let order = node.attribute("perm").map(|own| &own.ints[..]);
        match order {
            Some(order) if order == LAST => Ok(Form::Tensor(Piece {
                order: Order::ChannelsLast,
                ..piece
            })),
            _ => Err(format!("axes in the order {order:?}")),
        }
    }

    pub(super) fn reshape(&mut self, node: &Node) -> Result<Form> {
        let source = operand(node, 0)?;
        if node.op == "Reshape" && int(node, "allowzero", 0) != 0 {
            return Err("empty extents".to_owned());
        }
        let extents = match (node.op.as_str(), int(node, "axis", 1)) {
            ("Flatten", 1) => vec![Extent::Fixed(1), Extent::Rest],
            ("Reshape", _) => match self.form(operand(node, 1)?)? {
                Form::Extents(extents) => extents,
                _ => return Err("extents that are not known".to_owned()),
            },
            _ => return Err("another axis".to_owned()),
        };
        let piece = match self.form(source)? {
            Form::Flat(pieces, _) => return Ok(Form::Flat(pieces, extents)),
            _ => self.tensor(source)?,
        };
        let matrix = |shape: &[usize]| match *shape {
            [1, rows, columns] | [rows, columns] => Some([rows, columns]),
            _ => None,
        };
        let [from, to] = [source, node.output()].map(|value| matrix(self.graph.shape(value)));
        match piece.order == Order::ChannelsLast && from.is_some() && from == to {
            true => Ok(Form::Tensor(piece)),
            false => Ok(Form::Flat(vec![piece], extents)),
        }
    }

    /// Rows of a matrix, or some of several extents.
    pub(super) fn slice(&mut self, node: &Node) -> Result<Form> {
        let bounds =
            [1, 2, 3].map(|index| node.inputs.get(index).and_then(|value| self.index(*value)));
        let [Some(first), Some(last), Some(axis)] = bounds else {
            return Err("bounds that are not constant".to_owned());
        };
        if node.inputs.len() > 4 {
            return Err("steps".to_owned());
        }
        match self.form(operand(node, 0)?)? {
            Form::Extents(extents) if axis == 0 => {
                let part = extents
                    .get(first..last.min(extents.len()))
                    .ok_or("bounds outside")?;
                Ok(Form::Extents(part.to_vec()))
            }
            Form::Tensor(piece) if axis == 0 && piece.order == Order::ChannelsLast => self
                .add_like(Operator::Rows(first, last), piece)
                .map(Form::Tensor),
            _ => Err("a slice of an image".to_owned()),
        }
    }

    /// A single constant number that is not negative.
    fn index(&self, value: Value) -> Option<usize> {
        match self.form(value) {
            Ok(Form::Extents(extents)) => match extents[..] {
                [Extent::Fixed(index)] => Some(index),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whole numbers that are constant or depend on shapes.
    pub(super) fn extents(&mut self, node: &Node) -> Result<Form> {
        match node.op.as_str() {
            "Constant" => constant(node),
            "Shape" => {
                let piece = self.image(operand(node, 0)?)?;
                Ok(Form::Extents(
                    (0..AXES).map(|axis| Extent::Of(piece.id, axis)).collect(),
                ))
            }
            "Gather" => self.gather(node),
            "Cast" if int(node, "to", 0) != INT64 => Err("another type".to_owned()),
            _ => match self.form(operand(node, 0)?)? {
                Form::Extents(extents) => Ok(Form::Extents(extents)),
                _ => Err("an image where extents are needed".to_owned()),
            },
        }
    }

    /// One of several extents.
    fn gather(&mut self, node: &Node) -> Result<Form> {
        let Form::Extents(extents) = self.form(operand(node, 0)?)? else {
            return Err("elements of a tensor".to_owned());
        };
        let index = self.index(operand(node, 1)?);
        let extent = index
            .and_then(|index| extents.get(index))
            .ok_or("elements outside")?;
        Ok(Form::Extents(vec![*extent]))
    }
}

/// The value of a constant.
fn constant(node: &Node) -> Result<Form> {
    let value: Option<&TensorProto> = node.attribute("value").and_then(|own| own.t.as_ref());
    let value = value.ok_or("a constant without a value")?;
    if let Some(ints) = value.to_ints() {
        return extents_of(&ints).map(Form::Extents);
    }
    let numbers = value.to_floats().map(|own| own.iter().copied().collect());
    Ok(Form::Numbers(numbers.unwrap_or_default()))
}
