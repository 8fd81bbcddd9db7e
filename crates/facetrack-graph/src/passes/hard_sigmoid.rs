// SPDX-License-Identifier: MPL-2.0
//! Replaces `clip(x + 3, 0, 6) / 6` by one operator. ONNX Runtime fuses it, and a following product
//! with `x`, into the convolution before.

use super::super::{Attribute, Graph, Node, Value};

/// Replaces the chain that ends with the node at `index` by one operator.
pub(super) fn fuse(graph: &mut Graph, index: usize) -> Option<()> {
    let source = source(graph, &graph.nodes[index])?;
    let attributes = vec![
        Attribute::float("alpha", 1.0 / 6.0),
        Attribute::float("beta", 0.5),
    ];
    graph.set_node(index, "HardSigmoid", &[source], attributes);
    Some(())
}

/// The value that the chain that ends with `division` is computed from.
fn source(graph: &Graph, division: &Node) -> Option<Value> {
    let is = |value, number: f32| {
        graph
            .floats(value)
            .is_some_and(|own| own.iter().eq([&number]))
    };
    let [clipped, six] = division.operands("Div")?;
    let [sum, zero, other_six] = graph.operands(clipped, "Clip")?;
    let [source, three] = graph.operands(sum, "Add")?;
    (is(six, 6.0) && is(other_six, 6.0) && is(zero, 0.0) && is(three, 3.0)).then_some(source)
}
