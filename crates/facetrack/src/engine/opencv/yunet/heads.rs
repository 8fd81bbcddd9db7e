// SPDX-License-Identifier: MPL-2.0
//! Makes the published graph one that takes images of any size, red first, and runs faster.
//!
//! The file says 640×640, but no node depends on it. Each level of the pyramid has four heads of two convolutions, the
//! second with one filter per channel, that read the same features and yield 1, 1, 4 and 10 channels: together just the
//! 16 of one block of ONNX Runtime's blocked layout. So they become one head, and its output stays as it is, channels
//! first and scores before the sigmoid; [`super::decode`] reads it in place.

use super::STRIDES;
use crate::model::onnx_file::{Floats, Node, OnnxFile, Reason};

/// Names of the heads and their channels, in the order in which [`super::decode`] finds them.
const HEADS: [(&str, usize); 4] = [("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10)];

/// Channels of all heads of a level.
pub const CHANNELS: usize = 16;

/// Axes of the input's height and width.
const SIZE_AXES: [usize; 2] = [2, 3];

/// Rewrites YuNet's graph. Its outputs are then one of [1, [`CHANNELS`], height / stride, width / stride] for each of
/// [`STRIDES`].
///
/// # Errors
/// When it is another graph.
pub fn rewrite(file: &mut OnnxFile) -> Result<(), Reason> {
    file.free_axes(&SIZE_AXES);
    take_red_first(file)?;
    let outputs = STRIDES
        .iter()
        .map(|stride| merge(file, *stride))
        .collect::<Result<Vec<_>, _>>()?;
    file.set_outputs(&outputs);
    Ok(())
}

/// OpenCV shows the network images whose blue comes first.
fn take_red_first(file: &mut OnnxFile) -> Result<(), Reason> {
    const WEIGHTS: &str = "red first";
    let convolution = file.first_convolution()?;
    let name = convolution
        .input
        .get_mut(1)
        .ok_or("a convolution without weights")?;
    let name = std::mem::replace(name, WEIGHTS.to_owned());
    let mut weights = file.floats(&name)?;
    let [_, 3, height, width] = weights.dims[..] else {
        return Err(format!("{name} has the shape {:?}", weights.dims));
    };
    let filter = height * width;
    for filters in weights.values.chunks_exact_mut((3 * filter).max(1)) {
        let (first, rest) = filters.split_at_mut(filter);
        first.swap_with_slice(&mut rest[filter..]);
    }
    file.add_floats(WEIGHTS, &weights);
    Ok(())
}

/// Makes one head of the four at `stride`, and returns the name of its output.
fn merge(file: &mut OnnxFile, stride: usize) -> Result<String, Reason> {
    let heads = HEADS
        .iter()
        .map(|(name, _)| head(file, name, stride))
        .collect::<Result<Vec<_>, _>>()?;
    let (pointwise, depthwise): (Vec<Node>, Vec<Node>) = heads.into_iter().unzip();
    let features = source(&pointwise[0])?;
    if pointwise.iter().any(|node| node.input[0] != features) {
        return Err(format!("the heads at stride {stride} read several values"));
    }
    let [between, output] = ["pointwise", "depthwise"].map(|kind| format!("{kind} {stride}"));
    add_merged(file, &pointwise, features, &between, 1)?;
    add_merged(file, &depthwise, &between, &output, CHANNELS)?;
    Ok(output)
}

/// The two convolutions of a head.
fn head(file: &OnnxFile, name: &str, stride: usize) -> Result<(Node, Node), Reason> {
    let after: &[&str] = match name {
        "cls" | "obj" => &["Sigmoid", "Reshape", "Transpose"],
        _ => &["Reshape", "Transpose"],
    };
    let mut value = format!("{name}_{stride}");
    for op in after {
        value = source(file.producer(&value, op)?)?.to_owned();
    }
    let depthwise = file.producer(&value, "Conv")?;
    let pointwise = file.producer(source(depthwise)?, "Conv")?;
    source(pointwise)?;
    Ok((pointwise.clone(), depthwise.clone()))
}

/// What a node computes its output from.
fn source(node: &Node) -> Result<&str, Reason> {
    let first = node.input.first().map(String::as_str);
    first.ok_or_else(|| format!("a {} without input", node.op_type))
}

/// The attribute that makes a convolution depthwise, in which alone the merged ones differ.
const GROUP: &str = "group";

/// Adds a convolution that yields the channels of `nodes`, those of [`HEADS`], as `output`, from `input`.
fn add_merged(
    file: &mut OnnxFile,
    nodes: &[Node],
    input: &str,
    output: &str,
    group: usize,
) -> Result<(), Reason> {
    let attributes = |node: &Node| -> Vec<_> {
        let own = node.attribute.iter();
        own.filter(|own| own.name != GROUP).cloned().collect()
    };
    let expected = attributes(&nodes[0]);
    if nodes.iter().any(|node| attributes(node) != expected) {
        return Err(format!("the convolutions for {output} differ"));
    }
    let mut merged = nodes[0].clone();
    merged.name.clear();
    merged.input = vec![input.to_owned()];
    merged.output = vec![output.to_owned()];
    merged.set_int(GROUP, group as i64);
    for (index, kind) in [(1, "weights"), (2, "bias")] {
        let name = format!("{output} {kind}");
        let constant = concatenated(file, nodes, index)?;
        file.add_floats(&name, &constant);
        merged.input.push(name);
    }
    file.add_node(merged);
    Ok(())
}

/// The constants that `nodes`, those of [`HEADS`], have as input `index`, one after the other along their first axis.
fn concatenated(file: &OnnxFile, nodes: &[Node], index: usize) -> Result<Floats, Reason> {
    let mut all: Option<Floats> = None;
    for (node, (head, channels)) in nodes.iter().zip(HEADS) {
        let name = node.input.get(index).ok_or("a head without bias")?;
        let constant = file.floats(name)?;
        if constant.dims.first() != Some(&channels) {
            return Err(format!(
                "{name} of {head} has the shape {:?}",
                constant.dims
            ));
        }
        match &mut all {
            None => all = Some(constant),
            Some(all) if all.dims[1..] == constant.dims[1..] => {
                all.dims[0] += channels;
                all.values.extend(constant.values);
            }
            Some(all) => {
                return Err(format!(
                    "{name} of {head} does not fit {:?}: {:?}",
                    all.dims, constant.dims
                ));
            }
        }
    }
    all.ok_or_else(|| "no heads".to_owned())
}
