// SPDX-License-Identifier: MPL-2.0
//! Operators of two tensors, and those that reduce matrices.

use facetrack_graph::{Node, Value};

use super::{Form, Lowering, Order, Piece, Result, float, int, operand};
use crate::kernel::LANES;
use crate::layer::{Arithmetic, Id, Layer, Operator, Reduction, Window};

impl Lowering<'_> {
    pub(super) fn arithmetic(&mut self, node: &Node) -> Result<Form> {
        if let Some([factor, added]) = self.affine(node) {
            return self.unary(node, &Operator::Affine(factor, added));
        }
        let [a, b] = [operand(node, 0)?, operand(node, 1)?];
        for (x, y) in [(b, a), (a, b)] {
            let fused = match node.op.as_str() {
                "Add" => self.residual(x, y)?,
                "Mul" => self.hard_swish(x, y)?,
                _ => None,
            };
            if let Some(form) = fused {
                return Ok(form);
            }
        }
        let [x, y] = [self.tensor(a)?, self.tensor(b)?];
        self.combine(node, x, y).map(Form::Tensor)
    }

    /// A layer of two tensors.
    fn combine(&mut self, node: &Node, x: Piece, y: Piece) -> Result<Piece> {
        if x.order != y.order {
            return Err("an image and a matrix".to_owned());
        }
        let is_image = x.order == Order::ChannelsFirst;
        let (operator, x, y) = match node.op.as_str() {
            "Add" if is_image => (Operator::Add, x, y),
            "Mul" if is_image && self.is_pixel(y.id) => (Operator::Scale, x, y),
            "Mul" if is_image && self.is_pixel(x.id) => (Operator::Scale, y, x),
            "Add" => (Operator::Binary(Arithmetic::Add), x, y),
            "Sub" => (Operator::Binary(Arithmetic::Sub), x, y),
            "Mul" => (Operator::Binary(Arithmetic::Mul), x, y),
            _ => (Operator::Binary(Arithmetic::Div), x, y),
        };
        let channels = self.channels[x.id].0;
        self.add(operator, vec![x.id, y.id], channels, x.order)
    }

    /// Returns true if a tensor has one pixel, whatever the size of the image.
    fn is_pixel(&self, mut id: Id) -> bool {
        while let Some(place) = self.place(id) {
            let layer = &self.layers.layers[place];
            let is_wide = layer
                .window()
                .is_some_and(|window| *window != Window::PIXEL);
            match (&layer.operator, &layer.inputs[..]) {
                (Operator::Mean, _) => return true,
                (Operator::Resize(..), _) => return false,
                (_, [input, ..]) if !is_wide => id = *input,
                _ => return false,
            }
        }
        false
    }

    /// Adds `added` in the layer that yields `sum`.
    fn residual(&mut self, sum: Value, added: Value) -> Result<Option<Form>> {
        let Some(place) = self.open_layer(sum, 1) else {
            return Ok(None);
        };
        let layer = &self.layers.layers[place];
        let is_free = layer.inputs.len() == 1
            && matches!(layer.operator, Operator::Dense(..) | Operator::Mix { .. });
        let columns = self.channels[layer.output].0;
        let added = match self.form(added)? {
            Form::Tensor(piece) if self.channels[piece.id].0 == columns => piece.id,
            Form::Widened(id, channels) if channels == columns => id,
            _ => return Ok(None),
        };
        let is_aligned = self.channels[added].1.is_multiple_of(LANES);
        let shapes = self.shapes[layer.output].zip(self.shapes[added]);
        let is_same = shapes.is_none_or(|(a, b)| (a.height, a.width) == (b.height, b.width));
        if !is_free || !is_aligned || !is_same || layer.output == added {
            return Ok(None);
        }
        // The layer that computes the summand may come later than this layer.
        let mut layer: Layer = self.layers.layers.remove(place);
        layer.inputs.push(added);
        self.layers.layers.push(layer);
        self.form(sum).map(Some)
    }

    pub(super) fn normalization(&mut self, node: &Node) -> Result<Piece> {
        let piece = self.tensor(operand(node, 0)?)?;
        let scale = self
            .graph
            .floats(operand(node, 1)?)
            .ok_or("a scale that is not constant")?;
        let scale: Vec<f32> = scale.iter().copied().collect();
        let (channels, stored) = self.channels[piece.id];
        let is_last = piece.order == Order::ChannelsLast && int(node, "axis", -1) == -1;
        if !is_last || scale.len() != channels || stored != channels || node.inputs.len() > 2 {
            return Err("a scale of another size".to_owned());
        }
        let epsilon = float(node, "epsilon", 1e-5);
        self.add_like(Operator::Normalize { scale, epsilon }, piece)
    }

    pub(super) fn reduce(&mut self, node: &Node) -> Result<Piece> {
        let piece = self.tensor(operand(node, 0)?)?;
        let axes = match (node.attribute("axes"), node.inputs.get(1)) {
            (Some(axes), _) => axes.ints.clone(),
            (None, Some(value)) => self.graph.ints(*value).unwrap_or_default(),
            (None, None) => Vec::new(),
        };
        let reduction = match (node.op.as_str(), &axes[..]) {
            ("ReduceMean", [-2]) => Reduction::MeanOfRows,
            ("ReduceMean", [-1]) => Reduction::MeanOfColumns,
            ("ReduceSum", [-1]) => Reduction::SumOfColumns,
            _ => return Err(format!("the axes {axes:?}")),
        };
        if piece.order == Order::ChannelsFirst || int(node, "keepdims", 1) != 1 {
            return Err("an image that is reduced".to_owned());
        }
        let channels = match reduction {
            Reduction::MeanOfRows => self.channels[piece.id].0,
            _ => 1,
        };
        self.add(
            Operator::Reduce(reduction),
            vec![piece.id],
            channels,
            piece.order,
        )
    }
}
