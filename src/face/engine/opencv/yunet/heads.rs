// SPDX-License-Identifier: MPL-2.0
//! Makes the published graph one that takes images of any size, red first, and runs faster.
//!
//! The file says 640×640, but no node depends on it. Each level of the pyramid has four heads of two convolutions, the
//! second with one filter per channel, that read the same features and yield 1, 1, 4 and 10 channels: together just the
//! 16 of one block of ONNX Runtime's blocked layout. So they become one head, and its output stays as it is, channels
//! first and scores before the sigmoid; [`super::decode`] reads it in place.

use super::STRIDES;
use crate::face::model::onnx_file::{Floats, Node, OnnxFile, Reason};

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

/// The two convolutions of a head.
struct Head {
    pointwise: Node,
    depthwise: Node,
}

impl Head {
    fn find(file: &OnnxFile, name: &str, stride: usize) -> Result<Self, Reason> {
        let after: &[&str] = match name {
            "cls" | "obj" => &["Sigmoid", "Reshape", "Transpose"],
            _ => &["Reshape", "Transpose"],
        };
        let mut value = format!("{name}_{stride}");
        for op in after {
            value = source(file.producer(&value, op)?)?.to_owned();
        }
        let depthwise = file.producer(&value, "Conv")?.clone();
        let pointwise = file.producer(source(&depthwise)?, "Conv")?.clone();
        Ok(Self {
            pointwise,
            depthwise,
        })
    }
}

/// What a node computes its output from.
fn source(node: &Node) -> Result<&str, Reason> {
    let first = node.input.first();
    first
        .map(String::as_str)
        .ok_or_else(|| format!("a {} without input", node.op_type))
}

/// Makes one head of the four at `stride`, and returns the name of its output.
fn merge(file: &mut OnnxFile, stride: usize) -> Result<String, Reason> {
    let heads = HEADS
        .iter()
        .map(|(name, _)| Head::find(file, name, stride))
        .collect::<Result<Vec<_>, _>>()?;
    let features = source(&heads[0].pointwise)?.to_owned();
    if heads
        .iter()
        .any(|head| head.pointwise.input.first() != Some(&features))
    {
        return Err(format!("the heads at stride {stride} read several values"));
    }
    let [pointwise, depthwise] = ["pointwise", "depthwise"].map(|kind| format!("{kind} {stride}"));
    for (output, input, group, nodes) in [
        (
            &pointwise,
            &features,
            1,
            heads.iter().map(|head| &head.pointwise).collect::<Vec<_>>(),
        ),
        (
            &depthwise,
            &pointwise,
            CHANNELS,
            heads.iter().map(|head| &head.depthwise).collect(),
        ),
    ] {
        let node = side_by_side(file, &nodes, input, output, group)?;
        file.add_node(node);
    }
    Ok(depthwise)
}

/// The attribute that makes a convolution depthwise, in which alone the merged ones differ.
const GROUP: &str = "group";

/// A convolution that yields the channels of `nodes`, those of [`HEADS`], from `input`.
fn side_by_side(
    file: &mut OnnxFile,
    nodes: &[&Node],
    input: &str,
    output: &str,
    group: usize,
) -> Result<Node, Reason> {
    let attributes = |node: &&Node| {
        let own = node.attribute.iter();
        own.filter(|own| own.name != GROUP).cloned().collect()
    };
    let attributes: Vec<Vec<_>> = nodes.iter().map(attributes).collect();
    if attributes.iter().any(|own| *own != attributes[0]) {
        return Err(format!(
            "the convolutions for {output} have different attributes"
        ));
    }
    let mut inputs = vec![input.to_owned()];
    for index in [1, 2] {
        let constants = nodes
            .iter()
            .zip(HEADS)
            .map(|(node, (_, channels))| {
                let name = node.input.get(index).ok_or("a head without bias")?;
                let constant = file.floats(name)?;
                match constant.dims.first() {
                    Some(count) if *count == channels => Ok(constant),
                    _ => Err(format!("{name} has the shape {:?}", constant.dims)),
                }
            })
            .collect::<Result<Vec<_>, Reason>>()?;
        let name = format!("{output} {index}");
        file.add_floats(&name, &concatenated(constants)?);
        inputs.push(name);
    }
    let mut node = nodes[0].clone();
    node.name.clear();
    node.input = inputs;
    node.output = vec![output.to_owned()];
    node.set_int(GROUP, group as i64);
    Ok(node)
}

/// Constants one after the other along their first axis.
fn concatenated(constants: Vec<Floats>) -> Result<Floats, Reason> {
    let mut dims = constants[0].dims.clone();
    dims[0] = CHANNELS;
    if constants.iter().any(|c| c.dims[1..] != dims[1..]) {
        return Err("the heads have filters of several sizes".to_owned());
    }
    let values = constants.into_iter().flat_map(|c| c.values).collect();
    Ok(Floats { dims, values })
}
