// SPDX-License-Identifier: MPL-2.0
//! ONNX files as the runtime gets them: the large constants lie beside the graph, each for itself, so that the runtime
//! reads them where they are and makes no copy of the whole file.

use std::sync::Arc;

use prost::Message;

use super::onnx_proto::*;

/// Least bytes of a constant that lies beside the graph. Shapes, which the runtime has to know early, are smaller.
const LEAST: usize = 1024;

/// An ONNX file.
#[derive(Debug, Clone)]
pub struct OnnxBytes {
    /// The file.
    pub graph: Vec<u8>,
    /// Names and contents of other files that it refers to.
    pub constants: Vec<(String, Arc<[u8]>)>,
}

impl From<Vec<u8>> for OnnxBytes {
    /// A file that holds all its constants.
    fn from(graph: Vec<u8>) -> Self {
        Self {
            graph,
            constants: Vec::new(),
        }
    }
}

impl From<ModelProto> for OnnxBytes {
    fn from(mut model: ModelProto) -> Self {
        let graph = model.graph.iter_mut();
        let constants = graph.flat_map(|graph| &mut graph.initializer);
        let large = constants
            .filter(|constant| constant.data_type == FLOAT && constant.raw_data.len() >= LEAST);
        let constants = large.enumerate().map(|(index, constant)| {
            let name = format!("constant {index}");
            let content = std::mem::take(&mut constant.raw_data);
            constant.data_location = EXTERNAL;
            constant.external_data = vec![EntryProto {
                key: "location".to_owned(),
                value: name.clone(),
            }];
            (name, Arc::from(&content[..]))
        });
        Self {
            constants: constants.collect(),
            graph: model.encode_to_vec(),
        }
    }
}
