// SPDX-License-Identifier: MPL-2.0
//! Divides published graphs, so that less has to be computed for each frame.

use facetrack_graph::parts::{self, Border};
use facetrack_graph::{Graph, Node, Reason};

use super::scrfd::{Boxes, Heads};

/// Operators with graphs of their own, which are lost when a file is read and written again.
const WITH_SUBGRAPHS: [&str; 3] = ["If", "Loop", "Scan"];

/// A network in parts.
#[derive(Debug)]
pub struct Parts {
    /// The network, or its first layers.
    pub first: Graph,
    /// Its other layers, and how the values that they take depend on the image.
    pub rest: Option<(Graph, Border)>,
    /// The convolutions of a detector that yield boxes and key points. Their inputs are the outputs
    /// after the scores.
    pub boxes: Option<Boxes>,
}

/// Takes the network in an ONNX file apart: one that takes images of any size is divided in two if
/// possible, and the convolutions that yield boxes are taken out of a detector if possible.
///
/// # Errors
/// Returns the reason why the file has to stay as it is: it is large, has operators of its own, or
/// is damaged, which ONNX Runtime reports.
pub fn divided(bytes: &[u8]) -> Result<Parts, Reason> {
    let whole = whole(bytes)?;
    Ok(match parts::divide(&whole.first) {
        None => whole,
        Some(parts) => Parts {
            first: parts.first,
            rest: Some((parts.rest, parts.border)),
            ..whole
        },
    })
}

/// The network in an ONNX file, without the convolutions that yield boxes if possible.
///
/// # Errors
/// Returns the errors of [`divided`].
pub fn whole(bytes: &[u8]) -> Result<Parts, Reason> {
    let mut graph = read(bytes)?;
    graph.sort();
    let heads = Heads::of(graph.outputs.len());
    let boxes = heads.and_then(|heads| Boxes::cut(&mut graph, heads));
    Ok(Parts {
        first: graph,
        rest: None,
        boxes,
    })
}

/// The network in an ONNX file, with outputs of any shape. Published files declare one face even if
/// the network takes several ones, and ONNX Runtime then refuses memory for the outputs of several.
///
/// # Errors
/// Returns the errors of [`divided`].
pub fn with_open_outputs(bytes: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut graph = read(bytes)?;
    let outputs: Vec<_> = graph.outputs.iter().map(|port| port.value).collect();
    graph.set_outputs(&outputs);
    Ok(graph.encode())
}

/// Reads an ONNX file all of whose operators can be written again.
fn read(bytes: &[u8]) -> Result<Graph, Reason> {
    let graph = Graph::read(bytes.to_vec())?;
    let is_kept = |node: &Node| node.domain.is_empty() && !WITH_SUBGRAPHS.contains(&&node.op[..]);
    match graph.nodes.iter().find(|node| !is_kept(node)) {
        Some(node) => Err(format!("the operator {}", node.op)),
        None => Ok(graph),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_stay_as_they_are() {
        for (op, domain, reason) in [
            ("Relu", "", None),
            ("If", "", Some("the operator If")),
            ("Gelu", "com.x", Some("the operator Gelu")),
        ] {
            let mut graph = Graph::new(13);
            let image = graph.add_input("x", &[1, 4, 2, 2]);
            let output = graph.add_elementwise(op, &[image]);
            domain.clone_into(&mut graph.nodes[0].domain);
            graph.add_output("y", output);
            let error = divided(&graph.encode()).err();
            assert_eq!(error.as_deref(), reason, "{op}");
        }
        for bytes in [&b"no network"[..], &[]] {
            assert!(divided(bytes).is_err());
        }
    }

    #[test]
    fn open_outputs_fit_any_number_of_faces() {
        let mut graph = Graph::new(13);
        let image = graph.add_input("x", &[1, 4, 2, 2]);
        graph.set_input_extent(0, None);
        let output = graph.add_elementwise("Relu", &[image]);
        graph.add_output("y", output);
        let open = with_open_outputs(&graph.encode()).unwrap();
        let open = Graph::read(open).unwrap();
        let [input, output] = [&open.inputs, &open.outputs].map(|ports| open.specs(ports));
        assert_eq!(input[0].shape, [None, Some(4), Some(2), Some(2)]);
        assert_eq!((&output[0].name[..], &output[0].shape[..]), ("y", &[][..]));
        assert!(with_open_outputs(b"no network").is_err());
    }
}
