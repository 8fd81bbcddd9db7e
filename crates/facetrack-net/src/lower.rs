// SPDX-License-Identifier: MPL-2.0
//! Converts the nodes of a graph to layers.

mod activation;
mod convolution;
mod elementwise;
mod input;
mod join;
mod product;
mod resize;
mod select;
mod shape;
mod tail;

use std::collections::HashMap;

use facetrack_graph::{Graph, Node, Value};

use crate::kernel::{Activation, padded};
use crate::layer::{Extent, Id, Layer, MAX_CHANNELS, Operator, Shape};

/// A node that is not supported, or a reason.
pub(crate) type Unsupported = String;

type Result<T> = std::result::Result<T, Unsupported>;

/// The axis of the channels in a graph.
const CHANNELS: usize = 1;

/// Maximum number of layers of a network: ten times as many as the largest known one has.
const MAX_LAYERS: usize = 4096;

/// Maximum number of packed weights of a network: about ten times as many as the largest known one
/// has.
const MAX_WEIGHTS: usize = 1 << 25;

/// The layers of a network, and its tensors.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub layers: Vec<Layer>,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    /// Number of tensors.
    pub tensors: usize,
}

/// An input of a network.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub id: Id,
    pub channels: usize,
    /// Order of its elements.
    pub order: Order,
    /// Channels in memory.
    pub stored: usize,
    /// True if each row has its channels one after the other.
    pub is_planar: bool,
    /// The factor that its elements are multiplied by, and the number that is added then.
    pub scale: [f32; 2],
}

/// The order of a tensor's elements in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Channels, rows, columns.
    ChannelsFirst,
    /// Rows, columns, channels.
    ChannelsLast,
}

/// An output of a network: tensors, one behind the other.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub pieces: Vec<Piece>,
    /// Shape of the output in the graph; empty if it depends on the image.
    pub declared: Vec<usize>,
    /// The extents of a list.
    pub extents: Option<Vec<Extent>>,
}

/// A part of an output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub id: Id,
    pub order: Order,
}

/// Form of a value of the graph in the layers.
#[derive(Debug, Clone)]
enum Form {
    Tensor(Piece),
    /// Zeros behind the channels of a tensor, up to this number.
    Widened(Id, usize),
    /// The elements of tensors, one behind the other, as a list of these extents.
    Flat(Vec<Piece>, Vec<Extent>),
    /// Whole numbers.
    Extents(Vec<Extent>),
    /// Constant numbers of a node.
    Numbers(Vec<f32>),
}

/// Converts `graph`, whose nodes are sorted, to layers.
pub(crate) fn lower(graph: &Graph) -> Result<Layers> {
    let mut lowering = Lowering {
        graph,
        users: graph.users(),
        layers: Layers::default(),
        forms: HashMap::new(),
        channels: Vec::new(),
        shapes: Vec::new(),
        weights: 0,
    };
    lowering.declare_inputs()?;
    for node in &graph.nodes {
        let form = lowering
            .node(node)
            .map_err(|reason| format!("{}: {reason}", node.op))?;
        lowering.forms.insert(node.output(), form);
    }
    let outputs = graph.outputs.iter().map(|port| lowering.output(port.value));
    let outputs = outputs.collect::<Result<Vec<_>>>()?;
    let mut layers = lowering.layers;
    select::fold(&mut layers.layers, &outputs, lowering.weights);
    layers.outputs = outputs;
    layers.tensors = lowering.channels.len();
    Ok(layers)
}

/// The layers of the nodes so far.
struct Lowering<'a> {
    graph: &'a Graph,
    /// The nodes that take each value.
    users: Vec<Vec<usize>>,
    layers: Layers,
    /// The values that are known.
    forms: HashMap<Value, Form>,
    /// For each tensor: channels, and channels in memory.
    channels: Vec<(usize, usize)>,
    /// Shape of each tensor, if the inputs have fixed extents.
    shapes: Vec<Option<Shape>>,
    /// Packed weights so far.
    weights: usize,
}

