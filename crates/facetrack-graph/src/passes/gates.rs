// SPDX-License-Identifier: MPL-2.0
//! Stretches the factors of squeeze-and-excitation, one number per channel, to the size of the
//! image that they multiply: in ONNX Runtime's blocked layout, only images of one size can be
//! multiplied.

use super::super::convolution::is_convolution;
use super::super::{Attribute, Graph, Node, Value};

/// Stretches the factors that the node at `index` multiplies by an image.
pub fn stretch(graph: &mut Graph, index: usize) -> Option<()> {
    let [image, gate] = gated(graph, &graph.nodes[index])?;
    // The region of interest and the scales, which `Resize` is not given.
    let nothing = graph.add_floats(&[0], &[]);
    let size = graph.add("Shape", &[image], vec![]);
    let attributes = vec![
        Attribute::text("mode", "nearest"),
        Attribute::text("coordinate_transformation_mode", "asymmetric"),
        Attribute::text("nearest_mode", "floor"),
    ];
    let stretched = graph.add("Resize", &[gate, nothing, nothing, size], attributes);
    graph.nodes[index].inputs[1] = stretched;
    Some(())
}

/// The image and the gate that `product` multiplies, if the gate is a hard sigmoid that two
/// convolutions compute from the means of the image's channels.
fn gated(graph: &Graph, product: &Node) -> Option<[Value; 2]> {
    let [image, gate] = product.operands("Mul")?;
    let convolved = |value| {
        let convolution = graph.producer(value).filter(|node| is_convolution(node))?;
        convolution.inputs.first().copied()
    };
    let [expanded] = graph.operands(gate, "HardSigmoid")?;
    let [averaged] = graph.operands(convolved(convolved(expanded)?)?, "GlobalAveragePool")?;
    (averaged == image).then_some([image, gate])
}
