// SPDX-License-Identifier: MPL-2.0
//! Reads ONNX files to change them in memory before the runtime gets them.
//!
//! Nodes keep what their file says; of the rest that is kept which the runtime needs, see [`super::onnx_proto`].

use std::collections::HashSet;
use std::path::Path;

use prost::Message;
use prost::bytes::Bytes;

use super::onnx_proto::*;
use super::{ModelError, TensorSpec};

mod floats;

pub use super::onnx_proto::NodeProto as Node;
pub use floats::Floats;

/// What is wrong with a file.
pub type Reason = String;

/// Most bytes of a file that is changed here; the largest known has 4 MB. Numbers of one byte take eight once read.
const MAX_BYTES: usize = 16 << 20;

/// Most bytes of a file outside its constants. An empty entry of two bytes takes hundred times as many once read.
const MAX_STRUCTURE: usize = 1 << 20;

/// Most constants.
const MAX_CONSTANTS: usize = 4096;

/// Bytes that the field number and the length of a constant take at most.
const MAX_HEADER: usize = 11;

/// An ONNX file that was read.
pub struct OnnxFile {
    ir_version: i64,
    opset_import: Vec<OperatorSetIdProto>,
    graph: GraphProto,
}

/// The sizes of a file's parts.
#[derive(Clone, PartialEq, Message)]
struct Outline {
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphOutline>,
}

#[derive(Clone, PartialEq, Message)]
struct GraphOutline {
    #[prost(bytes = "bytes", repeated, tag = "5")]
    initializer: Vec<Bytes>,
}

impl OnnxFile {
    /// Reads the ONNX file `bytes`; `path` is for messages.
    ///
    /// # Errors
    /// [`ModelError::Format`] for a damaged file, and for one of other dimensions than face networks have.
    pub fn read(path: &Path, bytes: Vec<u8>) -> Result<Self, ModelError> {
        Self::parse(bytes.into()).map_err(|reason| ModelError::Format {
            path: path.to_path_buf(),
            format: "ONNX",
            reason,
        })
    }

    /// A file without nodes.
    #[cfg(test)]
    pub fn empty() -> Self {
        Self {
            ir_version: 6,
            opset_import: Vec::new(),
            graph: GraphProto::default(),
        }
    }

    fn parse(bytes: Bytes) -> Result<Self, Reason> {
        check_size(&bytes)?;
        let model = ModelProto::decode(bytes).map_err(|error| error.to_string())?;
        let graph = model.graph.ok_or("it has no graph")?;
        if graph
            .initializer
            .iter()
            .any(|constant| constant.data_location == EXTERNAL)
        {
            return Err("its constants lie in another file".to_owned());
        }
        Ok(Self {
            ir_version: model.ir_version,
            opset_import: model.opset_import,
            graph,
        })
    }

    /// The bytes of the file as it is now.
    pub fn encode(self) -> Vec<u8> {
        let model = ModelProto {
            ir_version: self.ir_version,
            opset_import: self.opset_import,
            graph: Some(self.graph),
        };
        model.encode_to_vec()
    }

    /// Lets the inputs have any length along `axes`, and the outputs any shape that follows.
    pub fn free_axes(&mut self, axes: &[usize]) {
        for shape in self.graph.input.iter_mut().filter_map(shape) {
            for axis in axes {
                if let Some(dimension) = shape.dim.get_mut(*axis) {
                    dimension.extent = None;
                }
            }
        }
        for tensor in self.graph.output.iter_mut().filter_map(tensor_type) {
            tensor.shape = None;
        }
    }

    /// Lets the first axis of the inputs, of images, have the length `batch`, and the outputs any shape that follows.
    pub fn fix_batch(&mut self, batch: usize) {
        for dimension in self
            .graph
            .input
            .iter_mut()
            .filter_map(shape)
            .filter_map(|shape| shape.dim.first_mut())
        {
            dimension.extent = Some(Extent::Value(batch as i64));
        }
        for tensor in self.graph.output.iter_mut().filter_map(tensor_type) {
            tensor.shape = None;
        }
    }

