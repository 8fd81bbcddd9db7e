// SPDX-License-Identifier: MPL-2.0
//! Convolutions, pooling and PRelu: what keeps images in ONNX Runtime's blocked layout.

use super::super::flatbuffer::{Reason, Table};
use super::super::graph::{Attribute, Value};
use super::super::schema::Operator;
use super::{Lowering, input, options, output};

/// Strides, dilations and window sides beyond this are forged: MediaPipe's networks have 5 at most.
const MAX_STEP: i32 = 64;

/// How a window walks over an image, along y and x.
struct Window {
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    same_padding: bool,
}

impl Lowering<'_> {
    pub(super) fn conv_2d(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let options = options(operator)?;
        let (source, weights) = (input(operator, 0)?, input(operator, 1)?);
        let [outputs, height, width, inputs] = *self.shape(weights) else {
            return Err("its weights are not four-dimensional".into());
        };
        let window = Window {
            kernel: [height, width],
            stride: [step(&options, 2)?, step(&options, 1)?],
            dilation: [step(&options, 5)?, step(&options, 4)?],
            same_padding: options.u8(0)? == 0,
        };
        let activation = options.u8(3)?;
        let is_product = window.is_pointwise() && !self.is_channels_first(source);
        if is_product {
            return self.matrix_product(operator, [outputs, inputs], activation);
        }
        // From output, y, x, input to output, input, y, x.
        let content = permuted(self.floats(weights)?, outputs, height * width, inputs);
        let weights = self
            .graph
            .constant(vec![outputs, inputs, height, width], content);
        self.convolution(operator, weights, &window, 1, activation)
    }

    pub(super) fn depthwise_conv_2d(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let options = options(operator)?;
        let (source, weights) = (input(operator, 0)?, input(operator, 1)?);
        let [1, height, width, outputs] = *self.shape(weights) else {
            return Err("its weights are not those of one filter per channel".into());
        };
        let window = Window {
            kernel: [height, width],
            stride: [step(&options, 2)?, step(&options, 1)?],
            dilation: [step(&options, 6)?, step(&options, 5)?],
            same_padding: options.u8(0)? == 0,
        };
        let groups = self.shape(source).last().copied().unwrap_or(1);
        let content = permuted(self.floats(weights)?, 1, height * width, outputs);
        let weights = self
            .graph
            .constant(vec![outputs, 1, height, width], content);
        self.convolution(operator, weights, &window, groups, options.u8(4)?)
    }

    fn convolution(
        &mut self,
        operator: &Operator<'_>,
        weights: Value,
        window: &Window,
        groups: usize,
        activation: u8,
    ) -> Result<(), Reason> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let shape = super::first_from_last(self.shape(target))?;
        let mut attributes = window.attributes(self.shape(source));
        attributes.push(("dilations", ints(&window.dilation)));
        attributes.push(("group", Attribute::Int(groups as i64)));
        let mut inputs = vec![self.channels_first(source)?, weights];
        if let Some(Some(bias)) = operator.inputs.get(2) {
            inputs.push(self.as_filed(*bias)?);
        }
        let value = self.graph.node("Conv", &inputs, attributes, shape);
        let value = self.activated(value, activation)?;
        self.set_channels_first(target, value);
        Ok(())
    }

    /// A 1×1 convolution over values with channels last is a product with a matrix.
    fn matrix_product(
        &mut self,
        operator: &Operator<'_>,
        [outputs, inputs]: [usize; 2],
        activation: u8,
    ) -> Result<(), Reason> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let content = permuted(self.floats(input(operator, 1)?)?, 1, outputs, inputs);
        let matrix = self.graph.constant(vec![inputs, outputs], content);
        let rows: usize = self.shape(source).iter().rev().skip(1).product();
        let value = self.as_filed(source)?;
        let value = self.graph.reshape(value, vec![rows, inputs]);
        let mut operands = vec![value, matrix];
        if let Some(Some(bias)) = operator.inputs.get(2) {
            operands.push(self.as_filed(*bias)?);
        }
        let value = self
            .graph
            .node("Gemm", &operands, vec![], vec![rows, outputs]);
        let value = self.activated(value, activation)?;
        let value = self
            .graph
            .reshape(value, self.network.tensors[target].shape.clone());
        self.set_as_filed(target, value);
        Ok(())
    }

    pub(super) fn max_pool_2d(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let options = options(operator)?;
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let window = Window {
            kernel: [step(&options, 4)?, step(&options, 3)?],
            stride: [step(&options, 2)?, step(&options, 1)?],
            dilation: [1, 1],
            same_padding: options.u8(0)? == 0,
        };
        let shape = super::first_from_last(self.shape(target))?;
        let mut attributes = window.attributes(self.shape(source));
        attributes.push(("kernel_shape", ints(&window.kernel)));
        let value = self.channels_first(source)?;
        let value = self.graph.node("MaxPool", &[value], attributes, shape);
        let value = self.activated(value, options.u8(5)?)?;
        self.set_channels_first(target, value);
        Ok(())
    }

    /// PRelu(x) = slope·x + (1 − slope)·relu(x), as two depthwise 1×1 convolutions and a sum: ONNX Runtime has no
    /// blocked PRelu, and would leave the blocked layout and return to it around each one.
    pub(super) fn prelu(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let channels = self.shape(source).last().copied().unwrap_or(1);
        let slopes = self.floats(input(operator, 1)?)?;
        if slopes.len() != channels {
            return Err("only one slope per channel is supported".into());
        }
        let value = self.channels_first(source)?;
        let shape = self.graph.shape(value).to_vec();
        let positive = self.graph.node("Relu", &[value], vec![], shape.clone());
        let linear = self.scaled(value, slopes.to_vec());
        let positive = self.scaled(positive, slopes.iter().map(|s| 1.0 - s).collect());
        let sum = self.graph.node("Add", &[linear, positive], vec![], shape);
        self.set_channels_first(target, sum);
        Ok(())
    }

    /// Each channel times its factor.
    fn scaled(&mut self, value: Value, factors: Vec<f32>) -> Value {
        let shape = self.graph.shape(value).to_vec();
        let channels = factors.len();
        let weights = self.graph.constant(vec![channels, 1, 1, 1], factors);
        let attributes = vec![("group", Attribute::Int(channels as i64))];
        self.graph
            .node("Conv", &[value, weights], attributes, shape)
    }
}

