// SPDX-License-Identifier: MPL-2.0
//! Rewrites published graphs into equal ones that ONNX Runtime runs faster on a CPU. PRelu, which
//! its blocked layout does not have, takes half the time of the landmarks and a third of the
//! embedding.

use facetrack_graph::local::{self, Separated};
use facetrack_graph::parts::{self, Border};
use facetrack_graph::{Graph, Node, passes};

use super::scrfd::Heads;

/// Operators with graphs of their own, which are lost when a file is read and written again.
const WITH_SUBGRAPHS: [&str; 3] = ["If", "Loop", "Scan"];

/// A network as ONNX files.
#[derive(Debug, PartialEq)]
pub struct Files {
    /// The network, or its first layers.
    pub first: Vec<u8>,
    /// Its other layers, and how the values that they take depend on the image.
    pub rest: Option<(Vec<u8>, Border)>,
    /// The layers of a detector that yield boxes and key points, and how many cells to each side
    /// their outputs depend on. They take the outputs of the others after the scores.
    pub boxes: Option<(Vec<u8>, usize)>,
}

impl Files {
    /// A network that is not divided.
    pub fn whole(first: Vec<u8>) -> Self {
        Self {
            first,
            rest: None,
            boxes: None,
        }
    }
}

/// Rewrites an ONNX file into files that compute the same. A network that takes images of any size
/// is divided in two if possible. Of such a detector, the layers of boxes and key points become a
/// file of their own if possible. A file that can't be rewritten stays as it is: one that is large,
/// that has operators of its own, or that is damaged, which the runtime will report.
pub fn for_processor(bytes: Vec<u8>) -> Files {
    let files = rewritten(&bytes).and_then(files);
    files.unwrap_or_else(|| Files::whole(bytes))
}

/// The files of a graph; `None` if a pass fails.
fn files(mut graph: Graph) -> Option<Files> {
    let heads = Heads::of(graph.outputs.len());
    let separated = heads.and_then(|heads| local::separate(&graph, heads.levels()));
    let boxes = match separated {
        None => {
            passes::run(&mut graph, passes::BOXES).ok()?;
            None
        }
        Some(Separated {
            main,
            mut local,
            reach,
        }) => {
            graph = main;
            passes::run(&mut graph, passes::SCORES).ok()?;
            passes::run(&mut local, passes::BOXES).ok()?;
            Some((local.encode(), reach))
        }
    };
    let (first, rest) = match parts::divide(&graph) {
        None => (graph.encode(), None),
        Some(parts) => {
            let rest = (parts.rest.encode(), parts.border);
            (parts.first.encode(), Some(rest))
        }
    };
    Some(Files { first, rest, boxes })
}

/// The network in an ONNX file after the passes that all networks get, undivided; `None` for a file
/// that stays as it is.
pub(super) fn rewritten(bytes: &[u8]) -> Option<Graph> {
    let mut graph = Graph::read(bytes.to_vec()).ok()?;
    let is_kept = |node: &Node| node.domain.is_empty() && !WITH_SUBGRAPHS.contains(&&node.op[..]);
    if !graph.nodes.iter().all(is_kept) {
        return None;
    }
    passes::run(&mut graph, passes::ONNX_RUNTIME).ok()?;
    Some(graph)
}

#[cfg(test)]
mod tests;
