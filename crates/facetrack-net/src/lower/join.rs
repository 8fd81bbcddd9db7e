// SPDX-License-Identifier: MPL-2.0
//! Concatenation and padding.

use facetrack_graph::Node;

use super::{CHANNELS, Form, Lowering, Order, Piece, Result, operand};
use crate::layer::{Extent, Operator};

/// Maximum number of tensors that make up a list.
const MAX_PIECES: usize = 64;

/// Maximum number of axes of a tensor.
const MAX_AXES: usize = 8;

impl Lowering<'_> {
    /// Adds zeros after the channels.
    pub(super) fn pad(&mut self, node: &Node) -> Result<Form> {
        let piece = self.image(operand(node, 0)?)?;
        let pads = node.inputs.get(1).and_then(|value| self.graph.ints(*value));
        let mode = node.attribute("mode").and_then(|own| own.s.clone());
        let is_of_zeros = node.inputs.len() <= 2 && mode.is_none_or(|mode| mode == "constant");
        match pads.as_deref() {
            Some([0, 0, 0, 0, 0, added, 0, 0]) if is_of_zeros => {
                let channels = self.channels[piece.id].0;
                let sum = usize::try_from(*added)
                    .ok()
                    .and_then(|added| channels.checked_add(added));
                sum.map(|sum| Form::Widened(piece.id, sum))
                    .ok_or_else(|| "negative padding".to_owned())
            }
            _ => Err("padding of rows or columns, or of other numbers".to_owned()),
        }
    }

    pub(super) fn concat(&mut self, node: &Node) -> Result<Form> {
        let axis = node
            .attribute("axis")
            .and_then(|own| own.i)
            .ok_or("no axis")?;
        if let Some(piece) = self.prepend(node, axis)? {
            return Ok(Form::Tensor(piece));
        }
        let forms = node.inputs.iter().map(|value| self.form(*value));
        match forms.collect::<Result<Vec<_>>>()? {
            forms if forms.iter().all(|form| matches!(form, Form::Extents(_))) => extents(forms),
            forms if forms.iter().all(|form| matches!(form, Form::Flat(..))) => lists(forms, axis),
            _ => self.images(node, axis).map(Form::Tensor),
        }
    }

    /// Adds constant rows in front of a matrix.
    fn prepend(&mut self, node: &Node, axis: i64) -> Result<Option<Piece>> {
        let [constant, rows] = node.inputs[..] else {
            return Ok(None);
        };
        let Some(constant) = self.graph.floats(constant).filter(|own| own.ndim() == 2) else {
            return Ok(None);
        };
        let piece = self.tensor(rows)?;
        let is_rows = [-2, 0].contains(&axis) && piece.order == Order::ChannelsLast;
        let columns = constant.shape()[1];
        if !is_rows || self.channels[piece.id] != (columns, columns) {
            return Err("rows of another length".to_owned());
        }
        let constant = constant.iter().copied().collect();
        self.add_like(Operator::Prepend(constant), piece).map(Some)
    }

    /// Joins the channels of images, or the columns of products.
    fn images(&mut self, node: &Node, axis: i64) -> Result<Piece> {
        let pieces = node.inputs.iter().map(|value| self.tensor(*value));
        let pieces = pieces.collect::<Result<Vec<_>>>()?;
        let is_product = |value| {
            self.graph
                .producer(value)
                .is_some_and(|node| node.is("Gemm"))
        };
        let order = match node.inputs.iter().all(|value| is_product(*value)) {
            true => Order::ChannelsLast,
            false => Order::ChannelsFirst,
        };
        if axis != CHANNELS as i64 || pieces.iter().any(|piece| piece.order != order) {
            return Err(format!("parts along axis {axis}"));
        }
        self.join(&pieces)
    }
}

/// Joins extents.
fn extents(forms: Vec<Form>) -> Result<Form> {
    let extents = forms.into_iter().flat_map(|form| match form {
        Form::Extents(extents) => extents,
        _ => Vec::new(),
    });
    let extents: Vec<Extent> = extents.take(MAX_AXES + 1).collect();
    match extents.len() <= MAX_AXES {
        true => Ok(Form::Extents(extents)),
        false => Err(format!("more than {MAX_AXES} axes")),
    }
}

/// Joins lists.
fn lists(forms: Vec<Form>, axis: i64) -> Result<Form> {
    let (mut all, mut all_extents) = (Vec::new(), Vec::new());
    for form in forms {
        if let Form::Flat(pieces, extents) = form {
            all.extend(pieces);
            all_extents = extents;
        }
        if all.len() > MAX_PIECES {
            return Err(format!("a list of more than {MAX_PIECES} parts"));
        }
    }
    let from_end = axis
        .checked_add(all_extents.len() as i64)
        .filter(|_| axis < 0);
    let axis = usize::try_from(from_end.unwrap_or(axis)).map_err(|_| "an axis outside")?;
    let is_one = |extent: &Extent| matches!(extent, Extent::Fixed(1) | Extent::Of(_, 0));
    if axis >= all_extents.len() || !all_extents[..axis].iter().all(is_one) {
        return Err(format!("lists along axis {axis}"));
    }
    all_extents[axis] = Extent::Rest;
    Ok(Form::Flat(all, all_extents))
}