impl Window {
    fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1]
    }

    /// Strides and padding on an image of `shape`, channels last.
    ///
    /// TensorFlow's SAME padding yields ⌈side / stride⌉ and puts the odd pixel at the end.
    fn attributes(&self, shape: &[usize]) -> Vec<(&'static str, Attribute)> {
        let mut pads = [0i64; 4];
        if self.same_padding {
            for axis in 0..2 {
                let side = shape.get(axis + 1).copied().unwrap_or(1);
                let reach = (self.kernel[axis] - 1) * self.dilation[axis] + 1;
                let walked = (side.div_ceil(self.stride[axis]) - 1) * self.stride[axis];
                let total = (walked + reach).saturating_sub(side);
                pads[axis] = (total / 2) as i64;
                pads[axis + 2] = (total - total / 2) as i64;
            }
        }
        vec![
            ("strides", ints(&self.stride)),
            ("pads", Attribute::Ints(pads.to_vec())),
        ]
    }
}

fn step(options: &Table<'_>, field: usize) -> Result<usize, Reason> {
    let value = options.i32(field, 1)?;
    (1..=MAX_STEP)
        .contains(&value)
        .then_some(value as usize)
        .ok_or_else(|| format!("a stride, dilation or window of {value} is not supported"))
}

fn ints(values: &[usize; 2]) -> Attribute {
    Attribute::Ints(values.iter().map(|n| *n as i64).collect())
}

/// `values` of `count` matrices of `rows`×`columns`, each transposed.
fn permuted(values: &[f32], count: usize, rows: usize, columns: usize) -> Vec<f32> {
    (0..count)
        .flat_map(|i| (0..columns).flat_map(move |c| (0..rows).map(move |r| (i, c, r))))
        .map(|(i, c, r)| values[(i * rows + r) * columns + c])
        .collect()
}
