// SPDX-License-Identifier: MPL-2.0
//! Makes one operator of `clip(x + 3, 0, 6) / 6`. ONNX Runtime takes it, and the product with `x` if that follows, into
//! the convolution before.

use crate::model::onnx_file::{Node, OnnxFile};

/// Makes one operator of every such chain.
pub fn fuse(file: &mut OnnxFile) {
    let chains: Vec<(String, String)> = file
        .nodes()
        .iter()
        .filter_map(|node| Some((source(file, node)?, node.output.first()?.clone())))
        .collect();
    for (source, output) in chains {
        let mut node = Node::new("HardSigmoid", &[source], &output);
        node.set_float("alpha", 1.0 / 6.0);
        node.set_float("beta", 0.5);
        file.replace(&output, vec![node]);
    }
}

/// What the chain that ends with `division` is computed from.
fn source(file: &OnnxFile, division: &Node) -> Option<String> {
    let is = |name: &String, value: f32| {
        file.floats(name)
            .is_ok_and(|constant| constant.values == [value])
    };
    let (clipped, [six]) = inputs(division, "Div")?;
    let (sum, [zero, other_six]) = inputs(file.node_of(clipped)?, "Clip")?;
    let (source, [three]) = inputs(file.node_of(sum)?, "Add")?;
    (is(six, 6.0) && is(other_six, 6.0) && is(zero, 0.0) && is(three, 3.0)).then(|| source.clone())
}

/// The first input and the `N` others of `node`, the operator `op` of ONNX.
fn inputs<'a, const N: usize>(node: &'a Node, op: &str) -> Option<(&'a String, &'a [String; N])> {
    if node.op_type != op || !node.domain.is_empty() {
        return None;
    }
    let (first, rest) = node.input.split_first()?;
    Some((first, rest.try_into().ok()?))
}
