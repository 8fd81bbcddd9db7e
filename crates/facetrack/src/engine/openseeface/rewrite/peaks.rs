// SPDX-License-Identifier: MPL-2.0
//! Finds the peaks of the heat maps within the network, and computes the offsets there alone.
//!
//! The maps of offsets are two thirds of the network's output, and of each a single element is read: the one where the
//! landmark's heat map is greatest. Their last two convolutions look at 3×3 cells around it. So these cells are
//! gathered for each landmark, the first convolution is made of them, and the second is a product of two vectors.

use super::convolution::Convolution;
use super::tail::Tail;
use crate::engine::openseeface::LandmarkContract;
use crate::model::onnx_file::{Floats, Node, OnnxFile};

/// Groups of maps: heat, offsets along rows, offsets along columns.
const GROUPS: usize = 3;

/// Rows and columns of the cells that an offset depends on.
const SIDE: usize = 3;

/// Cells around a cell, and itself.
const NEAR: usize = SIDE * SIDE;

/// The heat maps, [1, points, cells, cells].
const HEAT: &str = "heat";

/// The greatest value of each heat map, [points, 1].
const VALUE: &str = "value";

/// The cell that has it, [points, 1].
const CELL: &str = "cell";

/// The offsets there, [2, points].
const OFFSETS: &str = "offsets";

/// Lets the only output of `file` be `[4, points]`: value and cell of the peaks, offsets along rows and columns.
pub fn find(file: &mut OnnxFile, contract: &LandmarkContract) {
    let Some(output) = file.outputs().pop() else {
        return;
    };
    let nodes = at_peaks(file, contract, &output.name)
        .unwrap_or_else(|| picked(file, contract, &output.name));
    nodes.into_iter().for_each(|node| file.add_node(node));
    const RESULT: &str = "peaks";
    for node in joined(file, contract, RESULT) {
        file.add_node(node);
    }
    file.set_outputs(&[RESULT.to_owned()]);
}

/// Nodes that make of the output `maps` the heat maps and the offsets at their peaks.
fn picked(file: &mut OnnxFile, contract: &LandmarkContract, maps: &str) -> Vec<Node> {
    let points = contract.points;
    let cells = contract.cells * contract.cells;
    let mut split = Node::new("Split", &[maps], HEAT);
    split.output.push("all offsets".to_owned());
    split.set_int("axis", 1);
    split.set_ints("split", &[points as i64, 2 * points as i64]);
    file.add_ints("rows of maps", &[3], &[2, points as i64, cells as i64]);
    file.add_ints("rows of cells", &[3], &[1, points as i64, 1]);
    file.add_ints("rows of offsets", &[2], &[2, points as i64]);
    let mut nodes = vec![split];
    nodes.extend(top(file, contract));
    let mut both = Node::new("Concat", &["row of cells", "row of cells"], "both cells");
    both.set_int("axis", 0);
    let mut gather = Node::new("GatherElements", &["offset maps", "both cells"], "picked");
    gather.set_int("axis", 2);
    nodes.extend([
        Node::new("Reshape", &["all offsets", "rows of maps"], "offset maps"),
        Node::new("Reshape", &[CELL, "rows of cells"], "row of cells"),
        both,
        gather,
        Node::new("Reshape", &["picked", "rows of offsets"], OFFSETS),
    ]);
    nodes
}

/// Nodes that find the peaks of the heat maps.
fn top(file: &mut OnnxFile, contract: &LandmarkContract) -> Vec<Node> {
    let cells = contract.cells * contract.cells;
    file.add_ints("heat rows", &[2], &[contract.points as i64, cells as i64]);
    file.add_ints("one", &[1], &[1]);
    let mut top = Node::new("TopK", &["rows of heat", "one"], VALUE);
    top.output.push(CELL.to_owned());
    top.set_int("axis", 1);
    vec![
        Node::new("Reshape", &[HEAT, "heat rows"], "rows of heat"),
        top,
    ]
}

/// Nodes that make one output of values, cells and offsets.
fn joined(file: &mut OnnxFile, contract: &LandmarkContract, output: &str) -> Vec<Node> {
    file.add_ints("row", &[2], &[1, contract.points as i64]);
    let mut cast = Node::new("Cast", &["cell row"], "cells as floats");
    cast.set_int("to", 1);
    let mut concat = Node::new("Concat", &["value row", "cells as floats", OFFSETS], output);
    concat.set_int("axis", 0);
    vec![
        Node::new("Reshape", &[VALUE, "row"], "value row"),
        Node::new("Reshape", &[CELL, "row"], "cell row"),
        cast,
        concat,
    ]
}

/// Nodes that make the heat maps, and the offsets at their peaks alone. `None` for a network that ends with others
/// than the three convolutions of the published ones.
fn at_peaks(file: &mut OnnxFile, contract: &LandmarkContract, maps: &str) -> Option<Vec<Node>> {
    let points = contract.points;
    let tail = Tail::before(file, maps)?;
    let features = Convolution::yielding(file, tail.input())?;
    let source = features.node.input.first()?.clone();
    let fits = tail.groups() == GROUPS
        && tail.inputs_of_group() == points
        && tail.outputs_of_group() == points
        && tail.keeps_size()
        && features.is_pointwise()
        && features.groups == 1
        && features.outputs() == GROUPS * points;
    if !fits {
        return None;
    }
    let heat_features = features.with_outputs(0..points);
    let mut nodes = vec![heat_features.into_node(file, &source, "heat features")];
    nodes.extend(tail.split(file, 0..1, "heat features", HEAT)?);
    nodes.extend(top(file, contract));
    let offset_features = features.with_outputs(points..GROUPS * points);
    nodes.push(offset_features.into_node(file, &source, "offset features"));
    nodes.extend(patches(file, contract));
    nodes.extend(offsets(file, contract, &tail)?);
    Some(nodes)
}

