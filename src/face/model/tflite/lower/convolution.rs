// SPDX-License-Identifier: MPL-2.0
//! Convolutions, and the other operators on images.

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
        if window.is_pointwise() && self.is_matrix(source) {
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
        let mut inputs = vec![self.image(source)?, weights];
        if let Some(Some(bias)) = operator.inputs.get(2) {
            inputs.push(self.as_filed(*bias)?);
        }
        let value = self.graph.node("Conv", &inputs, attributes, shape);
        let value = self.activated(value, activation)?;
        self.set_image(target, value);
        Ok(())
    }

    /// A 1×1 convolution over a matrix is a product: of the matrix with the weights, or of the weights with its
    /// transpose.
    fn matrix_product(
        &mut self,
        operator: &Operator<'_>,
        [outputs, inputs]: [usize; 2],
        activation: u8,
    ) -> Result<(), Reason> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let mut shape = self.shape(source).to_vec();
        if shape.pop() != Some(inputs) {
            return Err("its weights do not fit its input".into());
        }
        shape.push(outputs);
        self.expect_shape(target, &shape)?;
        let weights = self.floats(input(operator, 1)?)?;
        let bias = operator.inputs.get(2).copied().flatten();
        let bias = bias.map(|bias| self.as_filed(bias)).transpose()?;
        if self.is_channels_first(source) {
            let weights = self.graph.constant(vec![outputs, inputs], weights.to_vec());
            let value = self.channels_first(source)?;
            let columns = self.graph.shape(value)[1];
            let bias = bias.map(|bias| self.graph.reshape(bias, vec![outputs, 1]));
            let operands: Vec<Value> = [Some(weights), Some(value), bias]
                .into_iter()
                .flatten()
                .collect();
            let value = self
                .graph
                .node("Gemm", &operands, vec![], vec![outputs, columns]);
            let value = self.activated(value, activation)?;
            self.set_channels_first(target, value);
        } else {
            let weights = permuted(weights, 1, outputs, inputs);
            let weights = self.graph.constant(vec![inputs, outputs], weights);
            let value = self.as_filed(source)?;
            let rows = self.graph.shape(value)[0];
            let operands: Vec<Value> = [Some(value), Some(weights), bias]
                .into_iter()
                .flatten()
                .collect();
            let value = self
                .graph
                .node("Gemm", &operands, vec![], vec![rows, outputs]);
            let value = self.activated(value, activation)?;
            self.set_as_filed(target, value);
        }
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
        let value = self.image(source)?;
        let value = self.graph.node("MaxPool", &[value], attributes, shape);
        let value = self.activated(value, options.u8(5)?)?;
        self.set_image(target, value);
        Ok(())
    }

    pub(super) fn prelu(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        self.expect_shape(target, self.shape(source))?;
        let value = self.image(source)?;
        let channels = self.graph.shape(value)[1];
        let slopes = self.floats(input(operator, 1)?)?;
        if slopes.len() != channels {
            return Err("only one slope per channel is supported".into());
        }
        let slopes = self.graph.constant(vec![channels, 1, 1], slopes.to_vec());
        let value = self.graph.elementwise("PRelu", &[value, slopes]);
        self.set_image(target, value);
        Ok(())
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
