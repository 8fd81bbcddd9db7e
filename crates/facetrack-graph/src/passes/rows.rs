// SPDX-License-Identifier: MPL-2.0
//! Skips the rows of matrices that no later operator reads.
//!
//! At its end, MediaPipe's blendshape network reads one token of 97. Its last block computes all of
//! them, which is a sixth of the work of the network.

use std::ops::Range;

use ndarray::Axis;

use super::super::{Graph, Node, Result, Value};

/// Moves slices of rows towards the inputs, past operators that then compute fewer rows. A slice
/// passes a node only once, so there are fewer moves than nodes. In a forged network, more moves
/// would take long.
pub(super) fn skip_unused(graph: &mut Graph) -> Result<()> {
    for _ in 0..graph.nodes.len() {
        let Some(slice) = next_slice(graph) else {
            break;
        };
        move_up(graph, slice);
        graph.check_size()?;
    }
    Ok(())
}

/// A slice of rows of a value that nothing else takes, and the operator before it.
struct Slice {
    index: usize,
    producer: usize,
    rows: Range<usize>,
}

/// A slice that can move. Slices of slices come first, so that equal slices look equal.
fn next_slice(graph: &Graph) -> Option<Slice> {
    let (producers, users) = (graph.producers(), graph.users());
    let movable = |index: usize| {
        let node = &graph.nodes[index];
        let rows = sliced_rows(graph, node)?;
        let source = node.inputs[0];
        let producer = producers[source.0]?;
        let only_user = users[source.0] == [index];
        (only_user && lets_rows_pass(graph, &graph.nodes[producer])).then_some(Slice {
            index,
            producer,
            rows,
        })
    };
    let mut all = (0..graph.nodes.len()).filter_map(movable);
    let of_slice = all.clone().find(|s| graph.nodes[s.producer].op == "Slice");
    of_slice.or_else(|| all.next())
}

/// The rows that `node` keeps of a matrix.
fn sliced_rows(graph: &Graph, node: &Node) -> Option<Range<usize>> {
    let [_, begin, end, axis] = node.operands("Slice")?;
    let bound = |value| graph.ints(value)?.first().map(|n| *n as usize);
    let is_of_rows = graph.shape(node.output()).len() == 2 && bound(axis)? == 0;
    is_of_rows.then_some(bound(begin)?..bound(end)?)
}

/// Returns true if each row of the output depends only on the same row of the inputs.
fn lets_rows_pass(graph: &Graph, node: &Node) -> bool {
    let rows = graph.shape(node.output()).first().copied().unwrap_or(0);
    let fits = |value: &Value| match *graph.shape(*value) {
        [first, _] => first == rows || first == 1,
        _ => true,
    };
    match node.op.as_str() {
        "Add" | "Sub" | "Mul" | "Relu" => rows > 1 && node.inputs.iter().all(fits),
        "LayerNormalization" => rows > 1,
        "Gemm" => rows > 1 && node.inputs.iter().skip(2).all(fits),
        "Slice" => sliced_rows(graph, node).is_some(),
        _ => false,
    }
}

/// Makes the producer compute only the rows of the slice.
fn move_up(graph: &mut Graph, slice: Slice) {
    let output = graph.nodes[slice.index].output();
    let mut node = graph.nodes[slice.producer].clone();
    if let Some(inner) = sliced_rows(graph, &node) {
        let bounds = [inner.start + slice.rows.start, inner.start + slice.rows.end];
        for (input, bound) in node.inputs[1..].iter_mut().zip(bounds) {
            *input = graph.add_ints(&[1], &[bound as i64]);
        }
    } else {
        let rows = graph.shape(node.output())[0];
        let taken = match node.op.as_str() {
            // The weights have a row for each column of the other matrix.
            "Gemm" => vec![0, 2],
            "LayerNormalization" => vec![0],
            _ => (0..node.inputs.len()).collect(),
        };
        for input in taken {
            if let Some(value) = node.inputs.get(input).copied()
                && graph.shape(value).len() == 2
                && graph.shape(value)[0] == rows
            {
                node.inputs[input] = sliced(graph, value, slice.rows.clone());
            }
        }
    }
    node.outputs = vec![output];
    graph.nodes[slice.index] = node;
    graph.nodes.remove(slice.producer);
}

/// `rows` of `value`: a constant is cut, other values share one slice.
fn sliced(graph: &mut Graph, value: Value, rows: Range<usize>) -> Value {
    if let Some(content) = graph.floats(value) {
        let content = content.slice_axis(Axis(0), rows.into());
        return graph.add_floats(content.shape(), &content);
    }
    let existing = graph.nodes.iter().find(|node| {
        node.inputs.first() == Some(&value) && sliced_rows(graph, node).as_ref() == Some(&rows)
    });
    if let Some(node) = existing {
        return node.output();
    }
    graph.add_slice(value, rows, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_chain_does_not_move_each_slice_past_each_operator() {
        const COUNT: usize = 30;
        let mut graph = Graph::default();
        let mut value = graph.add_value(vec![2 * COUNT, 1]);
        for _ in 0..COUNT {
            value = graph.add_elementwise("Relu", &[value]);
        }
        for rows in (COUNT..2 * COUNT).rev() {
            let bounds = [0, rows, 0].map(|n| graph.add_ints(&[1], &[n as i64]));
            let inputs = [value, bounds[0], bounds[1], bounds[2]];
            value = graph.add_shaped("Slice", &inputs, vec![], vec![rows, 1]);
            value = graph.add_elementwise("Relu", &[value]);
        }
        graph.add_output("out", value);
        let before = graph.values.len();
        skip_unused(&mut graph).unwrap();
        // A move adds four values: a slice and its bounds.
        let moves = (graph.values.len() - before) / 4;
        assert!((COUNT..=3 * COUNT).contains(&moves), "{moves} moves");
    }
}
