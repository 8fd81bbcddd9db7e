// SPDX-License-Identifier: MPL-2.0
//! Makes one convolution of several that look at the same value, where their channels fill fewer blocks together.

use crate::model::onnx_file::{Floats, Node, OnnxFile};

/// Channels of a block of ONNX Runtime's layout, on the processors with the smallest ones.
const BLOCK: usize = 8;

/// A convolution with constant weights.
#[derive(Clone)]
struct Convolution {
    node: Node,
    /// [outputs, inputs, height, width].
    weights: Floats,
    bias: Vec<f32>,
}

/// Merges all of them.
pub fn merge(file: &mut OnnxFile) {
    let mut groups: Vec<Vec<Convolution>> = Vec::new();
    for convolution in file.nodes().iter().filter_map(|node| of(file, node)) {
        match groups
            .iter_mut()
            .find(|group| group[0].is_like(&convolution))
        {
            Some(group) => group.push(convolution),
            None => groups.push(vec![convolution]),
        }
    }
    for group in groups {
        if is_worth_it(&group) {
            join(file, &group);
        }
    }
}

/// `node`, if it is a convolution that is not grouped.
fn of(file: &OnnxFile, node: &Node) -> Option<Convolution> {
    let groups = node.attribute("group").map_or(Some(1), |group| group.i);
    if node.op_type != "Conv" || groups != Some(1) || node.output.len() != 1 {
        return None;
    }
    let weights = file.floats(node.input.get(1)?).ok()?;
    let [outputs, _, _, _] = weights.dims[..] else {
        return None;
    };
    let bias = match node.input.get(2) {
        None => vec![0.0; outputs],
        Some(bias) => file.floats(bias).ok()?.values,
    };
    (bias.len() == outputs).then(|| Convolution {
        node: node.clone(),
        weights,
        bias,
    })
}

impl Convolution {
    /// Whether it does the same with the same value, but for its weights.
    fn is_like(&self, other: &Self) -> bool {
        self.node.input.first() == other.node.input.first()
            && self.node.attribute == other.node.attribute
            && self.weights.dims[1..] == other.weights.dims[1..]
    }

    fn outputs(&self) -> usize {
        self.weights.dims[0]
    }
}

/// Whether the channels of a group fill fewer blocks together.
fn is_worth_it(group: &[Convolution]) -> bool {
    let apart: usize = group.iter().map(|own| own.outputs().div_ceil(BLOCK)).sum();
    let together: usize = group.iter().map(Convolution::outputs).sum();
    together.div_ceil(BLOCK) < apart
}

/// Puts one convolution in place of the first of a group, and what takes the channels of each out of it in place of each.
fn join(file: &mut OnnxFile, group: &[Convolution]) {
    let name = format!("{} and others", group[0].node.output.concat());
    let [weights, bias] = ["weights", "bias"].map(|kind| format!("{name} {kind}"));
    let outputs = group.iter().map(Convolution::outputs).sum();
    let mut dims = group[0].weights.dims.clone();
    dims[0] = outputs;
    let values = group.iter().flat_map(|own| own.weights.values.clone());
    let values = values.collect();
    file.add_floats(&weights, &Floats { dims, values });
    let (dims, values) = (vec![outputs], group.iter().flat_map(|own| own.bias.clone()));
    let values = values.collect();
    file.add_floats(&bias, &Floats { dims, values });

    let mut joined = group[0].node.clone();
    joined.input.truncate(1);
    joined.input.extend([weights, bias]);
    joined.output = vec![name.clone()];
    let mut before = vec![joined];
    let mut first = 0;
    for own in group {
        let output = own.node.output.concat();
        let indices = format!("{output} channels");
        let channels: Vec<i64> = (first..first + own.outputs()).map(|i| i as i64).collect();
        file.add_ints(&indices, &[channels.len()], &channels);
        let mut part = Node::new("Gather", &[&name, &indices], &output);
        part.set_int("axis", 1);
        before.push(part);
        file.replace(&output, std::mem::take(&mut before));
        first += own.outputs();
    }
}
