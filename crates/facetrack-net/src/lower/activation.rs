// SPDX-License-Identifier: MPL-2.0
//! Operators of single elements.

use facetrack_graph::{Node, Value};

use super::{Form, Lowering, Result, operand};
use crate::kernel::Activation;
use crate::layer::Operator;

impl Lowering<'_> {
    /// An operator of the elements of an image or a list.
    pub(super) fn unary(&mut self, node: &Node, operator: &Operator) -> Result<Form> {
        let source = operand(node, 0)?;
        match self.form(source)? {
            Form::Flat(pieces, extents) => {
                let changed = pieces
                    .into_iter()
                    .map(|piece| self.add_like(operator.clone(), piece));
                Ok(Form::Flat(changed.collect::<Result<_>>()?, extents))
            }
            _ => {
                let piece = self.tensor(source)?;
                self.add_like(operator.clone(), piece).map(Form::Tensor)
            }
        }
    }

    pub(super) fn clip(&mut self, node: &Node) -> Result<Form> {
        let bound = |index: usize, default| match node.inputs.get(index) {
            None => Some(default),
            Some(value) => self.graph.floats(*value)?.iter().next().copied(),
        };
        let bounds = bound(1, f32::NEG_INFINITY).zip(bound(2, f32::INFINITY));
        let (low, high) = bounds.ok_or("bounds that are not constant")?;
        self.activate(node, Activation::Clip(low, high))
    }

    pub(super) fn prelu(&mut self, node: &Node) -> Result<Form> {
        let piece = self.image(operand(node, 0)?)?;
        let slopes = self
            .graph
            .floats(operand(node, 1)?)
            .ok_or("slopes that are not constant")?;
        let (channels, stored) = self.channels[piece.id];
        // Extents in front of rows and columns.
        let of_channels = slopes.shape().iter().rev().nth(2).copied().unwrap_or(1);
        if slopes.len() != of_channels || ![1, channels].contains(&of_channels) {
            return Err(format!("slopes of the shape {:?}", slopes.shape()));
        }
        let mut slopes: Vec<f32> = slopes.iter().copied().cycle().take(channels).collect();
        slopes.resize(stored, 0.0);
        self.activate(node, Activation::PRelu(slopes))
    }

    /// Lets an activation follow the layer before, or adds a layer for it.
    pub(super) fn activate(&mut self, node: &Node, activation: Activation) -> Result<Form> {
        let source = operand(node, 0)?;
        if let Some(place) = self.open_layer(source, 1) {
            self.layers.layers[place].activation = activation;
            return self.form(source);
        }
        let form = self.unary(node, &Operator::Identity)?;
        if !matches!(form, Form::Tensor(_)) {
            return Err("the activation of a list".to_owned());
        }
        self.set_activation(&activation);
        Ok(form)
    }

    /// The layer that yields `value`, if only so many nodes take it and no activation follows yet.
    pub(super) fn open_layer(&self, value: Value, users: usize) -> Option<usize> {
        let Some(Form::Tensor(piece)) = self.forms.get(&value) else {
            return None;
        };
        let place = self.place(piece.id)?;
        let layer = &self.layers.layers[place];
        let is_open = layer.activation == Activation::Linear
            && matches!(
                layer.operator,
                Operator::Dense(..)
                    | Operator::Depthwise(..)
                    | Operator::Mix { .. }
                    | Operator::Add
                    | Operator::Identity
            );
        (is_open && self.users(value).len() == users).then_some(place)
    }

    /// The layer that yields a tensor.
    pub(super) fn place(&self, id: usize) -> Option<usize> {
        self.layers
            .layers
            .iter()
            .rposition(|layer| layer.output == id)
    }

    /// x · clip(alpha · x + beta, 0, 1), if `gate` is that factor.
    pub(super) fn hard_swish(&mut self, x: Value, gate: Value) -> Result<Option<Form>> {
        let (Form::Tensor(source), Form::Tensor(factor)) = (self.form(x)?, self.form(gate)?) else {
            return Ok(None);
        };
        let Some(last) = self.layers.layers.last() else {
            return Ok(None);
        };
        let Operator::HardSigmoid(a, b) = last.operator else {
            return Ok(None);
        };
        let is_gate = last.output == factor.id && last.inputs == [source.id];
        if !is_gate || self.users(gate).len() != 1 {
            return Ok(None);
        }
        let activation = Activation::HardSwish(a, b);
        if let Some(place) = self.open_layer(x, 2) {
            self.layers.layers.pop();
            self.layers.layers[place].activation = activation;
            return self.form(x).map(Some);
        }
        if let Some(layer) = self.layers.layers.last_mut() {
            (layer.operator, layer.activation) = (Operator::Identity, activation);
        }
        self.form(gate).map(Some)
    }
}
