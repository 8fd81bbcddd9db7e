// SPDX-License-Identifier: MPL-2.0
//! Takes apart the convolutions at the networks' ends: one with several filters per channel, and one of single pixels
//! after it, both in groups. In ONNX Runtime's blocked layout there are convolutions with one filter per channel, and
//! without groups. So there is one of the first kind for each of the filters, and one of the second kind that adds what it
//! makes of that.

use std::ops::Range;

use super::convolution::Convolution;
use crate::model::onnx_file::{Node, OnnxFile};

/// Most outputs for which it pays to have no groups.
const MOST_OUTPUTS: usize = 16;

/// The two convolutions.
pub struct Tail {
    /// Its output 'filters · c + i' is filter i of channel c.
    spatial: Convolution,
    filters: usize,
    pointwise: Convolution,
}

/// Takes apart the tail of every output that has few channels.
pub fn split_all(file: &mut OnnxFile) {
    for output in file.outputs() {
        let Some(tail) = Tail::before(file, &output.name) else {
            continue;
        };
        if tail.pointwise.outputs() > MOST_OUTPUTS {
            continue;
        }
        let groups = 0..tail.pointwise.groups;
        let input = tail.input().to_owned();
        if let Some(nodes) = tail.split(file, groups, &input, &output.name) {
            file.replace(&output.name, nodes);
        }
    }
}

impl Tail {
    /// The tail that yields `output`.
    pub fn before(file: &OnnxFile, output: &str) -> Option<Self> {
        let pointwise = Convolution::yielding(file, output)?;
        let spatial = Convolution::yielding(file, pointwise.node.input.first()?)?;
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

    /// What it is computed from.
    pub fn input(&self) -> &str {
        &self.spatial.node.input[0]
    }

    /// Filters of a channel.
    pub fn filters(&self) -> usize {
        self.filters
    }

    /// Groups that share nothing.
    pub fn groups(&self) -> usize {
        self.pointwise.groups
    }

    /// Channels of the input that a group depends on.
    pub fn inputs_of_group(&self) -> usize {
        self.pointwise.inputs_of_group() / self.filters
    }

    /// Outputs of a group.
    pub fn outputs_of_group(&self) -> usize {
        self.pointwise.outputs() / self.pointwise.groups
    }

    /// The convolution of single pixels.
    pub fn pointwise(&self) -> &Convolution {
        &self.pointwise
    }

    /// Whether its filters look at 3×3 pixels, and what it yields has the size of what it takes.
    pub fn keeps_size(&self) -> bool {
        let is = |name, values: &[i64]| {
            let own = self.spatial.node.attribute(name);
            own.is_some_and(|own| own.ints == values)
        };
        self.spatial.weights.dims[2..] == [3, 3] && is("pads", &[1; 4]) && is("strides", &[1; 2])
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

    /// What `output` makes of filter `filter` of `channel`, a channel of its group.
    pub fn weight(&self, output: usize, channel: usize, filter: usize) -> f32 {
        let inputs = self.pointwise.inputs_of_group();
        self.pointwise.weights.values[output * inputs + channel * self.filters + filter]
    }

    /// Nodes that make the groups `groups` of `input`, which holds the channels that they depend on, and yield `output`.
    /// `None` for an activation that is not known here.
    pub fn split(
        &self,
        file: &mut OnnxFile,
        groups: Range<usize>,
        input: &str,
        output: &str,
    ) -> Option<Vec<Node>> {
        let (ins, outs) = (self.inputs_of_group(), self.outputs_of_group());
        let mut nodes = Vec::new();
        let mut sum: Option<String> = None;
        for filter in 0..self.filters {
            let name = |kind: &str| format!("{output} {kind} {filter}");
            let [filtered, part] = [name("filtered"), name("part")];
            let depthwise = self.depthwise(groups.start * ins..groups.end * ins, filter);
            nodes.push(depthwise.into_node(file, input, &filtered));
            let mut pointwise = self.without_groups(groups.clone(), filter);
            if sum.is_some() {
                pointwise.bias = vec![0.0; groups.len() * outs];
            }
            nodes.push(pointwise.into_node(file, &filtered, &part));
            sum = Some(match sum {
                None => part,
                Some(before) => {
                    let after = name("sum");
                    nodes.push(Node::new("Add", &[&before, &part], &after));
                    after
                }
            });
        }
        nodes.push(self.pointwise.activation(file, &sum?, output)?);
        Some(nodes)
    }

    /// The convolution of single pixels that makes the outputs of `groups` of one filter of each channel.
    fn without_groups(&self, groups: Range<usize>, filter: usize) -> Convolution {
        let (ins, outs) = (self.inputs_of_group(), self.outputs_of_group());
        let inputs = groups.len() * ins;
        let outputs = groups.start * outs..groups.end * outs;
        let mut dense = self
            .pointwise
            .with_outputs(outputs.clone())
            .without_activation();
        dense.groups = 1;
        dense.weights.dims[1] = inputs;
        dense.weights.values = vec![0.0; outputs.len() * inputs];
        for (row, output) in dense.weights.values.chunks_exact_mut(inputs).zip(outputs) {
            let first = (output / outs - groups.start) * ins;
            for (channel, weight) in row[first..first + ins].iter_mut().enumerate() {
                *weight = self.weight(output, channel, filter);
            }
        }
        dense
    }
}
