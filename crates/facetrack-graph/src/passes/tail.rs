// SPDX-License-Identifier: MPL-2.0
//! Takes apart the convolutions at the networks' ends: one with several filters per channel, and
//! one of single pixels after it, both in groups. In ONNX Runtime's blocked layout there are
//! convolutions with one filter per channel, and without groups. So there is one of the first kind
//! for each of the filters, and one of the second kind that adds what it makes of that.

use std::ops::Range;

use ndarray::Array4;

use super::super::convolution::Convolution;
use super::super::{Graph, Result, Value};

/// Maximum number of outputs for which convolutions without groups are faster.
const MAX_OUTPUTS: usize = 16;

/// The two convolutions.
pub struct Tail {
    /// Its output 'filters · c + i' is filter i of channel c.
    pub spatial: Convolution,
    /// Filters of a channel.
    pub filters: usize,
    /// The convolution of single pixels; its groups share nothing.
    pub pointwise: Convolution,
}

/// Takes apart the tail of every output that has few channels.
pub fn split_all(graph: &mut Graph) -> Result<()> {
    for port in graph.outputs.clone() {
        let tail = Tail::before(graph, port.value);
        let Some(tail) = tail.filter(|tail| tail.pointwise.outputs() <= MAX_OUTPUTS) else {
            continue;
        };
        if let Some(output) = tail.split(graph, 0..tail.pointwise.groups, tail.spatial.input()) {
            graph.replace_value(port.value, output);
        }
    }
    Ok(())
}

impl Tail {
    /// The tail that yields `output`.
    pub fn before(graph: &Graph, output: Value) -> Option<Self> {
        let pointwise = Convolution::yielding(graph, output)?;
        let spatial = Convolution::yielding(graph, pointwise.input())?;
        let filters = spatial.outputs() / spatial.groups;
        let fits = pointwise.is_pointwise()
            && spatial.inputs_of_group() == 1
            && filters > 1
            && pointwise.inputs_of_group() * pointwise.groups == spatial.outputs()
            && pointwise.inputs_of_group().is_multiple_of(filters);
        fits.then_some(Self {
            spatial,
            filters,
            pointwise,
        })
    }

    /// Channels of the input that a group depends on.
    pub fn inputs_of_group(&self) -> usize {
        self.pointwise.inputs_of_group() / self.filters
    }

    /// Outputs of a group.
    pub fn outputs_of_group(&self) -> usize {
        self.pointwise.outputs() / self.pointwise.groups
    }

    /// Whether its filters look at 3×3 pixels, and its output has the size of its input.
    pub fn keeps_size(&self) -> bool {
        let is = |name, values: &[i64]| {
            let own = self.spatial.node.attribute(name);
            own.is_some_and(|own| own.ints == values)
        };
        self.spatial.weights.shape()[2..] == [3, 3] && is("pads", &[1; 4]) && is("strides", &[1; 2])
    }

    /// The convolution with filter `filter` of each of the channels `channels`.
    pub fn depthwise(&self, channels: Range<usize>, filter: usize) -> Convolution {
        let groups = channels.len();
        let outputs = channels.map(|channel| channel * self.filters + filter);
        Convolution {
            groups,
            ..self.spatial.with_outputs(outputs)
        }
    }

    /// Weight of filter `filter` of `channel`, a channel of its group, in `output`.
    pub fn weight(&self, output: usize, channel: usize, filter: usize) -> f32 {
        self.pointwise.weights[[output, channel * self.filters + filter, 0, 0]]
    }

    /// Adds nodes that compute the groups `groups` from `input`, which holds the channels that they
    /// depend on. `None` for an activation that is not known here.
    pub fn split(&self, graph: &mut Graph, groups: Range<usize>, input: Value) -> Option<Value> {
        let (ins, outs) = (self.inputs_of_group(), self.outputs_of_group());
        let mut sum: Option<Value> = None;
        for filter in 0..self.filters {
            let depthwise = self.depthwise(groups.start * ins..groups.end * ins, filter);
            let filtered = depthwise.add_to(graph, input);
            let mut pointwise = self.without_groups(groups.clone(), filter);
            if sum.is_some() {
                pointwise.bias = Some(vec![0.0; groups.len() * outs]);
            }
            let part = pointwise.add_to(graph, filtered);
            sum = Some(match sum {
                None => part,
                Some(before) => graph.add("Add", &[before, part], vec![]),
            });
        }
        self.pointwise.add_activation(graph, sum?)
    }

    /// The convolution of single pixels that makes the outputs of `groups` of one filter of each
    /// channel.
    fn without_groups(&self, groups: Range<usize>, filter: usize) -> Convolution {
        let (ins, outs) = (self.inputs_of_group(), self.outputs_of_group());
        let inputs = groups.len() * ins;
        let outputs = groups.start * outs..groups.end * outs;
        let mut dense = self
            .pointwise
            .with_outputs(outputs.clone())
            .without_activation();
        dense.groups = 1;
        dense.weights = Array4::zeros((outputs.len(), inputs, 1, 1));
        for (mut row, output) in dense.weights.outer_iter_mut().zip(outputs) {
            let first = (output / outs - groups.start) * ins;
            for channel in 0..ins {
                row[[first + channel, 0, 0]] = self.weight(output, channel, filter);
            }
        }
        dense
    }
}
