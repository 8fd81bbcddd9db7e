// SPDX-License-Identifier: MPL-2.0
//! Makes one convolution of several that look at the same value, where their channels fill fewer
//! blocks together: the heads of InsightFace's detector are three convolutions of few channels
//! each, which cost as much as whole blocks.

use super::super::convolution::Convolution;
use super::super::{Attribute, Graph, Result};

/// Channels of a block of ONNX Runtime's layout on the processors with the smallest ones.
const BLOCK: usize = 8;

/// Merges all of them.
pub fn merge(graph: &mut Graph) -> Result<()> {
    let mut groups: Vec<Vec<Convolution>> = Vec::new();
    let convolutions = graph.nodes.iter().filter(|node| node.is("Conv"));
    let convolutions = convolutions.filter_map(|node| Convolution::of(graph, node));
    for convolution in convolutions.filter(|own| own.groups == 1) {
        let mut likes = groups.iter_mut();
        match likes
            .find(|group| convolution.input() == group[0].input() && convolution.is_like(&group[0]))
        {
            Some(group) => group.push(convolution),
            None => groups.push(vec![convolution]),
        }
    }
    for group in groups.iter().filter(|group| is_worth_it(group)) {
        join(graph, group);
        graph.check_size()?;
    }
    Ok(())
}

/// Whether the channels of a group fill fewer blocks together.
fn is_worth_it(group: &[Convolution]) -> bool {
    let apart: usize = group.iter().map(|own| own.outputs().div_ceil(BLOCK)).sum();
    let together: usize = group.iter().map(Convolution::outputs).sum();
    together.div_ceil(BLOCK) < apart
}

/// Adds one convolution, and lets each of the group take its channels out of it.
fn join(graph: &mut Graph, group: &[Convolution]) {
    let Some(joined) = Convolution::join(group, 1) else {
        return;
    };
    let image = joined.input();
    let all = joined.add_to(graph, image);
    let producers = graph.producers();
    let mut first = 0;
    for own in group {
        let channels: Vec<i64> = (first..first + own.outputs()).map(|i| i as i64).collect();
        let indices = graph.add_ints(&[channels.len()], &channels);
        if let Some(index) = producers[own.node.output().0] {
            let axis = vec![Attribute::int("axis", 1)];
            graph.set_node(index, "Gather", &[all, indices], axis);
        }
        first += own.outputs();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    /// Two convolutions with weights of these shapes, the second with `strides`, and their outputs
    /// as one.
    fn graph(takes_same: bool, dims: [[usize; 4]; 2], strides: i64) -> Graph {
        let mut graph = Graph::new(13);
        let images = ["x", "z"].map(|name| graph.add_input(name, &[1, 4, 8, 8]));
        let images = [images[0], if takes_same { images[0] } else { images[1] }];
        let mut convolution = |image: Value, dims: [usize; 4], strides: i64| {
            let values = (0..dims.iter().product()).map(|i: usize| i as f32);
            let weights = graph.add_floats(&dims, &values.collect::<Vec<_>>());
            let attributes = vec![
                Attribute::int("group", 1),
                Attribute::ints("strides", &[strides; 2]),
            ];
            graph.add("Conv", &[image, weights], attributes)
        };
        let parts = [
            convolution(images[0], dims[0], 1),
            convolution(images[1], dims[1], strides),
        ];
        let output = graph.add("Concat", &parts, vec![Attribute::int("axis", 1)]);
        graph.set_outputs(&[output]);
        merge(&mut graph).unwrap();
        graph.sort();
        graph
    }

    fn operators(graph: &Graph) -> Vec<&str> {
        graph.nodes.iter().map(|node| &node.op[..]).collect()
    }

    #[test]
    fn convolutions_of_few_channels_become_one() {
        for (takes_same, a, b, are_merged) in [
            (true, 2, 3, true),
            (true, 7, 9, true),
            (true, 8, 16, false),
            (false, 2, 3, false),
        ] {
            let graph = graph(takes_same, [[a, 4, 1, 1], [b, 4, 1, 1]], 1);
            if !are_merged {
                assert_eq!(operators(&graph), ["Conv", "Conv", "Concat"], "{a} {b}");
                continue;
            }
            assert_eq!(operators(&graph), ["Conv", "Gather", "Gather", "Concat"]);
            let weights = graph.floats(graph.nodes[0].inputs[1]).unwrap();
            assert_eq!(weights.shape(), [a + b, 4, 1, 1]);
            let values = (0..4 * a).chain(0..4 * b).map(|i| i as f32);
            assert_eq!(weights.as_slice().unwrap(), values.collect::<Vec<_>>());
        }
    }

    #[test]
    fn convolutions_of_other_sizes_or_strides_stay() {
        let strided = graph(true, [[2, 4, 1, 1], [3, 4, 1, 1]], 2);
        let larger = graph(true, [[2, 4, 1, 1], [3, 4, 3, 3]], 1);
        for graph in [strided, larger] {
            assert_eq!(operators(&graph), ["Conv", "Conv", "Concat"]);
        }
    }
}
