// SPDX-License-Identifier: MPL-2.0
//! Rewrites a graph into an equal one that ONNX Runtime runs faster.
//!
//! Images want to stay in ONNX Runtime's blocked layout (`NCHWc`): 16 channels side by side with AVX-512, 8 with AVX2.
//! It has blocked convolutions (into which it fuses a following sum and a Relu), pooling, sums, Relu, and concatenation
//! of whole blocks; before everything else it would leave the layout and return to it after.

mod layer_norm;
mod pad;
mod prelu;
mod rows;
mod widen;

use super::flatbuffer::Reason;
use super::graph::Graph;

/// Channels in a block, with AVX-512. A multiple of the block of other instruction sets.
const BLOCK: usize = 16;

/// Rewrites `graph`. Its nodes must be in an order in which they can run, and are so again afterwards.
pub(super) fn rewrite(graph: &mut Graph) -> Result<(), Reason> {
    for pass in [
        layer_norm::fuse,
        rows::skip_unused,
        prelu::split,
        widen::round_channels,
        pad::fold,
    ] {
        pass(graph)?;
        graph.sort();
    }
    Ok(())
}
