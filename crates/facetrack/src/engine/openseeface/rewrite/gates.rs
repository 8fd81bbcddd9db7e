// SPDX-License-Identifier: MPL-2.0
//! Stretches the numbers per channel by which squeeze-and-excitation multiplies an image to the size of that image. In
//! ONNX Runtime's blocked layout there are products of images of one size alone.

use super::convolution::is_convolution;
use crate::model::onnx_file::{Floats, Node, OnnxFile};

/// The region of interest and the scales that `Resize` is not given.
const NOTHING: &str = "nothing";

/// Stretches all of them.
pub fn stretch(file: &mut OnnxFile) {
    let gates: Vec<Node> = file
        .nodes()
        .iter()
        .filter(|node| is_gated(file, node).is_some_and(|is_gated| is_gated))
        .cloned()
        .collect();
    if gates.is_empty() {
        return;
    }
    let (dims, values) = (vec![0], Vec::new());
    file.add_floats(NOTHING, &Floats { dims, values });
    for mut product in gates {
        let [image, gate] = &mut product.input[..] else {
            continue;
        };
        let [size, stretched] = ["size", "stretched"].map(|kind| format!("{gate} {kind}"));
        let shape = Node::new("Shape", &[&*image], &size);
        let mut resize = Node::new("Resize", &[&*gate, NOTHING, NOTHING, &size], &stretched);
        resize.set_text("mode", "nearest");
        resize.set_text("coordinate_transformation_mode", "asymmetric");
        resize.set_text("nearest_mode", "floor");
        *gate = stretched;
        let output = product.output.concat();
        file.replace(&output, vec![shape, resize, product]);
    }
}

/// Whether `product` multiplies an image by a hard sigmoid of what two convolutions make of its channels' means.
fn is_gated(file: &OnnxFile, product: &Node) -> Option<bool> {
    let [image, gate] = &product.input[..] else {
        return None;
    };
    let before = |node: &Node| file.node_of(node.input.first()?);
    let sigmoid = file.node_of(gate)?;
    let expansion = before(sigmoid)?;
    let reduction = before(expansion)?;
    let mean = before(reduction)?;
    Some(
        product.op_type == "Mul"
            && sigmoid.op_type == "HardSigmoid"
            && is_convolution(expansion)
            && is_convolution(reduction)
            && mean.op_type == "GlobalAveragePool"
            && mean.input.first() == Some(image),
    )
}
