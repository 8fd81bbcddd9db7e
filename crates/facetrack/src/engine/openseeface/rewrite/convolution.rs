// SPDX-License-Identifier: MPL-2.0
//! Convolutions with constant weights.

use crate::model::onnx_file::{Floats, Node, OnnxFile};

/// The domain of ONNX Runtime's own operators.
const MICROSOFT: &str = "com.microsoft";

/// The operator that takes an activation into itself.
const FUSED: &str = "FusedConv";

/// The attribute that divides the channels.
const GROUP: &str = "group";

/// What a fused convolution does last.
const ACTIVATION: &str = "activation";

/// The numbers that belong to an activation.
const ACTIVATION_PARAMETERS: &str = "activation_params";

/// A convolution of images, with an activation or without.
#[derive(Debug, Clone)]
pub struct Convolution {
    pub node: Node,
    /// [outputs, inputs of a group, height, width].
    pub weights: Floats,
    /// One for each output.
    pub bias: Vec<f32>,
    pub groups: usize,
}

impl Convolution {
    /// `node` if it is one.
    pub fn of(file: &OnnxFile, node: &Node) -> Option<Self> {
        if !is_convolution(node) {
            return None;
        }
        let weights = file.floats(node.input.get(1)?).ok()?;
        let [outputs, _, _, _] = weights.dims[..] else {
            return None;
        };
        let bias = match node.input.get(2) {
            None => vec![0.0; outputs],
            Some(bias) => file.floats(bias).ok()?.values,
        };
        let groups = match node.attribute(GROUP) {
            None => 1,
            Some(group) => usize::try_from(group.i?).ok()?,
        };
        let is_whole = bias.len() == outputs && groups > 0 && outputs % groups == 0;
        is_whole.then(|| Self {
            node: node.clone(),
            weights,
            bias,
            groups,
        })
    }

    /// The one that yields `value`.
    pub fn yielding(file: &OnnxFile, value: &str) -> Option<Self> {
        Self::of(file, file.node_of(value)?)
    }

    /// Channels that it yields.
    pub fn outputs(&self) -> usize {
        self.weights.dims[0]
    }

    /// Channels that each group takes.
    pub fn inputs_of_group(&self) -> usize {
        self.weights.dims[1]
    }

    /// Whether it has one filter for each channel.
    pub fn is_depthwise(&self) -> bool {
        self.inputs_of_group() == 1 && self.outputs() == self.groups
    }

    /// Whether each output depends on one pixel.
    pub fn is_pointwise(&self) -> bool {
        self.weights.dims[2..] == [1, 1]
    }

    /// The same with `outputs` and `inputs` in place of its own, which they are indices of: inputs of a group, zeros for
    /// `None`. The groups are for the caller to set.
    #[must_use]
    pub fn select(&self, outputs: &[Option<usize>], inputs: &[Option<usize>]) -> Self {
        let [_, own_inputs, height, width] = self.weights.dims[..] else {
            return self.clone();
        };
        let filter = height * width;
        let mut values = vec![0.0; outputs.len() * inputs.len() * filter];
        let pairs = outputs
            .iter()
            .flat_map(|output| inputs.iter().map(move |input| output.zip(*input)));
        for (target, pair) in values.chunks_exact_mut(filter).zip(pairs) {
            if let Some((output, input)) = pair {
                let at = (output * own_inputs + input) * filter;
                target.copy_from_slice(&self.weights.values[at..at + filter]);
            }
        }
        let bias = outputs
            .iter()
            .map(|output| output.map_or(0.0, |o| self.bias[o]));
        Self {
            weights: Floats {
                dims: vec![outputs.len(), inputs.len(), height, width],
                values,
            },
            bias: bias.collect(),
            node: self.node.clone(),
            groups: self.groups,
        }
    }

    /// The same with the outputs `kept` alone, in that order. The groups are for the caller to set.
    #[must_use]
    pub fn with_outputs(&self, kept: impl Iterator<Item = usize>) -> Self {
        let inputs: Vec<Option<usize>> = (0..self.inputs_of_group()).map(Some).collect();
        self.select(&kept.map(Some).collect::<Vec<_>>(), &inputs)
    }

    /// The same without its activation.
    #[must_use]
    pub fn without_activation(mut self) -> Self {
        self.node.op_type = "Conv".to_owned();
        self.node.domain.clear();
        self.node
            .attribute
            .retain(|own| own.name != ACTIVATION && own.name != ACTIVATION_PARAMETERS);
        self
    }

    /// The node that does the same with `input` and yields `output`; its constants are added to `file`.
    pub fn into_node(mut self, file: &mut OnnxFile, input: &str, output: &str) -> Node {
        let [weights, bias] = ["weights", "bias"].map(|kind| format!("{output} {kind}"));
        file.add_floats(&weights, &self.weights);
        let dims = vec![self.bias.len()];
        let values = self.bias;
        file.add_floats(&bias, &Floats { dims, values });
        self.node.set_int(GROUP, self.groups as i64);
        self.node.name.clear();
        self.node.input = vec![input.to_owned(), weights, bias];
        self.node.output = vec![output.to_owned()];
        self.node
    }

    /// Nodes that apply its activation to `input` and yield `output`; `None` for one that is not known here.
    pub fn activation(&self, file: &mut OnnxFile, input: &str, output: &str) -> Option<Node> {
        let Some(activation) = self.node.attribute(ACTIVATION) else {
            return Some(Node::new("Identity", &[input], output));
        };
        let parameters = self.node.attribute(ACTIVATION_PARAMETERS);
        let parameters = parameters.map_or(&[][..], |own| &own.floats);
        match (activation.s.as_deref()?, parameters) {
            (b"Relu", _) => Some(Node::new("Relu", &[input], output)),
            (b"Clip", [least, greatest]) => {
                let bounds = [("least", *least), ("greatest", *greatest)];
                let [least, greatest] = bounds.map(|(name, value)| {
                    let name = format!("{output} {name}");
                    file.add_floats(&name, &Floats::scalar(value));
                    name
                });
                Some(Node::new("Clip", &[input, &least, &greatest], output))
            }
            _ => None,
        }
    }
}

/// Whether `node` is a convolution, with an activation or without.
pub fn is_convolution(node: &Node) -> bool {
    match node.domain.as_str() {
        "" => node.op_type == "Conv",
        MICROSOFT => node.op_type == FUSED,
        _ => false,
    }
}
