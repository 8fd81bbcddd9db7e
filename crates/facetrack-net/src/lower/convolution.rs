// SPDX-License-Identifier: MPL-2.0
//! Convolutions and pooling.

use facetrack_graph::convolution::Convolution;
use facetrack_graph::{Node, Value};

use super::{Lowering, Piece, Result, int, operand};
use crate::kernel::dense::Weights;
use crate::kernel::depthwise::{self, Filters};
use crate::kernel::{Activation, BLOCK, padded};
use crate::layer::{MAX_KERNEL, MAX_PADDING, Operator, Window};

/// Maximum number of inputs of a group for which each group is a sum of single filters.
const MAX_SUMMED: usize = 4;

impl Lowering<'_> {
    pub(super) fn convolution(&mut self, node: &Node) -> Result<Piece> {
        let mut convolution =
            Convolution::of(self.graph, node).ok_or("weights that are not constant")?;
        let piece = self.image(operand(node, 0)?)?;
        let channels = self.channels[piece.id].0;
        let (_, inputs, height, width) = convolution.weights.dim();
        if inputs.checked_mul(convolution.groups) != Some(channels) {
            return Err(format!("weights for {inputs} of {channels} channels"));
        }
        let window = window(node, [height, width])?;
        if let Some(tail) = self.tail(node)
            && let Some(yielded) = self.of_tail(&tail, piece, window)?
        {
            return Ok(yielded);
        }
        let activation = fused_activation(&convolution)?;
        let mut output = node.output();
        if activation == Activation::Linear
            && let Some((after, factors, added)) = self.normalized(output, convolution.outputs())
        {
            scale(&mut convolution, &factors, &added);
            output = after;
        }
        let yielded = self.of_groups(&convolution, piece, window, &activation)?;
        self.forms.insert(output, super::Form::Tensor(yielded));
        Ok(yielded)
    }

    /// The layers of a convolution.
    fn of_groups(
        &mut self,
        convolution: &Convolution,
        piece: Piece,
        window: Window,
        activation: &Activation,
    ) -> Result<Piece> {
        let (outputs, inputs, ..) = convolution.weights.dim();
        // A single filter of a single channel is faster as one filter for each channel in memory.
        let is_single = [outputs, inputs] == [1; 2] && !self.is_planar(piece);
        let is_sum = is_single || convolution.groups > 1 && inputs <= MAX_SUMMED;
        if is_sum && has_filters(&window) {
            return self.sum_of_filters(convolution, piece, window, activation);
        }
        if is_joined(convolution) {
            return self.dense(convolution, (piece, None), window, activation);
        }
        let mut parts = Vec::new();
        for group in 0..convolution.groups {
            let own = self.select(piece, (group * inputs..(group + 1) * inputs).collect())?;
            let size = outputs / convolution.groups;
            let mut part = convolution.with_outputs(group * size..(group + 1) * size);
            part.groups = 1;
            parts.push(self.dense(&part, (own, None), window, activation)?);
        }
        self.join(&parts)
    }

    /// Joins the channels of images.
    pub(super) fn join(&mut self, parts: &[Piece]) -> Result<Piece> {
        let order = parts.first().ok_or("no parts")?.order;
        let ids: Vec<_> = parts.iter().map(|piece| piece.id).collect();
        let channels = ids.iter().map(|id| self.channels[*id].0).sum();
        self.add(Operator::Concat(channels), ids, channels, order)
    }

    /// Adds a convolution of an image whose outputs may depend on all channels. A second image, if
    /// any, is added to its sums.
    pub(super) fn dense(
        &mut self,
        convolution: &Convolution,
        (piece, added): (Piece, Option<Piece>),
        window: Window,
        activation: &Activation,
    ) -> Result<Piece> {
        let stored = self.channels[piece.id].1;
        let (outputs, inputs, height, width) = convolution.weights.dim();
        let weights = &convolution.weights;
        let bias = convolution.biases();
        let of_group = outputs / convolution.groups;
        self.reserve(&[height, width, stored, padded(outputs)])?;
        let block = if self.is_planar(piece) { 1 } else { BLOCK };
        let kernel = [height, width];
        let packed = Weights::new(kernel, [stored, block], &bias, |y, x, channel, column| {
            let channel = channel.checked_sub(column / of_group * inputs);
            let weight = channel.and_then(|channel| weights.get([column, channel, y, x]));
            weight.copied().unwrap_or_default()
        });
        let operator = Operator::Dense(packed, window);
        let inputs = [piece].iter().chain(&added).map(|piece| piece.id).collect();
        let yielded = self.add(operator, inputs, outputs, piece.order)?;
        self.set_activation(activation);
        Ok(yielded)
    }

    /// Adds one convolution with a filter for each output for each of the inputs of a group.
    pub(super) fn sum_of_filters(
        &mut self,
        convolution: &Convolution,
        piece: Piece,
        window: Window,
        activation: &Activation,
    ) -> Result<Piece> {
        let (outputs, inputs, height, width) = convolution.weights.dim();
        let of_group = outputs / convolution.groups;
        let mut sum: Option<Piece> = None;
        for input in 0..inputs {
            let channels = (0..outputs).map(|output| output / of_group * inputs + input);
            let own = self.select(piece, channels.collect())?;
            let bias = match sum {
                None => convolution.biases(),
                Some(_) => vec![0.0; outputs],
            };
            self.reserve(&[height, width, padded(outputs)])?;
            let filters = Filters::new(height, &bias, |y, x, output| {
                convolution.weights[[output, input, y, x]]
            });
            let operator = Operator::Depthwise(filters, window);
            let part = self.add(operator, vec![own.id], outputs, piece.order)?;
            sum = Some(match sum {
                None => part,
                Some(sum) => {
                    self.add(Operator::Add, vec![sum.id, part.id], outputs, piece.order)?
                }
            });
        }
        self.set_activation(activation);
        sum.ok_or_else(|| "a convolution without inputs".to_owned())
    }

    /// Selects channels of an image.
    pub(super) fn select(&mut self, piece: Piece, channels: Vec<usize>) -> Result<Piece> {
        let count = channels.len();
        if channels.iter().copied().eq(0..self.channels[piece.id].0) {
            return Ok(piece);
        }
        self.add(
            Operator::Select(channels),
            vec![piece.id],
            count,
            piece.order,
        )
    }

    /// Sets the activation of the last layer.
    pub(super) fn set_activation(&mut self, activation: &Activation) {
        if let Some(layer) = self.layers.layers.last_mut() {
            layer.activation = activation.clone();
        }
    }

    fn is_planar(&self, piece: Piece) -> bool {
        let mut inputs = self.layers.inputs.iter();
        inputs.any(|input| input.id == piece.id && input.is_planar)
    }

    /// The value that follows from `value` by a normalization of its channels, with their factors
    /// and summands.
    pub(super) fn normalized(
        &self,
        value: Value,
        channels: usize,
    ) -> Option<(Value, Vec<f32>, Vec<f32>)> {
        let node = self
            .only_user(value)
            .filter(|node| node.is("BatchNormalization"))?;
        if node.inputs.first() != Some(&value)
            || node.outputs.len() != 1
            || int(node, "training_mode", 0) != 0
        {
            return None;
        }
        let numbers = |index: usize| -> Option<Vec<f32>> {
            let numbers = self.graph.floats(*node.inputs.get(index)?)?;
            (numbers.len() == channels).then(|| numbers.iter().copied().collect())
        };
        let epsilon = super::float(node, "epsilon", 1e-5);
        let [scale, added, mean, variance] = [numbers(1)?, numbers(2)?, numbers(3)?, numbers(4)?];
        let factors = scale
            .iter()
            .zip(&variance)
            .map(|(scale, variance)| scale / (variance + epsilon).sqrt());
        let factors: Vec<f32> = factors.collect();
        let added = added
            .iter()
            .zip(&mean)
            .zip(&factors)
            .map(|((added, mean), factor)| added - mean * factor);
        Some((node.output(), factors.clone(), added.collect()))
    }

    pub(super) fn max_pool(&mut self, node: &Node) -> Result<Piece> {
        let piece = self.image(operand(node, 0)?)?;
        let window = window(node, pair(node, "kernel_shape", 0)?)?;
        let pads = [window.before, window.behind];
        if pads
            .iter()
            .any(|pads| (0..2).any(|axis| pads[axis] >= window.kernel[axis]))
        {
            return Err("padding as large as the kernel".to_owned());
        }
        self.add_like(Operator::MaxPool(window), piece)
    }
}

