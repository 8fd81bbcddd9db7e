// SPDX-License-Identifier: MPL-2.0
//! The last convolutions of OpenSeeFace's networks: one with several filters per channel, and then
//! one of single pixels, both in groups.

use std::ops::Range;

use super::convolution::Convolution;
use super::{Graph, Value};

/// The two convolutions.
pub struct Tail {
    /// Its output 'filters · c + i' is filter i of channel c.
    pub spatial: Convolution,
    /// Filters of a channel.
    pub filters: usize,
    /// The convolution of single pixels; its groups share nothing.
    pub pointwise: Convolution,
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
}
