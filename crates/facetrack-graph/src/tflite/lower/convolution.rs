// SPDX-License-Identifier: MPL-2.0
//! Convolutions, and the other operators on images.

use super::super::flatbuffer::Table;
use super::super::schema::Operator;
use super::{Forms, Lowering, input, options, output};
use crate::{Attribute, Result, Value};

/// Maximum stride, dilation and window side. MediaPipe's networks have 5 at most.
const MAX_STEP: usize = 64;

/// The window of a convolution or a pooling, along y and x.
struct Window {
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    same_padding: bool,
}

impl Lowering<'_> {
    pub(super) fn conv_2d(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let options = options(operator)?;
        let (source, weights) = (input(operator, 0)?, input(operator, 1)?);
        let [outputs, height, width, inputs] = *self.shape(weights) else {
            return Err("its weights are not four-dimensional".into());
        };
        let dilation = steps(&options, [5, 4])?;
        let window = Window::new(&options, [height, width], dilation)?;
        let activation = options.u8(3)?;
        self.expect_channels(source, inputs)?;
        if window.is_pointwise() && self.is_matrix(source) {
            return self.matrix_product(operator, [outputs, inputs], activation);
        }
        // The order changes from output, y, x, input to output, input, y, x.
        let content = permuted(self.floats(weights)?, outputs, height * width, inputs);
        let dims = [outputs, inputs, height, width];
        let weights = self.graph.add_floats(&dims, &content);
        self.convolution(operator, weights, &window, 1, activation)
    }

    pub(super) fn depthwise_conv_2d(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let options = options(operator)?;
        let (source, weights) = (input(operator, 0)?, input(operator, 1)?);
        let [1, height, width, outputs] = *self.shape(weights) else {
            return Err("its weights are not one filter per channel".into());
        };
        let dilation = steps(&options, [6, 5])?;
        let window = Window::new(&options, [height, width], dilation)?;
        self.expect_channels(source, outputs)?;
        let content = permuted(self.floats(weights)?, 1, height * width, outputs);
        let dims = [outputs, 1, height, width];
        let weights = self.graph.add_floats(&dims, &content);
        self.convolution(operator, weights, &window, outputs, options.u8(4)?)
    }

    fn convolution(
        &mut self,
        operator: &Operator<'_>,
        weights: Value,
        window: &Window,
        groups: usize,
        activation: u8,
    ) -> Result<Forms> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let outputs = self.graph.shape(weights)[0];
        if window.kernel.iter().any(|side| *side > MAX_STEP) {
            return Err(format!("a window of {:?} is not supported", window.kernel));
        }
        let shape = window.yields(self.shape(source), outputs)?;
        self.expect_shape(target, &shape)?;
        let shape = super::first_from_last(&shape)?;
        let mut attributes = window.attributes(self.shape(source));
        attributes.push(ints("dilations", window.dilation));
        attributes.push(Attribute::int("group", groups as i64));
        let mut inputs = vec![self.image(source)?, weights];
        inputs.extend(self.bias(operator, outputs)?);
        let value = self.graph.add_shaped("Conv", &inputs, attributes, shape);
        let value = self.activated(value, activation)?;
        Ok(self.image_forms(target, value))
    }

    /// A 1×1 convolution over a matrix is a product: of the matrix with the weights, or of the
    /// weights with its transpose.
    fn matrix_product(
        &mut self,
        operator: &Operator<'_>,
        [outputs, inputs]: [usize; 2],
        activation: u8,
    ) -> Result<Forms> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let mut shape = self.shape(source).to_vec();
        shape.pop();
        shape.push(outputs);
        self.expect_shape(target, &shape)?;
        let weights = self.floats(input(operator, 1)?)?;
        let bias = self.bias(operator, outputs)?;
        if self.is_channels_first(source) {
            let weights = self.graph.add_floats(&[outputs, inputs], weights);
            let value = self.channels_first(source)?;
            let shape = vec![outputs, self.graph.shape(value)[1]];
            let bias = bias.map(|bias| self.graph.reshape(bias, vec![outputs, 1]));
            let value = self.gemm([weights, value], bias, shape, activation)?;
            Ok(Forms::channels_first(value))
        } else {
            let weights = permuted(weights, 1, outputs, inputs);
            let weights = self.graph.add_floats(&[inputs, outputs], &weights);
            let value = self.as_filed(source)?;
            let shape = vec![self.graph.shape(value)[0], outputs];
            let value = self.gemm([value, weights], bias, shape, activation)?;
            Ok(self.filed_forms(target, value))
        }
    }

    fn gemm(
        &mut self,
        factors: [Value; 2],
        bias: Option<Value>,
        shape: Vec<usize>,
        activation: u8,
    ) -> Result<Value> {
        let operands: Vec<Value> = factors.into_iter().chain(bias).collect();
        let value = self.graph.add_shaped("Gemm", &operands, vec![], shape);
        self.activated(value, activation)
    }

    /// Refuses weights for another number of channels than `source` has.
    fn expect_channels(&self, source: usize, channels: usize) -> Result<()> {
        let shape = self.shape(source);
        if shape.last() == Some(&channels) {
            return Ok(());
        }
        Err(format!(
            "its weights are for {channels} channels and its input has the shape {shape:?}"
        ))
    }

    /// The bias of a convolution, if it has one: a constant for each of its outputs.
    fn bias(&mut self, operator: &Operator<'_>, outputs: usize) -> Result<Option<Value>> {
        let Some(bias) = operator.inputs.get(2).copied().flatten() else {
            return Ok(None);
        };
        self.floats(bias)?;
        let shape = self.shape(bias);
        if shape != [outputs] {
            return Err(format!("its bias has the shape {shape:?}, not [{outputs}]"));
        }
        self.as_filed(bias).map(Some)
    }

    pub(super) fn max_pool_2d(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let options = options(operator)?;
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let window = Window::new(&options, steps(&options, [4, 3])?, [1, 1])?;
        let channels = self.shape(source).last().copied().unwrap_or(1);
        let shape = window.yields(self.shape(source), channels)?;
        self.expect_shape(target, &shape)?;
        let shape = super::first_from_last(&shape)?;
        let mut attributes = window.attributes(self.shape(source));
        attributes.push(ints("kernel_shape", window.kernel));
        let value = self.image(source)?;
        let value = self
            .graph
            .add_shaped("MaxPool", &[value], attributes, shape);
        let value = self.activated(value, options.u8(5)?)?;
        Ok(self.image_forms(target, value))
    }

    pub(super) fn prelu(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        self.expect_shape(target, self.shape(source))?;
        let value = self.image(source)?;
        let channels = self.graph.shape(value)[1];
        let slopes = input(operator, 1)?;
        let is_per_channel = self.shape(slopes).last() == Some(&channels);
        let slopes = self.floats(slopes)?;
        if slopes.len() != channels || !is_per_channel {
            return Err("only one slope per channel is supported".into());
        }
        let slopes = self.graph.add_floats(&[channels, 1, 1], slopes);
        let value = self.graph.add_elementwise("PRelu", &[value, slopes]);
        Ok(self.image_forms(target, value))
    }
}

