// SPDX-License-Identifier: MPL-2.0
//! Stretches the factors of squeeze-and-excitation, one number per channel, to the size of the
//! image that they multiply: in ONNX Runtime's blocked layout, only images of one size can be
//! multiplied.

use super::super::convolution::is_convolution;
use super::super::{Attribute, Graph, Node, Reason};

/// Stretches all of them.
pub fn stretch(graph: &mut Graph) -> Result<(), Reason> {
    // The region of interest and the scales, which `Resize` is not given.
    let nothing = graph.add_floats(&[0], &[]);
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        if is_gated(graph, node) != Some(true) {
            continue;
        }
        let (image, gate) = (node.inputs[0], node.inputs[1]);
        let size = graph.add("Shape", &[image], vec![]);
        let attributes = vec![
            Attribute::text("mode", "nearest"),
            Attribute::text("coordinate_transformation_mode", "asymmetric"),
            Attribute::text("nearest_mode", "floor"),
        ];
        let stretched = graph.add("Resize", &[gate, nothing, nothing, size], attributes);
        graph.nodes[index].inputs[1] = stretched;
    }
    Ok(())
}

/// Whether `product` multiplies an image by a hard sigmoid that two convolutions compute from the
/// means of its channels.
fn is_gated(graph: &Graph, product: &Node) -> Option<bool> {
    let [image, gate] = product.inputs[..] else {
        return None;
    };
    let before = |node: &Node| graph.producer(*node.inputs.first()?);
    let sigmoid = graph.producer(gate)?;
    let expansion = before(sigmoid)?;
    let reduction = before(expansion)?;
    let mean = before(reduction)?;
    Some(
        product.op == "Mul"
            && sigmoid.op == "HardSigmoid"
            && is_convolution(expansion)
            && is_convolution(reduction)
            && mean.op == "GlobalAveragePool"
            && mean.inputs.first() == Some(&image),
    )
}
