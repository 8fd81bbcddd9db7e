// SPDX-License-Identifier: MPL-2.0
//! Rounds channels up to whole blocks with channels that nothing reads: ONNX Runtime's blocked
//! layout takes whole blocks only.

use super::super::convolution::Convolution;
use super::super::{Graph, Node, Result, Value};

/// For each channel of an image, its index in the file; `None` for one that is added.
type Channels = Vec<Option<usize>>;

/// Channels of a block on this machine: `NchwcBlockSize` in ONNX Runtime's `platform.cpp`.
pub fn native() -> usize {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if !is_x86_feature_detected!("avx512f") {
        return 8;
    }
    16
}

/// Rounds up the channels of all images between convolutions that can have more, to multiples of
/// `block`. A graph stays as it is if such an image meets one that can't have more.
pub fn round_channels(graph: &mut Graph, block: usize) -> Result<()> {
    let nodes = graph.nodes.iter();
    let roles: Vec<Role> = nodes.map(|node| Role::of(graph, node)).collect();
    let mut rounding = Rounding {
        can_have_more: can_have_more(graph, &roles),
        channels: vec![None; graph.values.len()],
        graph: graph.clone(),
        block,
    };
    for (index, role) in roles.iter().enumerate() {
        if rounding.follow(index, role).is_none() {
            return Ok(());
        }
        rounding.graph.check_size()?;
    }
    *graph = rounding.finish();
    Ok(())
}

/// Effect of an operator on the channels of the images that it takes.
enum Role {
    /// A convolution without groups.
    Mixes(Convolution),
    /// A convolution with one filter per channel.
    Filters(Convolution),
    /// It yields the channels of its first input.
    Keeps,
    /// It yields the channels that its inputs have in common.
    Ties,
    /// It yields the channels of its inputs one after the other.
    Joins,
    /// It only reads the size.
    Measures,
    /// It needs the channels of the file.
    Other,
}

impl Role {
    fn of(graph: &Graph, node: &Node) -> Self {
        if let Some(convolution) = Convolution::of(graph, node) {
            return match convolution.groups {
                1 => Self::Mixes(convolution),
                _ if convolution.is_depthwise() => Self::Filters(convolution),
                _ => Self::Other,
            };
        }
        let axis = node.attribute("axis").and_then(|axis| axis.i);
        match node.op.as_str() {
            _ if !node.domain.is_empty() => Self::Other,
            "Resize" if is_resized_by_constant(graph, node) => Self::Other,
            "Clip" | "GlobalAveragePool" | "HardSigmoid" | "Identity" | "MaxPool" | "Relu"
            | "Resize" => Self::Keeps,
            "Add" | "Mul" if takes_channels_from_constant(graph, node) => Self::Other,
            "Add" | "Mul" => Self::Ties,
            "Concat" if axis == Some(1) => Self::Joins,
            "Shape" => Self::Measures,
            _ => Self::Other,
        }
    }
}

/// Whether the size that `node` yields is a constant, which includes the number of channels.
fn is_resized_by_constant(graph: &Graph, node: &Node) -> bool {
    let size = node.inputs.get(3);
    size.is_some_and(|size| graph.is_constant(*size))
}

/// Whether `node` takes a constant other than a single number.
fn takes_channels_from_constant(graph: &Graph, node: &Node) -> bool {
    let is_number = |value| graph.floats(value).is_some_and(|own| own.len() == 1);
    let mut inputs = node.inputs.iter().copied();
    inputs.any(|input| graph.is_constant(input) && !is_number(input))
}

/// For each value, whether everything that takes it copes with more channels than the file says.
fn can_have_more(graph: &Graph, roles: &[Role]) -> Vec<bool> {
    let mut can = vec![true; graph.values.len()];
    for port in &graph.outputs {
        can[port.value.0] = false;
    }
    for (node, role) in graph.nodes.iter().zip(roles).rev() {
        let copes = match role {
            Role::Mixes(_) | Role::Measures => true,
            Role::Other => false,
            Role::Filters(_) | Role::Keeps | Role::Ties | Role::Joins => {
                node.outputs.iter().all(|output| can[output.0])
            }
        };
        for input in &node.inputs {
            can[input.0] &= copes;
        }
    }
    can
}

