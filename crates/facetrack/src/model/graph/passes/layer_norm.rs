// SPDX-License-Identifier: MPL-2.0
//! Finds layer normalisations written out as ten operators.

use super::super::{Attribute, Graph, Node, Reason, Value};

/// Replaces x·(γ/√(var + ε)) + (−mean)·(γ/√(var + ε)), over the last axis, by one operator.
pub fn fuse(graph: &mut Graph) -> Result<(), Reason> {
    let finder = Finder {
        producers: graph.producers(),
        graph,
    };
    let found: Vec<(usize, Normalisation)> = (0..finder.graph.nodes.len())
        .filter_map(|index| Some((index, finder.normalisation(index)?)))
        .collect();
    for (
        index,
        Normalisation {
            source,
            scale,
            epsilon,
        },
    ) in found
    {
        let attributes = vec![
            Attribute::int("axis", -1),
            Attribute::float("epsilon", epsilon),
        ];
        graph.set_node(index, "LayerNormalization", &[source, scale], attributes);
    }
    Ok(())
}

struct Normalisation {
    source: Value,
    scale: Value,
    epsilon: f32,
}

struct Finder<'a> {
    graph: &'a Graph,
    producers: Vec<Option<usize>>,
}

impl Finder<'_> {
    fn normalisation(&self, index: usize) -> Option<Normalisation> {
        let sum = self.graph.nodes[index].output();
        let [scaled, shift] = self.operands(sum, "Add")?;
        let [source, factor] = self.operands(scaled, "Mul")?;
        let [negative_mean, same_factor] = self.operands(shift, "Mul")?;
        let [mean] = self.operands(negative_mean, "Neg")?;
        let [deviation, scale] = self.operands(factor, "Mul")?;
        let [root] = self.operands(deviation, "Reciprocal")?;
        let [padded] = self.operands(root, "Sqrt")?;
        let [variance, epsilon] = self.operands(padded, "Add")?;
        let square = self.mean_of(variance)?;
        let [difference, same_difference] = self.operands(square, "Mul")?;
        let [minuend, subtrahend] = self.operands(difference, "Sub")?;
        let holds = same_factor == factor
            && same_difference == difference
            && minuend == source
            && subtrahend == mean
            && self.mean_of(mean)? == source
            && self.graph.shape(scale) == self.graph.shape(source).last_chunk::<1>()?;
        let [epsilon] = self.graph.floats(epsilon)?.values[..] else {
            return None;
        };
        holds.then_some(Normalisation {
            source,
            scale,
            epsilon,
        })
    }

    /// The input of `value`, if that is a mean over the last axis.
    fn mean_of(&self, value: Value) -> Option<Value> {
        let node = self.node(value)?;
        let is_over_last = node.attribute("axes")?.ints == [-1];
        (node.is("ReduceMean") && is_over_last).then(|| node.inputs[0])
    }

    /// The operands of `value`, if `op` yields it.
    fn operands<const N: usize>(&self, value: Value, op: &str) -> Option<[Value; N]> {
        let node = self.node(value).filter(|node| node.is(op))?;
        node.inputs.as_slice().try_into().ok()
    }

    fn node(&self, value: Value) -> Option<&Node> {
        Some(&self.graph.nodes[self.producers[value.0]?])
    }
}
