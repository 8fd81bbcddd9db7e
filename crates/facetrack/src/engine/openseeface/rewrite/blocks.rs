// SPDX-License-Identifier: MPL-2.0
//! Rounds channels up to whole blocks with channels that nobody reads: outside convolutions, ONNX Runtime's blocked
//! layout takes whole blocks only.

use std::collections::HashMap;

use super::convolution::Convolution;
use crate::model::onnx_file::{Node, OnnxFile};

/// For each channel of an image, which one of the file's it is; `None` for one that nobody reads.
type Channels = Vec<Option<usize>>;

/// Channels that ONNX Runtime lays side by side on this machine: `NchwcBlockSize` in its `platform.cpp`.
pub fn block() -> usize {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    if !is_x86_feature_detected!("avx512f") {
        return 8;
    }
    16
}

/// Rounds up the channels of all images between convolutions that can have more, to multiples of `block`. A graph in
/// which images that can meet others which can't stays as it is.
pub fn round_channels(file: &mut OnnxFile, block: usize) {
    let roles: Vec<Role> = file
        .nodes()
        .iter()
        .map(|node| Role::of(file, node))
        .collect();
    let mut rounding = Rounding {
        can_have_more: can_have_more(file, &roles),
        channels: HashMap::new(),
        block,
    };
    let nodes = file.nodes().iter().zip(&roles);
    let rounded: Option<Vec<_>> = nodes
        .map(|(node, role)| rounding.follow(file, node, role))
        .collect();
    for convolution in rounded.into_iter().flatten().flatten() {
        let [input, output] = [&convolution.node.input, &convolution.node.output]
            .map(|names| names.first().cloned().unwrap_or_default());
        let node = convolution.into_node(file, &input, &output);
        file.replace(&output, vec![node]);
    }
}

/// What an operator does to the channels of the images that it takes.
enum Role {
    /// A convolution that takes any channels, and yields others.
    Mixes(Convolution),
    /// A convolution with one filter per channel.
    Filters(Convolution),
    /// It yields the channels of its first input.
    Keeps,
    /// It yields the channels that its inputs have in common.
    Ties,
    /// It yields the channels of its inputs one after the other.
    Joins,
    /// It asks for the size alone.
    Measures,
    /// It has to have the channels of the file.
    Other,
}

impl Role {
    fn of(file: &OnnxFile, node: &Node) -> Self {
        if let Some(convolution) = Convolution::of(file, node) {
            return match convolution.groups {
                1 => Self::Mixes(convolution),
                _ if convolution.is_depthwise() => Self::Filters(convolution),
                _ => Self::Other,
            };
        }
        let axis = node.attribute("axis").and_then(|axis| axis.i);
        match node.op_type.as_str() {
            _ if !node.domain.is_empty() => Self::Other,
            "Clip" | "GlobalAveragePool" | "HardSigmoid" | "Identity" | "MaxPool" | "Relu"
            | "Resize" => Self::Keeps,
            "Add" | "Mul" => Self::Ties,
            "Concat" if axis == Some(1) => Self::Joins,
            "Shape" => Self::Measures,
            _ => Self::Other,
        }
    }
}

/// For each value, whether all that takes it copes with more channels than the file says.
fn can_have_more(file: &OnnxFile, roles: &[Role]) -> HashMap<String, bool> {
    let outputs = file.outputs().into_iter();
    let mut can: HashMap<String, bool> = outputs.map(|output| (output.name, false)).collect();
    for (node, role) in file.nodes().iter().zip(roles).rev() {
        let copes = match role {
            Role::Mixes(_) | Role::Measures => true,
            Role::Other => false,
            Role::Filters(_) | Role::Keeps | Role::Ties | Role::Joins => {
                let mut outputs = node.output.iter();
                outputs.all(|output| *can.get(output).unwrap_or(&true))
            }
        };
        for input in &node.input {
            *can.entry(input.clone()).or_insert(true) &= copes;
        }
    }
    can
}

/// What is known of the images so far.
struct Rounding {
    can_have_more: HashMap<String, bool>,
    channels: HashMap<String, Channels>,
    block: usize,
}

impl Rounding {
    /// Goes over `node`, and returns the convolution that it is to be. `None` when the graph can't be rounded.
    fn follow(&mut self, file: &OnnxFile, node: &Node, role: &Role) -> Option<Option<Convolution>> {
        let known = |name: &String| self.channels.get(name).cloned();
        let mut rounded = None;
        let channels = match role {
            Role::Mixes(convolution) => {
                let inputs = self.inputs(node, convolution.inputs_of_group())?;
                let outputs = self.outputs_of(convolution);
                rounded = Some(convolution.select(&outputs, &inputs));
                Some(outputs)
            }
            Role::Filters(convolution) => {
                let channels = self.inputs(node, convolution.groups)?;
                let groups = channels.len();
                rounded = Some(Convolution {
                    groups,
                    ..convolution.select(&channels, &[Some(0)])
                });
                Some(channels)
            }
            Role::Keeps => known(node.input.first()?),
            Role::Ties => {
                let is_image = |name: &&String| file.floats(name).is_err();
                let mut images = node.input.iter().filter(is_image).map(known);
                let first = images.next()?;
                if !images.all(|other| other == first) {
                    return None;
                }
                first
            }
            Role::Joins => Some(joined(node.input.iter().map(known))?),
            Role::Measures | Role::Other => None,
        };
        let output = node.output.first()?;
        self.channels
            .extend(channels.map(|channels| (output.clone(), channels)));
        Some(rounded)
    }

    /// The channels of the image that a convolution of `count` channels takes; `None` for an image of other ones.
    fn inputs(&self, node: &Node, count: usize) -> Option<Channels> {
        match self.channels.get(node.input.first()?) {
            None => Some(file_channels(count)),
            Some(known) => (known.iter().flatten().count() == count).then(|| known.clone()),
        }
    }

    fn outputs_of(&self, convolution: &Convolution) -> Channels {
        let mut channels = file_channels(convolution.outputs());
        let name = convolution.node.output.first();
        if name.and_then(|name| self.can_have_more.get(name)) == Some(&true) {
            channels.resize(channels.len().next_multiple_of(self.block), None);
        }
        channels
    }
}

/// The channels of an image that is as in the file.
fn file_channels(count: usize) -> Channels {
    (0..count).map(Some).collect()
}

/// The channels of `parts` one after the other; `None` if those of one are not known.
fn joined(parts: impl Iterator<Item = Option<Channels>>) -> Option<Channels> {
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