    /// The first convolution, the only node that takes the only input.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn first_convolution(&mut self) -> Result<&mut Node, Reason> {
        let [input] = &self.graph.input[..] else {
            return Err(format!("{} inputs", self.graph.input.len()));
        };
        let takes_it = |node: &&mut Node| node.input.contains(&input.name);
        let mut users = self.graph.node.iter_mut().filter(takes_it);
        match (users.next(), users.next()) {
            (Some(node), None) if is_convolution(node) => Ok(node),
            _ => Err(format!("input {} is not for one convolution", input.name)),
        }
    }

    /// The node that yields `value`.
    pub fn node_of(&self, value: &str) -> Option<&Node> {
        let mut nodes = self.graph.node.iter();
        nodes.find(|node| node.output.iter().any(|output| output == value))
    }

    /// The node that yields `value`, an operator `op` of ONNX.
    ///
    /// # Errors
    /// When nothing or another operator yields it.
    pub fn producer(&self, value: &str, op: &str) -> Result<&Node, Reason> {
        self.node_of(value)
            .filter(|node| node.op_type == op && node.domain.is_empty())
            .ok_or_else(|| format!("no {op} yields {value}"))
    }

    /// The nodes, each after those that it depends on.
    pub fn nodes(&self) -> &[Node] {
        &self.graph.node
    }

    /// Names and shapes of the inputs; lengths that may be any are `None`.
    pub fn inputs(&self) -> Vec<TensorSpec> {
        self.graph.input.iter().map(spec).collect()
    }

    /// Names and shapes of the outputs; lengths that may be any are `None`.
    pub fn outputs(&self) -> Vec<TensorSpec> {
        self.graph.output.iter().map(spec).collect()
    }

    /// Puts `nodes` in place of the one that yields `value`.
    pub fn replace(&mut self, value: &str, nodes: Vec<Node>) {
        let yields_it = |node: &Node| node.output.iter().any(|output| output == value);
        if let Some(at) = self.graph.node.iter().position(yields_it) {
            self.graph.node.splice(at..=at, nodes);
        }
    }

    /// The constant `name`.
    ///
    /// # Errors
    /// When there is none, or one of something else than floats or of no float, or its length is not that of its extents.
    pub fn floats(&self, name: &str) -> Result<Floats, Reason> {
        let mut constants = self.graph.initializer.iter();
        constants
            .find(|constant| constant.name == name)
            .and_then(Floats::of)
            .ok_or_else(|| format!("{name} is no constant of floats"))
    }

    /// Adds the constant `name`, in place of one of that name.
    pub fn add_floats(&mut self, name: &str, Floats { dims, values }: &Floats) {
        self.graph.initializer.retain(|other| other.name != name);
        let constant = TensorProto::floats(name, dims, values);
        self.graph.initializer.push(constant);
    }

    /// Adds the constant `name` of whole numbers.
    pub fn add_ints(&mut self, name: &str, dims: &[usize], values: &[i64]) {
        let constant = TensorProto::ints(name, dims, values);
        self.graph.initializer.push(constant);
    }

    /// Adds a node after all others.
    pub fn add_node(&mut self, node: Node) {
        self.graph.node.push(node);
    }

    /// Makes `names`, of floats, the only outputs, and drops what none of them depends on.
    pub fn set_outputs(&mut self, names: &[String]) {
        let output = |name: &String| ValueInfoProto {
            name: name.clone(),
            kind: Some(TypeProto {
                tensor_type: Some(TensorTypeProto {
                    elem_type: FLOAT,
                    shape: None,
                }),
            }),
        };
        self.graph.output = names.iter().map(output).collect();
        self.drop_unused();
    }

    /// Drops what no output depends on.
    pub fn drop_unused(&mut self) {
        let outputs = self.graph.output.iter();
        let mut needed: HashSet<String> = outputs.map(|output| output.name.clone()).collect();
        // Nodes come after those that they depend on.
        let mut nodes = std::mem::take(&mut self.graph.node);
        nodes.reverse();
        nodes.retain(|node| {
            let is_needed = node.output.iter().any(|output| needed.contains(output));
            if is_needed {
                needed.extend(node.input.iter().cloned());
            }
            is_needed
        });
        nodes.reverse();
        self.graph.node = nodes;
        self.graph
            .initializer
            .retain(|constant| needed.contains(&constant.name));
    }
}

/// Refuses a file that takes much more memory once read.
fn check_size(bytes: &Bytes) -> Result<(), Reason> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    let outline = Outline::decode(bytes.clone()).map_err(|error| error.to_string())?;
    let constants = outline.graph.unwrap_or_default().initializer;
    if constants.len() > MAX_CONSTANTS {
        return Err(format!("it has more than {MAX_CONSTANTS} constants"));
    }
    let within: usize = constants.iter().map(|c| c.len() + MAX_HEADER).sum();
    if bytes.len().saturating_sub(within) > MAX_STRUCTURE {
        return Err(format!(
            "it has more than {MAX_STRUCTURE} bytes beside its constants"
        ));
    }
    Ok(())
}

fn is_convolution(node: &Node) -> bool {
    node.op_type == "Conv" && node.domain.is_empty()
}

fn spec(value: &ValueInfoProto) -> TensorSpec {
    let tensor = value
        .kind
        .as_ref()
        .and_then(|kind| kind.tensor_type.as_ref());
    let shape = tensor.and_then(|tensor| tensor.shape.as_ref());
    let length = |dimension: &DimensionProto| match dimension.extent {
        Some(Extent::Value(length)) => usize::try_from(length).ok(),
        _ => None,
    };
    TensorSpec {
        name: value.name.clone(),
        shape: shape.map_or_else(Vec::new, |shape| shape.dim.iter().map(length).collect()),
    }
}

fn tensor_type(value: &mut ValueInfoProto) -> Option<&mut TensorTypeProto> {
    value.kind.as_mut()?.tensor_type.as_mut()
}

fn shape(value: &mut ValueInfoProto) -> Option<&mut ShapeProto> {
    tensor_type(value)?.shape.as_mut()
}

#[cfg(test)]
mod tests;
