// SPDX-License-Identifier: MPL-2.0
//! Finds layer normalisations written out as ten operators.

use super::super::{Attribute, Graph, Node, Value};

/// Replaces x·(γ/√(var + ε)) + (−mean)·(γ/√(var + ε)), over the last axis, by one operator. The node
/// at `index` is the sum.
pub(super) fn fuse(graph: &mut Graph, index: usize) -> Option<()> {
    let (inputs, epsilon) = normalisation(graph, &graph.nodes[index])?;
    let attributes = vec![
        Attribute::int("axis", -1),
        Attribute::float("epsilon", epsilon),
    ];
    graph.set_node(index, "LayerNormalization", &inputs, attributes);
    Some(())
}

/// The normalisation that ends with `sum`: x and γ, and ε.
fn normalisation(graph: &Graph, sum: &Node) -> Option<([Value; 2], f32)> {
    let [scaled, shift] = sum.operands("Add")?;
    let [source, factor] = graph.operands(scaled, "Mul")?;
    let [negative_mean, same_factor] = graph.operands(shift, "Mul")?;
    let [mean] = graph.operands(negative_mean, "Neg")?;
    let [deviation, scale] = graph.operands(factor, "Mul")?;
    let [root] = graph.operands(deviation, "Reciprocal")?;
    let [padded] = graph.operands(root, "Sqrt")?;
    let [variance, epsilon] = graph.operands(padded, "Add")?;
    let square = mean_of(graph, variance)?;
    let [difference, same_difference] = graph.operands(square, "Mul")?;
    let operands = graph.operands(difference, "Sub")?;
    let holds = same_factor == factor
        && same_difference == difference
        && operands == [source, mean]
        && mean_of(graph, mean)? == source
        && graph.shape(scale) == graph.shape(source).last_chunk::<1>()?;
    let epsilon = graph.floats(epsilon)?;
    let [epsilon] = *epsilon.as_slice()? else {
        return None;
    };
    holds.then_some(([source, scale], epsilon))
}

/// The input of `value`, if that is a mean over the last axis.
fn mean_of(graph: &Graph, value: Value) -> Option<Value> {
    let node = graph.producer(value)?;
    let is_over_last = node.attribute("axes")?.ints == [-1];
    (node.is("ReduceMean") && is_over_last).then(|| node.inputs[0])
}
