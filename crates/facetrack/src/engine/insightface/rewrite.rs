// SPDX-License-Identifier: MPL-2.0
//! Rewrites published graphs into equal ones that ONNX Runtime runs faster on a processor.
//!
//! ONNX Runtime keeps images in a layout of blocks of channels (`NCHWc`) between operators that it knows, which PRelu is
//! not: it takes half the time of the landmarks and a third of the embedding. The detector's heads are three convolutions
//! of few channels each, which cost as much as whole blocks.

mod merge;
mod prelu;

use std::path::Path;

use crate::model::onnx_file::OnnxFile;

/// Operators with graphs of their own, which are not kept when a file is read and written again.
const WITH_SUBGRAPHS: [&str; 3] = ["If", "Loop", "Scan"];

/// Makes of an ONNX file, read from `path`, one that computes the same. What can't be rewritten stays as it is: a large
/// file, one with operators of its own, and one that is damaged, which the runtime will say.
pub fn for_processor(path: &Path, bytes: Vec<u8>) -> Vec<u8> {
    let Ok(mut file) = OnnxFile::read(path, bytes.clone()) else {
        return bytes;
    };
    let is_kept = |op: &str, domain: &str| domain.is_empty() && !WITH_SUBGRAPHS.contains(&op);
    if !file
        .nodes()
        .iter()
        .all(|node| is_kept(&node.op_type, &node.domain))
    {
        return bytes;
    }
    prelu::split(&mut file);
    merge::merge(&mut file);
    file.encode()
}

#[cfg(test)]
mod tests;