/// The graph as it is rounded, node by node.
struct Rounding {
    graph: Graph,
    can_have_more: Vec<bool>,
    /// Channels of the images that are known so far.
    channels: Vec<Option<Channels>>,
    block: usize,
}

impl Rounding {
    /// Rounds the node at `index`. `None` if the graph can't be rounded.
    fn follow(&mut self, index: usize, role: &Role) -> Option<()> {
        let node = self.graph.nodes[index].clone();
        let first = node.inputs.first().copied();
        let channels = match role {
            Role::Mixes(convolution) => {
                let inputs = self.inputs(first?, convolution.inputs_of_group())?;
                let outputs = self.rounded(convolution.outputs(), node.output());
                self.put(index, convolution, convolution.select(&outputs, &inputs));
                Some(outputs)
            }
            Role::Filters(convolution) => {
                let channels = self.inputs(first?, convolution.groups)?;
                let mut rounded = convolution.select(&channels, &[Some(0)]);
                rounded.groups = channels.len();
                self.put(index, convolution, rounded);
                Some(channels)
            }
            Role::Keeps => self.channels[first?.0].clone(),
            Role::Ties => self.tied(&node)?,
            Role::Joins => {
                let parts = node.inputs.iter();
                Some(joined(parts.map(|part| self.channels[part.0].as_ref()))?)
            }
            Role::Measures | Role::Other => None,
        };
        self.channels[node.output().0] = channels;
        Some(())
    }

    /// Puts a convolution in place of the node at `index`, unless its channels stay.
    fn put(&mut self, index: usize, before: &Convolution, after: Convolution) {
        if before.weights.dim() != after.weights.dim() {
            after.put(&mut self.graph, index);
        }
    }

    /// The channels of the image that a convolution of `count` channels takes; `None` if the image
    /// has others.
    fn inputs(&self, image: Value, count: usize) -> Option<Channels> {
        match &self.channels[image.0] {
            None => Some(file_channels(count)),
            Some(known) => (known.iter().flatten().count() == count).then(|| known.clone()),
        }
    }

    /// `count` channels of the file and those that are added to them in `image`.
    fn rounded(&self, count: usize, image: Value) -> Channels {
        let mut channels = file_channels(count);
        if self.can_have_more[image.0] {
            channels.resize(count.next_multiple_of(self.block), None);
        }
        channels
    }

    /// The channels that all images that `node` takes have in common; `None` if they differ.
    fn tied(&self, node: &Node) -> Option<Option<Channels>> {
        let images = node
            .inputs
            .iter()
            .filter(|input| !self.graph.is_constant(**input));
        let mut images = images.map(|image| &self.channels[image.0]);
        let first = images.next()?;
        images.all(|other| other == first).then(|| first.clone())
    }

    /// The graph, with the new channels in the shapes of its values.
    fn finish(mut self) -> Graph {
        for (info, channels) in self.graph.values.iter_mut().zip(&self.channels) {
            if let (Some(own), Some(channels)) = (info.shape.get_mut(1), channels) {
                *own = channels.len();
            }
        }
        self.graph
    }
}

/// The channels of an image that is as in the file.
fn file_channels(count: usize) -> Channels {
    (0..count).map(Some).collect()
}

/// The channels of `parts` one after the other; `None` if a part has unknown channels.
fn joined<'a>(parts: impl Iterator<Item = Option<&'a Channels>>) -> Option<Channels> {
    let mut all = Channels::new();
    let mut before = 0;
    for part in parts {
        let part = part?;
        all.extend(part.iter().map(|channel| channel.map(|own| own + before)));
        before += part.iter().flatten().count();
    }
    Some(all)
}

#[cfg(test)]
mod tests;