/// Returns true if there is a kernel for filters that take one channel.
pub(super) fn has_filters(window: &Window) -> bool {
    let [down, across] = window.stride;
    down == across && depthwise::is_supported(window.kernel, across)
}

/// Returns true if the groups are computed as one, with zeros for the other groups: it has no more
/// columns in memory than one group.
pub(super) fn is_joined(convolution: &Convolution) -> bool {
    let outputs = convolution.outputs();
    convolution.groups == 1 || padded(outputs) == padded(outputs / convolution.groups)
}

/// Changes each output by a factor and a summand.
fn scale(convolution: &mut Convolution, factors: &[f32], added: &[f32]) {
    let bias = convolution.biases();
    let changed = bias
        .iter()
        .zip(factors)
        .zip(added)
        .map(|((bias, factor), added)| bias * factor + added);
    convolution.bias = Some(changed.collect());
    for (mut weights, factor) in convolution.weights.outer_iter_mut().zip(factors) {
        weights *= *factor;
    }
}

/// Two numbers of a node.
fn pair(node: &Node, name: &str, default: usize) -> Result<[usize; 2]> {
    let Some(attribute) = node.attribute(name) else {
        return Ok([default; 2]);
    };
    let numbers = attribute
        .ints
        .iter()
        .map(|number| usize::try_from(*number).ok());
    match numbers.collect::<Vec<_>>()[..] {
        [Some(a), Some(b)] => Ok([a, b]),
        _ => Err(format!("{name} {:?}", attribute.ints)),
    }
}

