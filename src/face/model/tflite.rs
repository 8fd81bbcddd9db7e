// SPDX-License-Identifier: MPL-2.0
//! Reads MediaPipe's networks as published (`.tflite`) and lowers them to ONNX in memory.
//!
//! Names of inputs and outputs stay. An image input that a convolution reads is declared with its channels first
//! (`[1, 3, height, width]` where the file says `[1, height, width, 3]`), so that nothing is transposed; outputs keep
//! the shapes of the file.

mod flatbuffer;
mod graph;
mod lower;
mod onnx_proto;
mod rewrite;
mod schema;

use std::path::Path;

use super::ModelError;
use flatbuffer::Reason;

/// The ONNX file that computes what the `.tflite` file `bytes` does; `path` is for messages.
///
/// # Errors
/// [`ModelError::Format`] for a damaged file, and for a network with operators other than MediaPipe's face networks
/// have; the message names the operator.
pub fn load(path: &Path, bytes: &[u8]) -> Result<Vec<u8>, ModelError> {
    convert(bytes).map_err(|reason| ModelError::Format {
        path: path.to_path_buf(),
        format: "TFLite",
        reason,
    })
}

fn convert(bytes: &[u8]) -> Result<Vec<u8>, Reason> {
    let network = schema::Network::parse(bytes)?;
    let mut graph = lower::lower(&network)?;
    graph.sort();
    rewrite::rewrite(&mut graph);
    Ok(onnx_proto::encode(&graph))
}
