// SPDX-License-Identifier: MPL-2.0
//! Finds the peaks of the heat maps within the network, and computes the offsets only there.
//!
//! The maps of offsets are two thirds of the network's output, and one element of each is read: the
//! one where the landmark's heat map has its maximum. Their last two convolutions look at 3×3 cells
//! around it. So these cells are gathered for each landmark, the first convolution is computed of
//! them, and the second is a product of two vectors.

use facetrack_graph::convolution::Convolution;
use facetrack_graph::passes::tail::Tail;
use facetrack_graph::{Attribute, Graph, Value};

use crate::engine::openseeface::LandmarkContract;

/// Groups of maps: heat, offsets along rows, offsets along columns.
const GROUPS: usize = 3;

/// Rows and columns of the cells that an offset depends on.
const SIDE: usize = 3;

/// Cells around a cell, and itself.
const NEAR: usize = SIDE * SIDE;

/// Peaks of all heat maps: the maximum of each, [points, 1], the cell that has it, [points, 1], and
/// the offsets there, [2, points].
type Peaks = [Value; 3];

/// Makes `[4, points]` the only output of `graph`: value and cell of the peaks, offsets along rows
/// and columns.
pub fn find(graph: &mut Graph, contract: &LandmarkContract) {
    let Some(maps) = graph.outputs.pop().map(|port| port.value) else {
        return;
    };
    let peaks = at_peaks(graph, contract, maps).unwrap_or_else(|| picked(graph, contract, maps));
    let [values, cells, offsets] = peaks;
    let [values, cells] =
        [values, cells].map(|value| reshape(graph, value, &[1, contract.points as i64]));
    let cells = graph.add("Cast", &[cells], vec![Attribute::int("to", 1)]);
    let all = concat(graph, &[values, cells, offsets], 0);
    graph.set_outputs(&[all]);
}

/// Picks the offsets at the peaks out of the output `maps`.
fn picked(graph: &mut Graph, contract: &LandmarkContract, maps: Value) -> Peaks {
    let points = contract.points as i64;
    let cells = (contract.cells * contract.cells) as i64;
    let attributes = vec![
        Attribute::int("axis", 1),
        Attribute::ints("split", &[points, 2 * points]),
    ];
    let [heat, offsets] = graph.add_pair("Split", &[maps], attributes);
    let [value, cell] = top(graph, contract, heat);
    let offsets = reshape(graph, offsets, &[2, points, cells]);
    let row = reshape(graph, cell, &[1, points, 1]);
    let both = concat(graph, &[row, row], 0);
    let axis = vec![Attribute::int("axis", 2)];
    let offsets = graph.add("GatherElements", &[offsets, both], axis);
    [value, cell, reshape(graph, offsets, &[2, points])]
}

/// Finds value and cell of the peaks of the heat maps, [1, points, cells, cells].
fn top(graph: &mut Graph, contract: &LandmarkContract, heat: Value) -> [Value; 2] {
    let cells = contract.cells * contract.cells;
    let rows = reshape(graph, heat, &[contract.points as i64, cells as i64]);
    let one = graph.add_ints(&[1], &[1]);
    graph.add_pair("TopK", &[rows, one], vec![Attribute::int("axis", 1)])
}

/// Computes the heat maps, and the offsets at their peaks only. `None` for a network that ends with
/// others than the three convolutions of the published ones.
fn at_peaks(graph: &mut Graph, contract: &LandmarkContract, maps: Value) -> Option<Peaks> {
    let points = contract.points;
    let tail = Tail::before(graph, maps)?;
    let features = Convolution::yielding(graph, tail.spatial.input())?;
    let fits = tail.pointwise.groups == GROUPS
        && tail.inputs_of_group() == points
        && tail.outputs_of_group() == points
        && tail.keeps_size()
        && features.is_pointwise()
        && features.groups == 1
        && features.outputs() == GROUPS * points;
    if !fits {
        return None;
    }
    let source = features.input();
    let heat = features.with_outputs(0..points).add_to(graph, source);
    let heat = tail.split(graph, 0..1, heat)?;
    let [value, cell] = top(graph, contract, heat);
    let features = features.with_outputs(points..GROUPS * points);
    let features = features.add_to(graph, source);
    let patches = patches(graph, contract, features, cell);
    let offsets = offsets(graph, contract, &tail, patches)?;
    Some([value, cell, offsets])
}

