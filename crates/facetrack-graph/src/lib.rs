// SPDX-License-Identifier: MPL-2.0
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![warn(unreachable_pub)]

pub mod convolution;
mod onnx;
pub mod outline;
pub mod parts;
pub mod passes;
pub mod proto;
pub mod tail;
pub mod tflite;

use std::ops::Range;

use ndarray::ArrayD;
use prost::bytes::Bytes;

pub use proto::Attribute;
use proto::{DimensionProto, ModelProto, TensorProto, TypeProto};

/// Describes an error in a file.
pub type Reason = String;

/// Result whose error describes a fault of a file.
pub type Result<T, E = Reason> = std::result::Result<T, E>;

/// Maximum size of the constants of a graph, in bytes, including those that a pass replaced: ten
/// times the size of the largest network that passes change. Operators of a file may share a
/// constant but get one each in the graph, so the size of the file does not limit the constants.
const MAX_CONSTANT_BYTES: usize = 64 << 20;

/// Name and shape of one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// The name in the model file.
    pub name: String,
    /// Extents, outermost first; `None` where the model takes any.
    pub shape: Vec<Option<usize>>,
}

impl TensorSpec {
    /// Returns true if a tensor of the shape `wanted` fits, with any number of items along its
    /// first axis.
    pub fn takes_batch(&self, wanted: &[usize]) -> bool {
        let mut extents = self.shape.iter().zip(wanted).skip(1);
        self.shape.len() == wanted.len()
            && extents.all(|(has, wants)| has.is_none_or(|has| has == *wants))
    }

    /// Returns true if a tensor of the shape `wanted` fits.
    pub fn takes(&self, wanted: &[usize]) -> bool {
        let mut extents = self.shape.iter().zip(wanted);
        self.shape.len() == wanted.len()
            && extents.all(|(has, wants)| has.is_none_or(|has| has == *wants))
    }
}

/// A value of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(usize);

impl Value {
    /// Position of the value in [`Graph::producers`] and [`Graph::users`].
    pub fn index(self) -> usize {
        self.0
    }
}

/// A constant of floats.
pub type Floats = ArrayD<f32>;

/// An operator.
#[derive(Debug, Clone)]
pub struct Node {
    /// Name of the operator in ONNX.
    pub op: String,
    /// Domain of the operator; empty for ONNX itself.
    pub domain: String,
    /// Inputs or outputs in the order of the operator's definition.
    pub inputs: Vec<Value>,
    /// Outputs; at least one.
    pub outputs: Vec<Value>,
    /// Attributes in any order.
    pub attributes: Vec<Attribute>,
}

impl Node {
    /// Returns true if this is the operator `op` of ONNX itself.
    pub fn is(&self, op: &str) -> bool {
        self.op == op && self.domain.is_empty()
    }

    /// Returns the inputs of the node if it is the operator `op` of ONNX itself and has `N` of
    /// them.
    pub fn operands<const N: usize>(&self, op: &str) -> Option<[Value; N]> {
        let inputs = self.inputs.as_slice().try_into().ok();
        inputs.filter(|_| self.is(op))
    }

    /// The first output; readers refuse nodes without outputs.
    pub fn output(&self) -> Value {
        self.outputs[0]
    }

    /// The attribute `name`.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|own| own.name == name)
    }

    /// Sets an attribute, replacing the one with the same name.
    pub fn set(&mut self, attribute: Attribute) {
        self.attributes.retain(|own| own.name != attribute.name);
        self.attributes.push(attribute);
    }
}

/// Properties of a value.
#[derive(Debug, Clone)]
struct Info {
    /// Name in the file; values that are added have none.
    name: Option<String>,
    /// Extents; empty if unknown, as for most values in ONNX files.
    shape: Vec<usize>,
    constant: Option<TensorProto>,
}

/// An input or output of a graph.
#[derive(Debug, Clone)]
pub struct Port {
    /// The value of the input or output.
    pub value: Value,
    kind: Option<TypeProto>,
}

/// Nodes and the values between them.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Versions that an ONNX file declares; the graph in it is empty.
    versions: ModelProto,
    values: Vec<Info>,
    /// Operators. Those of a file come after the operators that they depend on.
    pub nodes: Vec<Node>,
    /// Inputs, in the order of a run's arguments.
    pub inputs: Vec<Port>,
    /// Outputs, in the order of a run's results.
    pub outputs: Vec<Port>,
    constant_bytes: usize,
}

impl Graph {
    /// An empty graph that uses version `opset` of ONNX's operators.
    pub fn new(opset: i64) -> Self {
        Self {
            versions: ModelProto::new(opset),
            ..Self::default()
        }
    }

    /// Reads the ONNX file `bytes`.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or larger than face networks are.
    pub fn read(bytes: Vec<u8>) -> Result<Self> {
        Self::parse(bytes.into())
    }

