// SPDX-License-Identifier: MPL-2.0
//! Reads and writes ONNX files.

use std::collections::{HashMap, HashSet};

use prost::Message;
use prost::bytes::Bytes;

use super::proto::*;
use super::{Graph, Node, Port, Result, Value};

/// Maximum size of a file that is read here, in bytes; the largest that engines fetch has 14 MB.
/// Integers of one byte in the file take eight in memory.
const MAX_BYTES: usize = 16 << 20;

/// Maximum size of a file outside its constants, in bytes. An empty entry of two bytes takes a
/// hundred times as many in memory.
const MAX_STRUCTURE: usize = 1 << 20;

/// Maximum number of constants.
const MAX_CONSTANTS: usize = 4096;

/// Name of each graph, which ONNX requires.
const GRAPH_NAME: &str = "graph";

impl Graph {
    pub(super) fn parse(bytes: Bytes) -> Result<Self> {
        check_size(&bytes)?;
        let mut versions = ModelProto::decode(bytes).map_err(|error| error.to_string())?;
        let proto = versions.graph.take().ok_or(NO_GRAPH)?;
        let mut reader = Reader {
            graph: Self {
                versions,
                ..Self::default()
            },
            values: HashMap::new(),
        };
        for constant in proto.initializer {
            reader.constant(constant)?;
        }
        reader.graph.inputs = reader.ports(proto.input);
        for node in proto.node {
            reader.node(node)?;
        }
        reader.graph.outputs = reader.ports(proto.output);
        Ok(reader.graph)
    }

    /// The ONNX file that holds this graph.
    pub fn encode(self) -> Vec<u8> {
        let ports = |ports: &[Port]| {
            let port = |port: &Port| ValueInfoProto {
                name: self.name(port.value),
                kind: port.kind.clone(),
            };
            ports.iter().map(port).collect()
        };
        let graph = GraphProto {
            name: GRAPH_NAME.to_owned(),
            node: self.nodes.iter().map(|node| self.node(node)).collect(),
            initializer: self.used_constants(),
            input: ports(&self.inputs),
            output: ports(&self.outputs),
        };
        let model = ModelProto {
            graph: Some(graph),
            ..self.versions
        };
        model.encode_to_vec()
    }

    /// The name of `value`: values that were added get one that no file uses.
    pub(super) fn name(&self, value: Value) -> String {
        let name = self.values[value.0].name.clone();
        name.unwrap_or_else(|| format!("#{}", value.0))
    }

    fn node(&self, node: &Node) -> NodeProto {
        let names = |values: &[Value]| values.iter().map(|value| self.name(*value)).collect();
        NodeProto {
            input: names(&node.inputs),
            output: names(&node.outputs),
            op_type: node.op.clone(),
            attribute: node.attributes.clone(),
            domain: node.domain.clone(),
        }
    }

    /// The constants that a node takes or that the inputs or outputs list.
    fn used_constants(&self) -> Vec<TensorProto> {
        let users = self.users();
        let inputs: HashSet<_> = self.inputs.iter().map(|port| port.value.0).collect();
        let used = (0..self.values.len())
            .filter(|index| !users[*index].is_empty() || inputs.contains(index));
        used.filter_map(|index| {
            let constant = self.values[index].constant.clone()?;
            let name = self.name(Value(index));
            Some(TensorProto { name, ..constant })
        })
        .collect()
    }
}

/// A graph that is being read.
struct Reader {
    graph: Graph,
    /// Values by their names.
    values: HashMap<String, Value>,
}

impl Reader {
    fn constant(&mut self, mut constant: TensorProto) -> Result<()> {
        if constant.data_location == EXTERNAL {
            return Err("its constants are in another file".to_owned());
        }
        let name = std::mem::take(&mut constant.name);
        let value = self
            .graph
            .push(Some(name.clone()), Vec::new(), Some(constant));
        self.values.insert(name, value);
        Ok(())
    }

    fn node(&mut self, node: NodeProto) -> Result<()> {
        if node.output.is_empty() {
            return Err(format!("{} has no output", node.op_type));
        }
        let node = Node {
            op: node.op_type,
            domain: node.domain,
            inputs: self.values(node.input),
            outputs: self.values(node.output),
            attributes: node.attribute,
        };
        self.graph.nodes.push(node);
        Ok(())
    }

    fn ports(&mut self, values: Vec<ValueInfoProto>) -> Vec<Port> {
        let port = |ValueInfoProto { name, kind }| Port {
            value: self.value(name),
            kind,
        };
        values.into_iter().map(port).collect()
    }

    fn values(&mut self, names: Vec<String>) -> Vec<Value> {
        names.into_iter().map(|name| self.value(name)).collect()
    }

    /// The value `name`, which is empty for an input or output that is left out.
    fn value(&mut self, name: String) -> Value {
        let graph = &mut self.graph;
        let value = self.values.entry(name);
        *value.or_insert_with_key(|name| graph.push(Some(name.clone()), Vec::new(), None))
    }
}

/// Refuses a file that would take much more memory after reading.
fn check_size(bytes: &[u8]) -> Result<()> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    let (mut constants, mut structure) = (0, bytes.len());
    for field in fields(graph_of(bytes)?) {
        if let (GRAPH_INITIALIZER, content) = field? {
            constants += 1;
            structure -= content.len();
        }
    }
    if constants > MAX_CONSTANTS {
        return Err(format!("it has more than {MAX_CONSTANTS} constants"));
    }
    if structure > MAX_STRUCTURE {
        return Err(format!(
            "it has more than {MAX_STRUCTURE} bytes outside its constants"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