/// Nodes that gather the cells around each peak: of 'offset features' an image `patches` [1, 2 · points, 3 · points, 3],
/// in which the 3×3 cells of one landmark lie below those of the one before.
fn patches(file: &mut OnnxFile, contract: &LandmarkContract) -> Vec<Node> {
    let (points, cells) = (contract.points as i64, contract.cells * contract.cells);
    let channels = 2 * points;
    file.add_ints("cells and channels", &[2], &[cells as i64, channels]);
    file.add_floats(
        "outside",
        &Floats {
            dims: vec![1, channels as usize],
            values: vec![0.0; channels as usize],
        },
    );
    file.add_ints("neighbours", &[cells, NEAR], &neighbours(contract.cells));
    file.add_ints(
        "stacked",
        &[4],
        &[1, SIDE as i64 * points, SIDE as i64, channels],
    );
    let mut channels_last = Node::new("Transpose", &["offset features"], "channels last");
    channels_last.set_ints("perm", &[0, 2, 3, 1]);
    let mut with_outside = Node::new("Concat", &["by cell", "outside"], "with outside");
    with_outside.set_int("axis", 0);
    let mut channels_first = Node::new("Transpose", &["stack"], "patches");
    channels_first.set_ints("perm", &[0, 3, 1, 2]);
    vec![
        channels_last,
        Node::new(
            "Reshape",
            &["channels last", "cells and channels"],
            "by cell",
        ),
        with_outside,
        Node::new("Gather", &["neighbours", CELL], "near"),
        Node::new("Gather", &["with outside", "near"], "gathered"),
        Node::new("Reshape", &["gathered", "stacked"], "stack"),
        channels_first,
    ]
}

/// For each of `side`² cells the 3×3 cells around it, row by row; `side`² for those outside.
fn neighbours(side: usize) -> Vec<i64> {
    let cell = |row: Option<usize>, column: Option<usize>| match (row, column) {
        (Some(row), Some(column)) if row < side && column < side => row * side + column,
        _ => side * side,
    };
    let near = |at: usize, step: usize| (at + step).checked_sub(1);
    let mut all = Vec::with_capacity(side * side * NEAR);
    for at in 0..side * side {
        for step in 0..NEAR {
            let row = near(at / side, step / SIDE);
            let column = near(at % side, step % SIDE);
            all.push(cell(row, column) as i64);
        }
    }
    all
}

/// Nodes that make the offsets of `patches`.
fn offsets(file: &mut OnnxFile, contract: &LandmarkContract, tail: &Tail) -> Option<Vec<Node>> {
    let points = contract.points;
    let filters = tail.filters();
    let channels = 2 * points;
    let mut nodes = Vec::new();
    let mut filtered = Vec::new();
    for filter in 0..filters {
        let mut convolution = tail.depthwise(points..GROUPS * points, filter);
        let node = &mut convolution.node;
        node.attribute.retain(|own| own.name != "auto_pad");
        node.set_ints("pads", &[0; 4]);
        node.set_ints("strides", &[SIDE as i64; 2]);
        let output = format!("patches filtered {filter}");
        nodes.push(convolution.into_node(file, "patches", &output));
        filtered.push(output);
    }
    // Filters, channels: for each landmark the weights of its output; for each kind of offset ones where it is summed.
    let mut weights = Vec::with_capacity(filters * channels * points);
    let mut ones = vec![0.0; 2 * filters * channels];
    for row in 0..filters * channels {
        let (filter, channel) = (row / channels, row % channels);
        let (kind, channel) = (channel / points, channel % points);
        ones[kind * filters * channels + row] = 1.0;
        let first = (1 + kind) * points;
        weights.extend((first..first + points).map(|output| tail.weight(output, channel, filter)));
    }
    file.add_floats(
        "offset weights",
        &Floats {
            dims: vec![filters * channels, points],
            values: weights,
        },
    );
    file.add_floats(
        "offset sums",
        &Floats {
            dims: vec![2, filters * channels],
            values: ones,
        },
    );
    file.add_floats(
        "offset bias",
        &Floats {
            dims: vec![2, points],
            values: tail.pointwise().bias[points..].to_vec(),
        },
    );
    let shape = [(filters * channels) as i64, points as i64];
    file.add_ints("filters and points", &[2], &shape);
    let mut concat = Node::new("Concat", &filtered, "all filtered");
    concat.set_int("axis", 1);
    nodes.extend([
        concat,
        Node::new("Reshape", &["all filtered", "filters and points"], "rows"),
        Node::new("Mul", &["rows", "offset weights"], "weighted"),
        Node::new("MatMul", &["offset sums", "weighted"], "summed"),
        Node::new("Add", &["summed", "offset bias"], "biased"),
        tail.pointwise().activation(file, "biased", OFFSETS)?,
    ]);
    Some(nodes)
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
