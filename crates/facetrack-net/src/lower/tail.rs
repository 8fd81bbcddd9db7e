// SPDX-License-Identifier: MPL-2.0
//! Convolutions with several filters for each channel before one of single pixels.
//!
//! Each filter becomes a convolution with one filter for each channel, and a convolution of single
//! pixels that adds its result to the sum. So channels stay in order.

use facetrack_graph::Node;
use facetrack_graph::convolution::Convolution;
use facetrack_graph::tail::Tail;
use ndarray::Array4;

use super::convolution::{fused_activation, has_filters, is_joined, window};
use super::{Form, Lowering, Piece, Result};
use crate::kernel::Activation;
use crate::layer::Window;

impl Lowering<'_> {
    /// The two convolutions of a tail, if `node` is the first of them.
    pub(super) fn tail(&self, node: &Node) -> Option<Tail> {
        let pointwise = self.only_user(node.output())?;
        let tail = Tail::before(self.graph, pointwise.output())?;
        let is_first = tail.pointwise.node.inputs.first() == Some(&node.output());
        let is_plain = window(pointwise, [1; 2]) == Ok(Window::PIXEL);
        (is_first && is_plain && pointwise.outputs.len() == 1).then_some(tail)
    }

    /// The layers of both convolutions; `None` if no kernel has their filters.
    pub(super) fn of_tail(
        &mut self,
        tail: &Tail,
        piece: Piece,
        window: Window,
    ) -> Result<Option<Piece>> {
        if tail.spatial.groups == 1 || !has_filters(&window) {
            return Ok(None);
        }
        let (ins, outs) = (tail.inputs_of_group(), tail.outputs_of_group());
        let groups = tail.pointwise.groups;
        let yielded = if is_joined(&tail.pointwise) {
            self.of_channels(tail, piece, window, [0, ins * groups], [0, outs * groups])?
        } else {
            let mut parts = Vec::new();
            for group in 0..groups {
                let [inputs, outputs] = [ins, outs].map(|size| [group * size, (group + 1) * size]);
                let own = self.select(piece, (inputs[0]..inputs[1]).collect())?;
                parts.push(self.of_channels(tail, own, window, inputs, outputs)?);
            }
            self.join(&parts)?
        };
        let output = tail.pointwise.node.outputs[0];
        self.forms.insert(output, Form::Tensor(yielded));
        Ok(Some(yielded))
    }

    /// The outputs in a range, from a piece that holds a range of the channels.
    fn of_channels(
        &mut self,
        tail: &Tail,
        piece: Piece,
        window: Window,
        inputs: [usize; 2],
        outputs: [usize; 2],
    ) -> Result<Piece> {
        let of_filters = fused_activation(&tail.spatial)?;
        let mut sum = None;
        for filter in 0..tail.filters {
            let filters = tail.depthwise(inputs[0]..inputs[1], filter);
            let filtered = self.sum_of_filters(&filters, piece, window, &of_filters)?;
            let is_last = filter + 1 == tail.filters;
            let pointwise = without_groups(tail, filter, inputs, outputs, is_last);
            let activation = match is_last {
                true => fused_activation(&tail.pointwise)?,
                false => Activation::Linear,
            };
            sum = Some(self.dense(&pointwise, (filtered, sum), Window::PIXEL, &activation)?);
        }
        sum.ok_or_else(|| "a convolution without filters".to_owned())
    }
}

/// The convolution of single pixels that makes outputs of one filter of each channel.
fn without_groups(
    tail: &Tail,
    filter: usize,
    [first_input, last_input]: [usize; 2],
    [first, last]: [usize; 2],
    is_last: bool,
) -> Convolution {
    let (ins, outs) = (tail.inputs_of_group(), tail.outputs_of_group());
    let mut pointwise = tail.pointwise.with_outputs(first..last);
    let shape = (last - first, last_input - first_input, 1, 1);
    pointwise.groups = 1;
    pointwise.weights = Array4::from_shape_fn(shape, |(output, input, ..)| {
        let (output, input) = (output + first, input + first_input);
        match input / ins == output / outs {
            true => tail.weight(output, input % ins, filter),
            false => 0.0,
        }
    });
    pointwise.bias = pointwise.bias.filter(|_| is_last);
    pointwise
}