    /// Shape of `value`; empty if unknown.
    pub fn shape(&self, value: Value) -> &[usize] {
        &self.values[value.0].shape
    }

    /// The value with this name in the file.
    pub fn named(&self, name: &str) -> Option<Value> {
        let mut values = self.values.iter();
        let index = values.position(|info| info.name.as_deref() == Some(name))?;
        Some(Value(index))
    }

    /// Returns true if `value` is a constant.
    pub fn is_constant(&self, value: Value) -> bool {
        self.values[value.0].constant.is_some()
    }

    /// Content of `value` if it is a constant of floats whose length matches its extents.
    pub fn floats(&self, value: Value) -> Option<Floats> {
        self.values[value.0].constant.as_ref()?.to_floats()
    }

    /// Content of `value` if it is a constant of 64-bit integers that was added here.
    pub fn ints(&self, value: Value) -> Option<Vec<i64>> {
        self.values[value.0].constant.as_ref()?.to_ints()
    }

    /// The node that yields `value`.
    pub fn producer(&self, value: Value) -> Option<&Node> {
        let mut nodes = self.nodes.iter();
        nodes.rfind(|node| node.outputs.contains(&value))
    }

    /// The inputs of the node that yields `value`, if it is the operator `op` of ONNX itself and has
    /// `N` of them.
    pub fn operands<const N: usize>(&self, value: Value, op: &str) -> Option<[Value; N]> {
        self.producer(value)?.operands(op)
    }

    /// Returns, for each value, the position of the node that yields it.
    pub fn producers(&self) -> Vec<Option<usize>> {
        let mut producers = vec![None; self.values.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for output in &node.outputs {
                producers[output.0] = Some(index);
            }
        }
        producers
    }

    /// Returns, for each value, the positions of the nodes that take it, as often as they take it.
    /// `usize::MAX` stands for an output of the graph.
    pub fn users(&self) -> Vec<Vec<usize>> {
        let mut users = vec![Vec::new(); self.values.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for input in &node.inputs {
                users[input.0].push(index);
            }
        }
        for port in &self.outputs {
            users[port.value.0].push(usize::MAX);
        }
        users
    }

    /// Names and shapes of `ports`, without the constants that old files list among their inputs;
    /// extents that are not fixed are `None`.
    pub fn specs(&self, ports: &[Port]) -> Vec<TensorSpec> {
        let ports = ports.iter().filter(|port| !self.is_constant(port.value));
        ports
            .map(|port| TensorSpec {
                name: self.name(port.value),
                shape: port.kind.as_ref().map_or_else(Vec::new, TypeProto::extents),
            })
            .collect()
    }

    /// Adds an input of floats.
    pub fn add_input(&mut self, name: &str, shape: &[usize]) -> Value {
        let value = self.add_value(shape.to_vec());
        self.values[value.0].name = Some(name.to_owned());
        let kind = Some(TypeProto::floats(Some(shape)));
        self.inputs.push(Port { value, kind });
        value
    }

    /// Makes `value`, of floats, an output.
    pub fn add_output(&mut self, name: &str, value: Value) {
        self.values[value.0].name = Some(name.to_owned());
        let kind = Some(TypeProto::floats(Some(self.shape(value))));
        self.outputs.push(Port { value, kind });
    }

    /// Makes `values`, of floats, the only outputs.
    pub fn set_outputs(&mut self, values: &[Value]) {
        let port = |value: &Value| Port {
            value: *value,
            kind: Some(TypeProto::floats(None)),
        };
        self.outputs = values.iter().map(port).collect();
    }

    /// Makes the given values the only inputs: images of any size with the given numbers of
    /// channels.
    pub fn set_images(&mut self, values: &[(Value, usize)]) {
        let port = |(value, channels): &(Value, usize)| Port {
            value: *value,
            kind: Some(TypeProto::floats(Some(&[1, *channels, 1, 1]))),
        };
        self.inputs = values.iter().map(port).collect();
        for axis in 2..4 {
            self.set_input_extent(axis, None);
        }
    }

    /// Sets the extent of the inputs along `axis`, `None` for any; the shapes of the outputs follow
    /// from it.
    pub fn set_input_extent(&mut self, axis: usize, extent: Option<usize>) {
        let inputs = self.inputs.iter_mut();
        for shape in inputs.filter_map(|port| port.kind.as_mut()?.shape_mut()) {
            if let Some(dimension) = shape.dim.get_mut(axis) {
                *dimension = DimensionProto::of(extent);
            }
        }
        let kinds = self.outputs.iter_mut().flat_map(|port| &mut port.kind);
        for tensor in kinds.flat_map(|kind| &mut kind.tensor_type) {
            tensor.shape = None;
        }
    }

    /// Adds a value that nothing yields yet.
    pub fn add_value(&mut self, shape: Vec<usize>) -> Value {
        self.push(None, shape, None)
    }