/// Gathers the cells of `features` around each peak as an image [1, 2 · points, 3 · points, 3]: the
/// 3×3 cells of all landmarks, one below the other.
fn patches(graph: &mut Graph, contract: &LandmarkContract, features: Value, cell: Value) -> Value {
    let (points, cells) = (contract.points, contract.cells * contract.cells);
    let channels = 2 * points;
    let outside = graph.add_floats(&[1, channels], &vec![0.0; channels]);
    let neighbours = graph.add_ints(&[cells, NEAR], &neighbours(contract.cells));
    let channels = channels as i64;
    let by_cell = transpose(graph, features, &[0, 2, 3, 1]);
    let by_cell = reshape(graph, by_cell, &[cells as i64, channels]);
    let with_outside = concat(graph, &[by_cell, outside], 0);
    let near = graph.add("Gather", &[neighbours, cell], vec![]);
    let gathered = graph.add("Gather", &[with_outside, near], vec![]);
    let side = SIDE as i64;
    let stack = reshape(graph, gathered, &[1, side * points as i64, side, channels]);
    transpose(graph, stack, &[0, 3, 1, 2])
}

/// For each of `side`² cells the 3×3 cells around it, row by row; `side`² for those outside.
fn neighbours(side: usize) -> Vec<i64> {
    let near = |at: usize, step: usize| (at + step).checked_sub(1).filter(|at| *at < side);
    let cells = (0..side * side).flat_map(|at| (0..NEAR).map(move |step| (at, step)));
    let neighbours = cells.map(|(at, step)| {
        let row = near(at / side, step / SIDE);
        let column = near(at % side, step % SIDE);
        let cell = row.zip(column).map(|(row, column)| row * side + column);
        cell.unwrap_or(side * side) as i64
    });
    neighbours.collect()
}

/// Computes the offsets, [2, points], of `patches`.
fn offsets(
    graph: &mut Graph,
    contract: &LandmarkContract,
    tail: &Tail,
    patches: Value,
) -> Option<Value> {
    let points = contract.points;
    let channels = 2 * points;
    let mut filtered = Vec::new();
    for filter in 0..tail.filters {
        let mut convolution = tail.depthwise(points..GROUPS * points, filter);
        let node = &mut convolution.node;
        node.attributes.retain(|own| own.name != "auto_pad");
        node.set(Attribute::ints("pads", &[0; 4]));
        node.set(Attribute::ints("strides", &[SIDE as i64; 2]));
        filtered.push(convolution.add_to(graph, patches));
    }
    let all = concat(graph, &filtered, 1);
    let rows = tail.filters * channels;
    let all = reshape(graph, all, &[rows as i64, points as i64]);
    // Filters, channels: for each landmark the weights of its output; for each kind of offset ones
    // where it is summed.
    let mut weights = Vec::with_capacity(rows * points);
    let mut ones = vec![0.0; 2 * rows];
    for row in 0..rows {
        let (filter, channel) = (row / channels, row % channels);
        let (kind, channel) = (channel / points, channel % points);
        ones[kind * rows + row] = 1.0;
        let first = (1 + kind) * points;
        weights.extend((first..first + points).map(|output| tail.weight(output, channel, filter)));
    }
    let weights = graph.add_floats(&[rows, points], &weights);
    let ones = graph.add_floats(&[2, rows], &ones);
    let weighted = graph.add("Mul", &[all, weights], vec![]);
    let mut sum = graph.add("MatMul", &[ones, weighted], vec![]);
    if let Some(bias) = &tail.pointwise.bias {
        let bias = graph.add_floats(&[2, points], &bias[points..]);
        sum = graph.add("Add", &[sum, bias], vec![]);
    }
    tail.pointwise.add_activation(graph, sum)
}

fn reshape(graph: &mut Graph, value: Value, shape: &[i64]) -> Value {
    let shape = graph.add_ints(&[shape.len()], shape);
    graph.add("Reshape", &[value, shape], vec![])
}

fn transpose(graph: &mut Graph, value: Value, order: &[i64]) -> Value {
    graph.add("Transpose", &[value], vec![Attribute::ints("perm", order)])
}

fn concat(graph: &mut Graph, values: &[Value], axis: i64) -> Value {
    graph.add("Concat", values, vec![Attribute::int("axis", axis)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_outside_have_a_number_of_their_own() {
        let near = neighbours(3);
        let of = |cell: usize| near[cell * NEAR..][..NEAR].to_vec();
        assert_eq!(near.len(), 9 * NEAR);
        assert_eq!(of(4), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(of(0), [9, 9, 9, 9, 0, 1, 9, 3, 4]);
        assert_eq!(of(5), [1, 2, 9, 4, 5, 9, 7, 8, 9]);
        assert_eq!(of(7), [3, 4, 5, 6, 7, 8, 9, 9, 9]);
    }
}
