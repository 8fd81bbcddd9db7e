// SPDX-License-Identifier: MPL-2.0
//! Inputs of a network.

use facetrack_graph::convolution::Convolution;
use facetrack_graph::{Node, Port, TensorSpec, Value};

use super::{Form, Input, Lowering, Order, Piece, Result};
use crate::kernel::{Activation, LANES, padded};
use crate::layer::{Layer, Operator, Shape};

impl Lowering<'_> {
    pub(super) fn declare_inputs(&mut self) -> Result<()> {
        let specs = self.graph.specs(&self.graph.inputs);
        let ports = self.graph.inputs.iter();
        for (port, spec) in ports
            .filter(|port| !self.graph.is_constant(port.value))
            .zip(specs)
        {
            self.declare_input(port, &spec)?;
        }
        Ok(())
    }

    fn declare_input(&mut self, port: &Port, spec: &TensorSpec) -> Result<()> {
        let (order, channels) = match spec.shape[..] {
            [_, Some(channels), _, _] => (Order::ChannelsFirst, channels),
            [_, _, Some(channels)] => (Order::ChannelsLast, channels),
            _ => return Err(format!("an input of the shape {:?}", spec.shape)),
        };
        let (values, scale) = self.scaled(port.value);
        let is_for_rows = |last: &Value| self.is_for_rows(*last, channels);
        let is_planar = order == Order::ChannelsFirst && values.last().is_some_and(is_for_rows);
        let stored = match is_planar {
            true => channels,
            false => padded(channels),
        };
        let shape = fixed(spec).map(|[height, width]| Shape {
            height,
            width,
            channels,
            stored,
            is_planar,
        });
        let id = self.add_tensor(channels, stored, shape)?;
        let form = Form::Tensor(Piece { id, order });
        let forms = values.into_iter().map(|value| (value, form.clone()));
        self.forms.extend(forms);
        self.layers.layers.push(Layer {
            operator: Operator::Load(self.layers.inputs.len()),
            activation: Activation::Linear,
            inputs: Vec::new(),
            output: id,
        });
        self.layers.inputs.push(Input {
            id,
            channels,
            order,
            stored,
            is_planar,
            scale,
        });
        Ok(())
    }

    /// Returns true if `value` has few channels and only convolutions take it that can read each
    /// channel separately.
    fn is_for_rows(&self, value: Value, channels: usize) -> bool {
        channels < LANES
            && self.users(value).iter().all(|user| {
                let node = self.graph.nodes.get(*user);
                let convolution = node.and_then(|node| Convolution::of(self.graph, node));
                convolution.is_some_and(|own| own.groups == 1)
            })
    }

    /// The input `value` and all values that follow from it by factors and summands, and the factor
    /// and summand of the last one.
    fn scaled(&self, mut value: Value) -> (Vec<Value>, [f32; 2]) {
        let (mut values, mut scale) = (vec![value], [1.0, 0.0]);
        while let Some(node) = self.only_user(value)
            && node.inputs.first() == Some(&value)
            && let Some([factor, added]) = self.affine(node)
        {
            scale = [scale[0] * factor, scale[1] * factor + added];
            value = node.output();
            values.push(value);
        }
        (values, scale)
    }

    /// Factor and summand, if `node` changes its first input by one constant number.
    pub(super) fn affine(&self, node: &Node) -> Option<[f32; 2]> {
        let constant = self.graph.floats(*node.inputs.get(1)?)?;
        let number = (constant.len() == 1).then(|| constant.iter().next().copied())??;
        match node.op.as_str() {
            "Add" => Some([1.0, number]),
            "Sub" => Some([1.0, -number]),
            "Mul" => Some([number, 0.0]),
            "Div" => Some([1.0 / number, 0.0]),
            _ => None,
        }
    }
}

/// Height and width, if they are fixed.
fn fixed(spec: &TensorSpec) -> Option<[usize; 2]> {
    match spec.shape[..] {
        [_, _, Some(height), Some(width)] => Some([height, width]),
        [_, Some(width), _] => Some([1, width]),
        _ => None,
    }
}