    /// Adds a constant of floats.
    pub fn add_floats<'a>(
        &mut self,
        dims: &[usize],
        values: impl IntoIterator<Item = &'a f32>,
    ) -> Value {
        self.add_constant(dims, TensorProto::floats(dims, values))
    }

    /// Adds a constant of integers.
    pub fn add_ints(&mut self, dims: &[usize], values: &[i64]) -> Value {
        self.add_constant(dims, TensorProto::ints(dims, values))
    }

    fn add_constant(&mut self, dims: &[usize], constant: TensorProto) -> Value {
        self.push(None, dims.to_vec(), Some(constant))
    }

    fn push(
        &mut self,
        name: Option<String>,
        shape: Vec<usize>,
        constant: Option<TensorProto>,
    ) -> Value {
        let content = constant.as_ref().map(|constant| &constant.raw_data);
        self.constant_bytes += content.map_or(0, Bytes::len);
        let info = Info {
            name,
            shape,
            constant,
        };
        self.values.push(info);
        Value(self.values.len() - 1)
    }

    /// Refuses a graph whose constants are larger than [`MAX_CONSTANT_BYTES`]. Code that adds
    /// constants in a loop calls it in between.
    pub(crate) fn check_size(&self) -> Result<()> {
        if self.constant_bytes <= MAX_CONSTANT_BYTES {
            return Ok(());
        }
        Err(format!(
            "its constants come to more than {MAX_CONSTANT_BYTES} bytes once operators do not share them"
        ))
    }

    /// Adds a node that yields a value of `shape`.
    pub fn add_shaped(
        &mut self,
        op: &str,
        inputs: &[Value],
        attributes: Vec<Attribute>,
        shape: Vec<usize>,
    ) -> Value {
        let output = self.add_value(shape);
        self.nodes.push(Node {
            op: op.to_owned(),
            domain: String::new(),
            inputs: inputs.to_vec(),
            outputs: vec![output],
            attributes,
        });
        output
    }

    /// Adds a node whose output has an unknown shape.
    pub fn add(&mut self, op: &str, inputs: &[Value], attributes: Vec<Attribute>) -> Value {
        self.add_shaped(op, inputs, attributes, Vec::new())
    }

    /// Adds an element-wise node, whose output has the shape of its first input.
    pub fn add_elementwise(&mut self, op: &str, inputs: &[Value]) -> Value {
        let shape = self.shape(inputs[0]).to_vec();
        self.add_shaped(op, inputs, Vec::new(), shape)
    }

    /// Adds a node that yields the elements `range` of `value` along `axis`.
    pub fn add_slice(&mut self, value: Value, range: Range<usize>, axis: usize) -> Value {
        let mut shape = self.shape(value).to_vec();
        shape[axis] = range.len();
        let bounds = [range.start, range.end, axis];
        let [begin, end, axis] = bounds.map(|n| self.add_ints(&[1], &[n as i64]));
        self.add_shaped("Slice", &[value, begin, end, axis], vec![], shape)
    }

    /// Replaces the operator of the node at `index`, which keeps its outputs.
    pub fn set_node(
        &mut self,
        index: usize,
        op: &str,
        inputs: &[Value],
        attributes: Vec<Attribute>,
    ) {
        let node = &mut self.nodes[index];
        op.clone_into(&mut node.op);
        node.domain.clear();
        node.inputs = inputs.to_vec();
        node.attributes = attributes;
    }

    /// Drops nodes that no output depends on, and moves each of the others behind those that it
    /// depends on.
    pub fn sort(&mut self) {
        let producers = self.producers();
        let mut is_needed = vec![false; self.nodes.len()];
        let outputs = self.outputs.iter().map(|port| port.value);
        let mut pending: Vec<usize> = outputs.filter_map(|value| producers[value.0]).collect();
        while let Some(index) = pending.pop() {
            if !std::mem::replace(&mut is_needed[index], true) {
                let inputs = self.nodes[index].inputs.iter();
                pending.extend(inputs.filter_map(|value| producers[value.0]));
            }
        }
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut is_seen = vec![false; self.nodes.len()];
        for index in (0..self.nodes.len()).filter(|index| is_needed[*index]) {
            // Nodes whose inputs are still to be visited.
            let mut open = vec![(index, 0)];
            while let Some((node, input)) = open.pop() {
                if input == 0 && std::mem::replace(&mut is_seen[node], true) {
                    continue;
                }
                let Some(value) = self.nodes[node].inputs.get(input) else {
                    order.push(node);
                    continue;
                };
                open.push((node, input + 1));
                open.extend(producers[value.0].map(|producer| (producer, 0)));
            }
        }
        self.nodes = order
            .iter()
            .map(|index| self.nodes[*index].clone())
            .collect();
    }
}
