// SPDX-License-Identifier: MPL-2.0
//! Passes that rewrite a graph into an equivalent one that runs faster.

mod hard_sigmoid;
mod layer_norm;
mod rows;

use super::{Graph, Result};

/// Changes a graph. Each node of the graph comes after the nodes that it depends on.
pub type Pass = fn(&mut Graph) -> Result<()>;

/// Passes of the networks that are read from TFLite files.
pub const COMMON: &[Pass] = &[
    |graph| at_each_node(graph, layer_norm::fuse),
    |graph| at_each_node(graph, hard_sigmoid::fuse),
    rows::skip_unused,
];

/// The passes of OpenSeeFace's networks.
pub const OPENSEEFACE: &[Pass] = &[|graph| at_each_node(graph, hard_sigmoid::fuse)];

/// Calls `change` for each node of the graph by its index, except those that it adds. It returns
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
/// Returns an error if the constants of the graph become too large.
pub fn run(graph: &mut Graph, passes: &[Pass]) -> Result<()> {
    graph.sort();
    for pass in passes {
        pass(graph)?;
        graph.check_size()?;
        graph.sort();
    }
    Ok(())
}