/// The window of a convolution or of pooling.
pub(super) fn window(node: &Node, kernel: [usize; 2]) -> Result<Window> {
    if pair(node, "dilations", 1)? != [1; 2] {
        return Err("holes in the kernel".to_owned());
    }
    let automatic = node.attribute("auto_pad").and_then(|own| own.s.clone());
    if automatic.is_some_and(|own| own != "NOTSET" && own != "VALID") {
        return Err("automatic padding".to_owned());
    }
    if int(node, "ceil_mode", 0) != 0 {
        return Err("sizes that are rounded up".to_owned());
    }
    let [top, left, bottom, right] = pads(node)?;
    let stride = pair(node, "strides", 1)?;
    if kernel.contains(&0) || stride.contains(&0) || kernel[0] > MAX_KERNEL {
        return Err("an empty or large kernel".to_owned());
    }
    Ok(Window {
        kernel,
        stride,
        before: [top, left],
        behind: [bottom, right],
    })
}

fn pads(node: &Node) -> Result<[usize; 4]> {
    let Some(attribute) = node.attribute("pads") else {
        return Ok([0; 4]);
    };
    let pads = attribute.ints.iter().map(|pad| usize::try_from(*pad).ok());
    let pads: Option<Vec<usize>> = pads.collect();
    match pads.as_deref() {
        Some(&[a, b, c, d]) if [a, b, c, d].iter().all(|pad| *pad <= MAX_PADDING) => {
            Ok([a, b, c, d])
        }
        _ => Err(format!("the pads {:?}", attribute.ints)),
    }
}

/// Returns the activation in a convolution that is ONNX Runtime's own operator.
pub(super) fn fused_activation(convolution: &Convolution) -> Result<Activation> {
    match convolution.range() {
        Some([f32::NEG_INFINITY, f32::INFINITY]) => Ok(Activation::Linear),
        Some([low, high]) => Ok(Activation::Clip(low, high)),
        None => Err("an activation that is not known".to_owned()),
    }
}
