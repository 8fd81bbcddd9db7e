// SPDX-License-Identifier: MPL-2.0
//! An ONNX graph under construction.

use super::flatbuffer::Reason;

/// Most bytes of constants that a graph may hold, those included that a rewriting replaced: ten times what MediaPipe's
/// largest network comes to. Operators may share a constant in the file, and each gets one of its own here, so that the
/// size of the file does not bound them.
const MAX_CONSTANT_BYTES: usize = 64 << 20;

/// A value of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Value(usize);

impl Value {
    /// Position in the graph's list of values.
    pub fn index(self) -> usize {
        self.0
    }
}

/// Content of a constant, row-major.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    Float(Vec<f32>),
    Int(Vec<i64>),
}

impl Data {
    fn bytes(&self) -> usize {
        match self {
            Self::Float(values) => size_of_val(values.as_slice()),
            Self::Int(values) => size_of_val(values.as_slice()),
        }
    }
}

/// A node's attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
}

/// Attributes with their names.
pub(super) type Attributes = Vec<(&'static str, Attribute)>;

/// An operator with one output.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Operator as ONNX names it.
    pub op: &'static str,
    pub inputs: Vec<Value>,
    pub output: Value,
    pub attributes: Attributes,
}

impl Node {
    /// The attribute `name`.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    }

    /// Puts `value` in place of the attribute `name`.
    pub fn set_attribute(&mut self, name: &'static str, value: Attribute) {
        self.attributes.retain(|(other, _)| *other != name);
        self.attributes.push((name, value));
    }
}

/// What is known of a value.
#[derive(Debug, Clone)]
pub(super) struct Info {
    pub shape: Vec<usize>,
    pub constant: Option<Data>,
}

/// Nodes and the values between them.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub values: Vec<Info>,
    pub nodes: Vec<Node>,
    /// Inputs with their names.
    pub inputs: Vec<(Value, String)>,
    /// Outputs with their names.
    pub outputs: Vec<(Value, String)>,
    constant_bytes: usize,
}

impl Graph {
    /// Shape of `value`.
    pub fn shape(&self, value: Value) -> &[usize] {
        &self.values[value.0].shape
    }

    /// Content of `value` if it is a constant of floats.
    pub fn floats(&self, value: Value) -> Option<&[f32]> {
        match &self.values[value.0].constant {
            Some(Data::Float(values)) => Some(values),
            _ => None,
        }
    }

    /// Content of `value` if it is a constant of integers.
    pub fn ints(&self, value: Value) -> Option<&[i64]> {
        match &self.values[value.0].constant {
            Some(Data::Int(values)) => Some(values),
            _ => None,
        }
    }

    /// The node that yields `value`.
    pub fn producer(&self, value: Value) -> Option<&Node> {
        self.nodes.iter().rfind(|node| node.output == value)
    }

    /// For each value, the position of the node that yields it.
    pub fn producers(&self) -> Vec<Option<usize>> {
        let mut producers = vec![None; self.values.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            producers[node.output.0] = Some(index);
        }
        producers
    }

    /// For each value, the positions of the nodes that take it, one for each time; the graph's outputs count as taken
    /// by `usize::MAX`.
    pub fn users(&self) -> Vec<Vec<usize>> {
        let mut users = vec![Vec::new(); self.values.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for input in &node.inputs {
                users[input.0].push(index);
            }
        }
        for (value, _) in &self.outputs {
            users[value.0].push(usize::MAX);
        }
        users
    }

    /// A new value that nothing yields yet.
    pub fn value(&mut self, shape: Vec<usize>) -> Value {
        self.push(shape, None)
    }

    /// A constant of floats.
    pub fn constant(&mut self, shape: Vec<usize>, content: Vec<f32>) -> Value {
        self.push(shape, Some(Data::Float(content)))
    }

    /// A constant list of integers.
    pub fn integers(&mut self, content: Vec<i64>) -> Value {
        self.push(vec![content.len()], Some(Data::Int(content)))
    }

    /// Refuses a graph that holds more than [`MAX_CONSTANT_BYTES`]. What adds constants in a loop asks in between.
    pub fn check_size(&self) -> Result<(), Reason> {
        if self.constant_bytes <= MAX_CONSTANT_BYTES {
            return Ok(());
        }
        Err(format!(
            "its constants come to more than {MAX_CONSTANT_BYTES} bytes once operators do not share them"
        ))
    }

    fn push(&mut self, shape: Vec<usize>, constant: Option<Data>) -> Value {
        self.constant_bytes += constant.as_ref().map_or(0, Data::bytes);
        self.values.push(Info { shape, constant });
        Value(self.values.len() - 1)
    }

    /// Adds a node that yields a value of `shape`.
    pub fn node(
        &mut self,
        op: &'static str,
        inputs: &[Value],
        attributes: Attributes,
        shape: Vec<usize>,
    ) -> Value {
        let output = self.value(shape);
        self.nodes.push(Node {
            op,
            inputs: inputs.to_vec(),
            output,
            attributes,
        });
        output
    }

    /// Adds an element-wise node, whose output is shaped as its first input.
    pub fn elementwise(&mut self, op: &'static str, inputs: &[Value]) -> Value {
        let shape = self.shape(inputs[0]).to_vec();
        self.node(op, inputs, vec![], shape)
    }

    /// `value` with its elements under another shape. Chains of reshapes become one.
    pub fn reshape(&mut self, value: Value, shape: Vec<usize>) -> Value {
        let source = match self.producer(value) {
            Some(node) if node.op == "Reshape" => node.inputs[0],
            _ => value,
        };
        if self.shape(source) == shape {
            return source;
        }
        if let Some(content) = self.floats(source) {
            let content = content.to_vec();
            return self.constant(shape, content);
        }
        let target = self.integers(shape.iter().map(|n| *n as i64).collect());
        self.node("Reshape", &[source, target], vec![], shape)
    }

    /// `value` with its axes in another order.
    pub fn transpose(&mut self, value: Value, order: &[usize]) -> Value {
        let shape = self.shape(value);
        let target: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
        if keeps_elements_in_place(shape, order) {
            return self.reshape(value, target);
        }
        let order = order.iter().map(|axis| *axis as i64).collect();
        let attributes = vec![("perm", Attribute::Ints(order))];
        self.node("Transpose", &[value], attributes, target)
    }

    /// Drops nodes that no output depends on, and puts the others into an order in which they can run.
    pub fn sort(&mut self) {
        let producers = self.producers();
        let mut done = vec![false; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut pending: Vec<usize> = self
            .outputs
            .iter()
            .rev()
            .filter_map(|(value, _)| producers[value.0])
            .collect();
        while let Some(&index) = pending.last() {
            let inputs = self.nodes[index].inputs.iter().rev();
            let before = pending.len();
            if !done[index] {
                pending.extend(inputs.filter_map(|v| producers[v.0]).filter(|i| !done[*i]));
            }
            if pending.len() == before {
                pending.pop();
                if !std::mem::replace(&mut done[index], true) {
                    order.push(index);
                }
            }
        }
        self.nodes = order.iter().map(|i| self.nodes[*i].clone()).collect();
    }
}

/// Whether axes longer than 1 keep their order, so that no element moves in memory.
fn keeps_elements_in_place(shape: &[usize], order: &[usize]) -> bool {
    order.iter().filter(|axis| shape[**axis] > 1).is_sorted()
}