impl Window {
    /// Creates a window with the strides and the padding of `options`, which are in the same fields
    /// for every operator.
    fn new(options: &Table<'_>, kernel: [usize; 2], dilation: [usize; 2]) -> Result<Self> {
        Ok(Self {
            kernel,
            stride: steps(options, [2, 1])?,
            dilation,
            same_padding: options.u8(0)? == 0,
        })
    }

    fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1]
    }

    /// Pixels from the first to the last that the window covers.
    fn reach(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1) * self.dilation[axis] + 1
    }

    /// Output shape of the window on an image of `shape`, channels last.
    fn yields(&self, shape: &[usize], channels: usize) -> Result<Vec<usize>> {
        let [batch, height, width, _] = *shape else {
            return Err(format!("{shape:?} is not the shape of an image"));
        };
        let steps = |axis: usize, side: usize| {
            let inside = if self.same_padding {
                1
            } else {
                self.reach(axis)
            };
            let walked = side.checked_sub(inside);
            walked.map(|walked| walked / self.stride[axis] + 1)
        };
        match (steps(0, height), steps(1, width)) {
            (Some(height), Some(width)) => Ok(vec![batch, height, width, channels]),
            _ => Err("its window exceeds its input".into()),
        }
    }

    /// Strides and padding on an image of `shape`, channels last.
    ///
    /// TensorFlow's SAME padding yields ⌈side / stride⌉ and puts the odd pixel at the end.
    fn attributes(&self, shape: &[usize]) -> Vec<Attribute> {
        let mut pads = [0i64; 4];
        if self.same_padding {
            for axis in 0..2 {
                let side = shape.get(axis + 1).copied().unwrap_or(1);
                let walked = (side.div_ceil(self.stride[axis]) - 1) * self.stride[axis];
                let total = (walked + self.reach(axis)).saturating_sub(side);
                pads[axis] = (total / 2) as i64;
                pads[axis + 2] = (total - total / 2) as i64;
            }
        }
        vec![ints("strides", self.stride), Attribute::ints("pads", &pads)]
    }
}

/// Steps along y and x, from these fields.
fn steps(options: &Table<'_>, [y, x]: [usize; 2]) -> Result<[usize; 2]> {
    Ok([step(options, y)?, step(options, x)?])
}

fn step(options: &Table<'_>, field: usize) -> Result<usize> {
    let value = options.i32(field, 1)?;
    usize::try_from(value)
        .ok()
        .filter(|value| (1..=MAX_STEP).contains(value))
        .ok_or_else(|| format!("a stride, dilation or window of {value} is not supported"))
}

fn ints(name: &str, values: [usize; 2]) -> Attribute {
    Attribute::ints(name, &values.map(|n| n as i64))
}

/// `values` of `count` matrices of `rows`×`columns`, each transposed.
fn permuted(values: &[f32], count: usize, rows: usize, columns: usize) -> Vec<f32> {
    (0..count)
        .flat_map(|i| (0..columns).flat_map(move |c| (0..rows).map(move |r| (i, c, r))))
        .map(|(i, c, r)| values[(i * rows + r) * columns + c])
        .collect()
}
