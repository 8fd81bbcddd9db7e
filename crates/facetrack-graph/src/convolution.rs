// SPDX-License-Identifier: MPL-2.0
//! Convolutions with constant weights.

use ndarray::{Array4, Axis, Ix4, concatenate};

use super::{Attribute, Graph, Node, Value};

/// The domain of ONNX Runtime's own operators.
const MICROSOFT: &str = "com.microsoft";

/// Operator of [`MICROSOFT`]: a convolution with an activation.
const FUSED: &str = "FusedConv";

/// The attribute that divides the channels.
const GROUP: &str = "group";

/// The attributes of a [`FUSED`] convolution.
const ACTIVATION: &str = "activation";
const ACTIVATION_PARAMETERS: &str = "activation_params";

/// A convolution of images, with an activation or without.
#[derive(Debug, Clone)]
pub struct Convolution {
    /// The operator, with its attributes.
    pub node: Node,
    /// [outputs, inputs of a group, height, width].
    pub weights: Array4<f32>,
    /// Bias of each output.
    pub bias: Option<Vec<f32>>,
    /// Groups of channels that do not depend on each other.
    pub groups: usize,
}

impl Convolution {
    /// Returns the convolution that `node` is, if it is one.
    pub fn of(graph: &Graph, node: &Node) -> Option<Self> {
        if !is_convolution(node) {
            return None;
        }
        let weights = graph.floats(*node.inputs.get(1)?)?;
        let weights = weights.into_dimensionality::<Ix4>().ok()?;
        let outputs = weights.dim().0;
        let bias = match node.inputs.get(2) {
            None => None,
            Some(bias) => Some(graph.floats(*bias)?.into_iter().collect::<Vec<_>>()),
        };
        let groups = match node.attribute(GROUP) {
            None => 1,
            Some(group) => usize::try_from(group.i?).ok()?,
        };
        let is_whole = bias.as_ref().is_none_or(|bias| bias.len() == outputs)
            && groups > 0
            && outputs.is_multiple_of(groups);
        is_whole.then(|| Self {
            node: node.clone(),
            weights,
            bias,
            groups,
        })
    }

    /// The convolution that yields `value`.
    pub fn yielding(graph: &Graph, value: Value) -> Option<Self> {
        Self::of(graph, graph.producer(value)?)
    }

    /// The input image.
    pub fn input(&self) -> Value {
        self.node.inputs[0]
    }

    /// Number of output channels.
    pub fn outputs(&self) -> usize {
        self.weights.dim().0
    }

    /// Number of input channels of each group.
    pub fn inputs_of_group(&self) -> usize {
        self.weights.dim().1
    }

    /// Returns true if each output depends on one pixel.
    pub fn is_pointwise(&self) -> bool {
        self.weights.shape()[2..] == [1, 1]
    }

    /// Returns true if each output pixel depends on a square around its position, and the output is
    /// as large as the image.
    pub fn keeps_size(&self) -> bool {
        let (_, _, height, width) = self.weights.dim();
        let are = |name, value: i64, default| {
            let own = self.node.attribute(name);
            own.map_or(value == default, |own| {
                own.ints.iter().all(|own| *own == value)
            })
        };
        height == width
            && height % 2 == 1
            && are("pads", height as i64 / 2, 0)
            && are("strides", 1, 1)
            && are("dilations", 1, 1)
            && self.node.attribute("auto_pad").is_none()
    }

    /// Selects outputs, in this order. The caller sets the groups.
    #[must_use]
    pub fn with_outputs(&self, kept: impl IntoIterator<Item = usize>) -> Self {
        let kept: Vec<usize> = kept.into_iter().collect();
        let bias = self.bias.as_ref();
        Self {
            weights: self.weights.select(Axis(0), &kept),
            bias: bias.map(|bias| kept.iter().map(|output| bias[*output]).collect()),
            ..self.clone()
        }
    }

    /// The outputs of all `parts`, one after the other, as a single convolution. `None` if the
    /// parts differ in more than weights and groups.
    pub fn join(parts: &[Self], groups: usize) -> Option<Self> {
        let (first, rest) = parts.split_first()?;
        if !rest.iter().all(|part| first.is_like(part)) {
            return None;
        }
        let mut joined = first.clone();
        joined.groups = groups;
        let weights: Vec<_> = parts.iter().map(|part| part.weights.view()).collect();
        joined.weights = concatenate(Axis(0), &weights).ok()?;
        joined.bias = Some(parts.iter().flat_map(Self::biases).collect());
        Some(joined)
    }

    /// Returns true if the convolution differs from `other` only in weights, groups and image.
    pub fn is_like(&self, other: &Self) -> bool {
        let attributes = |own: &Self| -> Vec<Attribute> {
            let all = own.node.attributes.iter();
            all.filter(|own| own.name != GROUP).cloned().collect()
        };
        self.node.op == other.node.op
            && attributes(self) == attributes(other)
            && self.weights.shape()[1..] == other.weights.shape()[1..]
    }

    /// Adds it to `graph` as a node that takes `input`, and returns the output.
    pub fn add_to(self, graph: &mut Graph, input: Value) -> Value {
        let output = graph.add_value(Vec::new());
        let node = self.into_node(graph, input, output);
        graph.nodes.push(node);
        output
    }

    /// Replaces the node at `index` of `graph` by this convolution.
    pub fn put(self, graph: &mut Graph, index: usize) {
        let (input, output) = (self.input(), self.node.output());
        graph.nodes[index] = self.into_node(graph, input, output);
    }

    fn into_node(mut self, graph: &mut Graph, input: Value, output: Value) -> Node {
        let weights = graph.add_floats(self.weights.shape(), &self.weights);
        let bias = self.bias.map(|bias| graph.add_floats(&[bias.len()], &bias));
        self.node.set(Attribute::int(GROUP, self.groups as i64));
        self.node.inputs = [input, weights].into_iter().chain(bias).collect();
        self.node.outputs = vec![output];
        self.node
    }

    /// The bias of each output.
    pub fn biases(&self) -> Vec<f32> {
        let bias = self.bias.clone();
        bias.unwrap_or_else(|| vec![0.0; self.outputs()])
    }

    /// Range to which the activation limits the outputs, minimum first. `None` for an activation
    /// that is not known here.
    pub fn range(&self) -> Option<[f32; 2]> {
        let Some(activation) = self.node.attribute(ACTIVATION) else {
            return Some([f32::NEG_INFINITY, f32::INFINITY]);
        };
        let parameters = self.node.attribute(ACTIVATION_PARAMETERS);
        let parameters = parameters.map_or(&[][..], |own| &own.floats);
        match (activation.s.as_deref()?, parameters) {
            (b"Relu", _) => Some([0.0, f32::INFINITY]),
            (b"Clip", [least, most]) if least <= most => Some([*least, *most]),
            _ => None,
        }
    }
}

/// Returns true if `node` is a convolution, with an activation or without.
fn is_convolution(node: &Node) -> bool {
    node.is("Conv") || (node.op == FUSED && node.domain == MICROSOFT)
}