impl Lowering<'_> {
    fn add_tensor(&mut self, channels: usize, stored: usize, shape: Option<Shape>) -> Result<Id> {
        if !(1..=MAX_CHANNELS).contains(&channels) {
            return Err(format!("{channels} channels"));
        }
        self.channels.push((channels, stored));
        self.shapes.push(shape);
        Ok(self.channels.len() - 1)
    }

    /// Adds a layer that yields a tensor with this number of channels.
    fn add(
        &mut self,
        operator: Operator,
        inputs: Vec<Id>,
        channels: usize,
        order: Order,
    ) -> Result<Piece> {
        if self.layers.layers.len() >= MAX_LAYERS {
            return Err(format!("more than {MAX_LAYERS} layers"));
        }
        let activation = Activation::Linear;
        let layer = Layer {
            operator,
            activation,
            inputs,
            output: 0,
        };
        let is_known = layer.inputs.iter().all(|id| self.shapes[*id].is_some());
        let shape = layer.shape(|id| self.shapes[id]);
        if is_known && shape.is_none() {
            return Err("operands that do not fit each other".to_owned());
        }
        let id = self.add_tensor(channels, padded(channels), shape)?;
        self.layers.layers.push(Layer {
            output: id,
            ..layer
        });
        Ok(Piece { id, order })
    }

    /// Adds a layer whose output has the channels of its input.
    fn add_like(&mut self, operator: Operator, piece: Piece) -> Result<Piece> {
        self.add(
            operator,
            vec![piece.id],
            self.channels[piece.id].0,
            piece.order,
        )
    }

    /// Counts weights whose packed form has these extents.
    fn reserve(&mut self, extents: &[usize]) -> Result<()> {
        let count = extents
            .iter()
            .try_fold(1, |product: usize, own| product.checked_mul(*own));
        let sum = count.and_then(|count| self.weights.checked_add(count));
        self.weights = sum
            .filter(|sum| *sum <= MAX_WEIGHTS)
            .ok_or("too many weights")?;
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Result<Form> {
        if let Some(form) = self.forms.get(&node.output()) {
            return Ok(form.clone());
        }
        let is_fused = node.op == "FusedConv" && node.domain == "com.microsoft";
        if !(node.domain.is_empty() || is_fused) || node.outputs.len() != 1 {
            return Err("an operator that is not known".to_owned());
        }
        match node.op.as_str() {
            "Conv" | "FusedConv" => self.convolution(node).map(Form::Tensor),
            "MaxPool" => self.max_pool(node).map(Form::Tensor),
            "GlobalAveragePool" => {
                let piece = self.image(operand(node, 0)?)?;
                self.add_like(Operator::Mean, piece).map(Form::Tensor)
            }
            "Gemm" => self.product(node).map(Form::Tensor),
            "Relu" => self.activate(node, Activation::relu()),
            "PRelu" => self.prelu(node),
            "Clip" => self.clip(node),
            "HardSigmoid" => {
                let [a, b] = [float(node, "alpha", 0.2), float(node, "beta", 0.5)];
                self.unary(node, &Operator::HardSigmoid(a, b))
            }
            "Sigmoid" => self.unary(node, &Operator::Sigmoid),
            "Sqrt" => self.unary(node, &Operator::Sqrt),
            "Add" | "Sub" | "Mul" | "Div" => self.arithmetic(node),
            "LayerNormalization" => self.normalization(node).map(Form::Tensor),
            "ReduceMean" | "ReduceSum" => self.reduce(node).map(Form::Tensor),
            "Pad" => self.pad(node),
            "Concat" => self.concat(node),
            "Resize" => self.resize(node).map(Form::Tensor),
            "Transpose" => self.transpose(node),
            "Reshape" | "Flatten" => self.reshape(node),
            "Slice" => self.slice(node),
            "Identity" => self.form(operand(node, 0)?),
            "Shape" | "Gather" | "Unsqueeze" | "Cast" | "Constant" => self.extents(node),
            _ => Err("an operator that is not supported".to_owned()),
        }
    }

    fn form(&self, value: Value) -> Result<Form> {
        match self.graph.ints(value) {
            Some(ints) => shape::extents_of(&ints).map(Form::Extents),
            None => self
                .forms
                .get(&value)
                .cloned()
                .ok_or_else(|| "a constant operand".to_owned()),
        }
    }

    fn tensor(&mut self, value: Value) -> Result<Piece> {
        match self.form(value)? {
            Form::Tensor(piece) => Ok(piece),
            Form::Widened(id, channels) => self.add(
                Operator::Concat(channels),
                vec![id],
                channels,
                Order::ChannelsFirst,
            ),
            _ => Err("a list where an image is needed".to_owned()),
        }
    }

    /// A tensor that has its channels first.
    fn image(&mut self, value: Value) -> Result<Piece> {
        let piece = self.tensor(value)?;
        match piece.order {
            Order::ChannelsFirst => Ok(piece),
            Order::ChannelsLast => Err("a matrix where an image is needed".to_owned()),
        }
    }

    fn output(&mut self, value: Value) -> Result<Output> {
        let (pieces, extents) = match self.form(value)? {
            Form::Flat(pieces, extents) => (pieces, Some(extents)),
            _ => {
                let piece = self.tensor(value)?;
                self.joined(value, piece).unwrap_or((vec![piece], None))
            }
        };
        let declared = self.graph.shape(value).to_vec();
        Ok(Output {
            pieces,
            declared,
            extents,
        })
    }

    /// The images that `piece` joins, with the extents of the output, if only the output needs them joined.
    fn joined(&mut self, value: Value, piece: Piece) -> Option<(Vec<Piece>, Option<Vec<Extent>>)> {
        let place = self.place(piece.id)?;
        let layer = &self.layers.layers[place];
        let parts = layer.inputs.iter().map(|id| Piece { id: *id, ..piece });
        let parts: Vec<Piece> = parts.collect();
        let channels = parts.iter().map(|part| self.channels[part.id].0).sum();
        let is_whole = matches!(layer.operator, Operator::Concat(sum) if sum == channels);
        // The output of the graph is its only user.
        let is_output = *self.users(value) == [usize::MAX];
        let is_plain =
            layer.activation == Activation::Linear && piece.order == Order::ChannelsFirst;
        if !(is_whole && is_output && is_plain) {
            return None;
        }
        let size = [2, 3].map(|axis| Extent::Of(parts[0].id, axis));
        let extents = [Extent::Fixed(1), Extent::Fixed(channels)];
        self.layers.layers.remove(place);
        Some((parts, Some([extents, size].concat())))
    }

    /// The nodes that take `value`.
    fn users(&self, value: Value) -> &[usize] {
        &self.users[value.index()]
    }

    /// The node that takes `value`, if it is the only one.
    fn only_user(&self, value: Value) -> Option<&Node> {
        match *self.users(value) {
            [user] => self.graph.nodes.get(user),
            _ => None,
        }
    }
}

/// An operand of a node.
fn operand(node: &Node, index: usize) -> Result<Value> {
    node.inputs
        .get(index)
        .copied()
        .ok_or_else(|| format!("no operand {index}"))
}

/// An attribute that is a float.
fn float(node: &Node, name: &str, default: f32) -> f32 {
    node.attribute(name)
        .and_then(|own| own.f)
        .unwrap_or(default)
}

/// An attribute that is a whole number.
fn int(node: &Node, name: &str, default: i64) -> i64 {
    node.attribute(name)
        .and_then(|own| own.i)
        .unwrap_or(default)
}
