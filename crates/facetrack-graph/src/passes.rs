// SPDX-License-Identifier: MPL-2.0
//! Passes that make of a graph an equal one that runs faster.
//!
//! Those of [`COMMON`] serve every runtime, the others ONNX Runtime. It keeps images in a blocked
//! layout (`NCHWc`): 16 channels side by side with AVX-512, 8 with AVX2. It has blocked convolutions
//! (into which it fuses a following sum and a Relu), with one filter per channel or without groups,
//! pooling, sums and products of images of one size, Relu, and concatenation of whole blocks. Before
//! all other operators it leaves the layout, and returns to it after them.

mod hard_sigmoid;
mod layer_norm;
mod merge;
mod prelu;
mod rows;
mod taps;

use super::{Graph, Result};

/// Changes a graph. Each node of the graph comes after the nodes that it depends on.
pub type Pass = fn(&mut Graph) -> Result<()>;

/// Channels of a block with AVX-512, a multiple of the block of other instruction sets.
const BLOCK: usize = 16;

/// Passes that make any network smaller.
pub const COMMON: &[Pass] = &[
    |graph| at_each_node(graph, layer_norm::fuse),
    |graph| at_each_node(graph, hard_sigmoid::fuse),
    rows::skip_unused,
];

/// The passes of OpenSeeFace's networks.
pub const OPENSEEFACE: &[Pass] = &[|graph| at_each_node(graph, hard_sigmoid::fuse)];

/// The passes of networks that run in ONNX Runtime.
pub const ONNX_RUNTIME: &[Pass] = &[|graph| at_each_node(graph, prelu::split)];

/// Further passes of the layers that yield a detector's scores.
pub const SCORES: &[Pass] = &[|graph| at_each_node(graph, taps::split)];

/// Further passes of the layers that yield a detector's boxes.
pub const BOXES: &[Pass] = &[merge::merge];

/// Lets `change` change each node of the graph by its index, except those that it adds. It returns
/// `None` for a node that it leaves as it is.
fn at_each_node(graph: &mut Graph, change: fn(&mut Graph, usize) -> Option<()>) -> Result<()> {
    for index in 0..graph.nodes.len() {
        change(graph, index);
        graph.check_size()?;
    }
    Ok(())
}

/// Runs `passes` on `graph`.
///
/// # Errors
/// When the constants of the graph become too large.
pub fn run(graph: &mut Graph, passes: &[Pass]) -> Result<()> {
    graph.sort();
    for pass in passes {
        pass(graph)?;
        graph.check_size()?;
        graph.sort();
    }
    Ok(())
}
