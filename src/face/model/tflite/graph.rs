// SPDX-License-Identifier: MPL-2.0
//! An ONNX graph under construction.

use std::collections::HashSet;

/// A value of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// A node's attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Attribute {
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
}

/// An operator with one output.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Operator as ONNX names it.
    pub op: &'static str,
    pub inputs: Vec<Value>,
    pub output: Value,
    pub attributes: Vec<(&'static str, Attribute)>,
}

/// What is known of a value.
#[derive(Debug, Clone)]
pub(super) struct Info {
    pub shape: Vec<usize>,
    pub constant: Option<Data>,
}

/// Nodes in an order in which they can run, and the values between them.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub values: Vec<Info>,
    pub nodes: Vec<Node>,
    /// Inputs with their names.
    pub inputs: Vec<(Value, String)>,
    /// Outputs with their names.
    pub outputs: Vec<(Value, String)>,
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

    /// The node that yields `value`.
    pub fn producer(&self, value: Value) -> Option<&Node> {
        self.nodes.iter().find(|node| node.output == value)
    }

    /// A new value that nothing yields yet.
    pub fn value(&mut self, shape: Vec<usize>) -> Value {
        self.values.push(Info {
            shape,
            constant: None,
        });
        Value(self.values.len() - 1)
    }

    /// A constant of floats.
    pub fn constant(&mut self, shape: Vec<usize>, content: Vec<f32>) -> Value {
        self.values.push(Info {
            shape,
            constant: Some(Data::Float(content)),
        });
        Value(self.values.len() - 1)
    }

    /// A constant list of integers.
    pub fn integers(&mut self, content: Vec<i64>) -> Value {
        self.values.push(Info {
            shape: vec![content.len()],
            constant: Some(Data::Int(content)),
        });
        Value(self.values.len() - 1)
    }

    /// Adds a node that yields a value of `shape`.
    pub fn node(
        &mut self,
        op: &'static str,
        inputs: &[Value],
        attributes: Vec<(&'static str, Attribute)>,
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

    /// `value` with its elements under another shape. Chains of reshapes become one.
    pub fn reshape(&mut self, value: Value, shape: Vec<usize>) -> Value {
        let source = match self.producer(value) {
            Some(node) if node.op == "Reshape" => node.inputs[0],
            _ => value,
        };
        if self.shape(source) == shape {
            return source;
        }
        let target = self.integers(shape.iter().map(|n| *n as i64).collect());
        self.node("Reshape", &[source, target], vec![], shape)
    }

    /// `value` with its axes in another order.
    pub fn transpose(&mut self, value: Value, order: &[usize]) -> Value {
        let shape = self.shape(value);
        let shape: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
        if keeps_elements_in_place(self.shape(value), order) {
            return self.reshape(value, shape);
        }
        let order = order.iter().map(|axis| *axis as i64).collect();
        let attributes = vec![("perm", Attribute::Ints(order))];
        self.node("Transpose", &[value], attributes, shape)
    }

    /// Drops nodes that no output depends on.
    pub fn prune(&mut self) {
        let mut needed: HashSet<Value> = self.outputs.iter().map(|(value, _)| *value).collect();
        let mut kept: Vec<Node> = Vec::with_capacity(self.nodes.len());
        for node in self.nodes.drain(..).rev() {
            if needed.contains(&node.output) {
                needed.extend(&node.inputs);
                kept.push(node);
            }
        }
        kept.reverse();
        self.nodes = kept;
    }
}

/// Whether axes longer than 1 keep their order, so that no element moves in memory.
fn keeps_elements_in_place(shape: &[usize], order: &[usize]) -> bool {
    order.iter().filter(|axis| shape[**axis] > 1).is_sorted()
}
