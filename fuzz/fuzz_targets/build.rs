// SPDX-License-Identifier: MPL-2.0
//! Builds small graphs of the operators that the passes change, in the patterns that they look for
//! and in similar ones.

use arbitrary::Unstructured;
use facetrack_graph::{Attribute, Graph, Value};

use crate::shared::{Noise, pick};

/// Version of ONNX's operators.
const OPSET: i64 = 17;

/// `AttributeType` of a list of floats.
const FLOATS_ATTRIBUTE: i32 = 6;

/// Largest numbers of channels, of rows and columns, and of operators.
const CHANNELS: usize = 20;
const SIDE: usize = 4;
const STEPS: usize = 12;

/// Reader of a graph; each yields other operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Tflite,
    Onnx,
}

/// A graph that is being built.
pub struct Builder<'a, 'b> {
    input: &'a mut Unstructured<'b>,
    noise: Noise,
    graph: Graph,
    origin: Origin,
    /// Values with four axes.
    images: Vec<Value>,
    /// Values with two.
    matrices: Vec<Value>,
}

/// A graph with an image and a matrix as inputs.
pub fn graph(input: &mut Unstructured, origin: Origin) -> Graph {
    let mut graph = Graph::new(OPSET);
    let [height, width] = [0; 2].map(|_| pick(input, 1..=SIDE));
    let image = [1, pick(input, 1..=CHANNELS), height, width];
    let matrix = [pick(input, 1..=SIDE), pick(input, 1..=CHANNELS)];
    let images = vec![graph.add_input("image", &image)];
    let matrices = vec![graph.add_input("matrix", &matrix)];
    let noise = Noise::new(input);
    let mut builder = Builder {
        input,
        noise,
        graph,
        origin,
        images,
        matrices,
    };
    for _ in 0..pick(builder.input, 1..=STEPS) {
        builder.step();
    }
    builder.finish()
}

impl Builder<'_, '_> {
    /// Makes one to three values outputs.
    fn finish(mut self) -> Graph {
        let all: Vec<Value> = self.images.iter().chain(&self.matrices).copied().collect();
        let mut outputs = vec![all[self.images.len() - 1], all[all.len() - 1]];
        outputs.push(all[pick(self.input, 0..=all.len() - 1)]);
        outputs.dedup();
        let skipped = pick(self.input, 0..=outputs.len() - 1);
        for (index, output) in outputs.drain(skipped..).enumerate() {
            let is_input = self.graph.inputs.iter().any(|port| port.value == output);
            let is_output = self.graph.outputs.iter().any(|port| port.value == output);
            if !is_input && !is_output {
                self.graph.add_output(&format!("output {index}"), output);
            }
        }
        self.graph
    }

    fn step(&mut self) {
        match pick(self.input, 0..=13) {
            0 | 1 => self.dense(),
            2 => self.depthwise(),
            3 => self.tail(),
            4 => self.prelu(),
            5 => self.unary(),
            6 => self.sum(),
            7 => self.concat(),
            8 => self.pad(),
            9 => self.pool(),
            10 => self.gate(),
            11 => self.normalisation(),
            12 => self.rows(),
            _ => self.gemm(),
        }
    }

    /// One of the last images; most often the last.
    fn image(&mut self) -> Value {
        let back = pick(self.input, 0..=4).saturating_sub(2);
        self.images[self.images.len().saturating_sub(1 + back)]
    }

    fn matrix(&mut self) -> Value {
        let back = pick(self.input, 0..=4).saturating_sub(2);
        self.matrices[self.matrices.len().saturating_sub(1 + back)]
    }

    fn dims(&self, image: Value) -> [usize; 4] {
        let shape = self.graph.shape(image);
        shape.try_into().expect("an image")
    }

    fn constant(&mut self, dims: &[usize]) -> Value {
        let count = dims.iter().product();
        let values = match dims {
            [_, _, 3, 3] => self.noise.sparse(count),
            _ => self.noise.take(count),
        };
        self.graph.add_floats(dims, &values)
    }

    fn number(&mut self, number: f32) -> Value {
        self.graph.add_floats(&[], &[number])
    }

    /// Adds a convolution with weights of this shape.
    fn convolved(
        &mut self,
        image: Value,
        weights: [usize; 4],
        groups: usize,
        stride: usize,
    ) -> Value {
        let [_, _, height, width] = self.dims(image);
        let [outputs, _, kernel, _] = weights;
        let side = |side: usize| (side - 1) / stride + 1;
        let shape = vec![1, outputs, side(height), side(width)];
        let mut inputs = vec![image, self.constant(&weights)];
        if pick(self.input, 0..=3) > 0 {
            inputs.push(self.constant(&[outputs]));
        }
        let attributes = vec![
            Attribute::int("group", groups as i64),
            Attribute::ints("pads", &[(kernel / 2) as i64; 4]),
            Attribute::ints("strides", &[stride as i64; 2]),
        ];
        let output = self.graph.add_shaped("Conv", &inputs, attributes, shape);
        if self.origin == Origin::Onnx && pick(self.input, 0..=3) == 3 {
            self.activate();
        }
        output
    }

    /// Puts an activation into the last convolution.
    fn activate(&mut self) {
        let node = self.graph.nodes.last_mut().expect("a convolution");
        "FusedConv".clone_into(&mut node.op);
        "com.microsoft".clone_into(&mut node.domain);
        if pick(self.input, 0..=1) == 0 {
            node.set(Attribute::text("activation", "Relu"));
            return;
        }
        node.set(Attribute::text("activation", "Clip"));
        node.set(Attribute {
            name: "activation_params".to_owned(),
            floats: vec![[0.0, 0.5, -1.0][pick(self.input, 0..=2)], 6.0],
            kind: FLOATS_ATTRIBUTE,
            ..Attribute::default()
        });
    }

    fn dense(&mut self) {
        let image = self.image();
        let [_, channels, ..] = self.dims(image);
        let kernel = [1, 3][pick(self.input, 0..=1)];
        let outputs = pick(self.input, 1..=CHANNELS);
        let stride = pick(self.input, 1..=2);
        let output = self.convolved(image, [outputs, channels, kernel, kernel], 1, stride);
        self.images.push(output);
    }

    fn depthwise(&mut self) {
        let image = self.image();
        let [_, channels, ..] = self.dims(image);
        let stride = pick(self.input, 1..=2);
        let output = self.convolved(image, [channels, 1, 3, 3], channels, stride);
        self.images.push(output);
    }

    /// Several filters of each channel, then single pixels in groups.
    fn tail(&mut self) {
        let image = self.image();
        let [_, channels, ..] = self.dims(image);
        let filters = pick(self.input, 1..=3);
        let spatial = self.convolved(image, [filters * channels, 1, 3, 3], channels, 1);
        let divisors: Vec<usize> = (1..=channels)
            .filter(|n| channels.is_multiple_of(*n))
            .collect();
        let groups = divisors[pick(self.input, 0..=divisors.len() - 1)];
        let weights = [
            groups * pick(self.input, 1..=3),
            filters * channels / groups,
            1,
            1,
        ];
        let output = self.convolved(spatial, weights, groups, 1);
        self.images.push(output);
    }

    fn prelu(&mut self) {
        let image = self.image();
        let [_, channels, ..] = self.dims(image);
        let dims = [vec![channels, 1, 1], vec![1, channels, 1, 1], vec![1, 1, 1]];
        let chosen = pick(self.input, 0..=2);
        let slopes = self.constant(&dims[chosen]);
        let output = self.graph.add_elementwise("PRelu", &[image, slopes]);
        self.images.push(output);
        if pick(self.input, 0..=1) == 1 {
            self.depthwise();
            self.dense();
        }
    }

    fn unary(&mut self) {
        let image = self.image();
        let output = match pick(self.input, 0..=4) {
            0 => self.hard_sigmoid(image),
            1 if self.origin == Origin::Onnx => self.clipped(image),
            2 if self.origin == Origin::Onnx => {
                let gate = self.hard_sigmoid(image);
                self.graph.add_elementwise("Mul", &[image, gate])
            }
            3 => self.graph.add_elementwise("Neg", &[image]),
            _ => self.graph.add_elementwise("Relu", &[image]),
        };
        self.images.push(output);
    }

    fn clipped(&mut self, image: Value) -> Value {
        let least = [0.0, 0.5, -1.0][pick(self.input, 0..=2)];
        let bounds = [least, 6.0].map(|bound| self.number(bound));
        self.graph
            .add_elementwise("Clip", &[image, bounds[0], bounds[1]])
    }

    /// clip(x + 3, 0, 6) / 6, most often.
    fn hard_sigmoid(&mut self, image: Value) -> Value {
        let other = |own: &mut Self, number: f32| {
            let number = if pick(own.input, 0..=15) == 15 {
                number + 1.0
            } else {
                number
            };
            own.number(number)
        };
        let [three, zero, six, divisor] = [3.0, 0.0, 6.0, 6.0].map(|number| other(self, number));
        let sum = self.graph.add_elementwise("Add", &[image, three]);
        let clipped = self.graph.add_elementwise("Clip", &[sum, zero, six]);
        self.graph.add_elementwise("Div", &[clipped, divisor])
    }

    /// The sum or product of two images of one shape, or of an image and a constant.
    fn sum(&mut self) {
        let image = self.image();
        let shape = self.dims(image);
        let op = ["Add", "Mul"][pick(self.input, 0..=1)];
        let images = self.images.clone();
        let mut alike = images.iter().rev().copied();
        let is_alike = |graph: &Graph, own: Value| graph.shape(own) == shape;
        let other = match pick(self.input, 0..=7) {
            0 => self.constant(&[]),
            1 => self.constant(&[shape[1], 1, 1]),
            2 => self.convolved(image, [shape[1], shape[1], 1, 1], 1, 1),
            _ => alike
                .find(|own| *own != image && is_alike(&self.graph, *own))
                .unwrap_or(image),
        };
        let inputs = if pick(self.input, 0..=7) == 7 {
            [other, image]
        } else {
            [image, other]
        };
        let output = self.graph.add_shaped(op, &inputs, vec![], shape.to_vec());
        self.images.push(output);
    }

    fn concat(&mut self) {
        let [a, b] = [self.image(), self.image()];
        let (mut shape, other) = (self.dims(a), self.dims(b));
        if shape[2..] == other[2..] && shape[1] + other[1] <= 2 * CHANNELS {
            shape[1] += other[1];
            let axis = vec![Attribute::int("axis", 1)];
            let output = self.graph.add_shaped("Concat", &[a, b], axis, shape.into());
            self.images.push(output);
        }
    }

    /// Appends channels, and adds the result to a convolution sometimes.
    fn pad(&mut self) {
        let image = self.image();
        let mut shape = self.dims(image);
        let block = shape[1].next_multiple_of(16) - shape[1];
        let appended = [block, 16, pick(self.input, 0..=8)][pick(self.input, 0..=2)];
        if shape[1] + appended > 2 * CHANNELS {
            return;
        }
        shape[1] += appended;
        let pads = self
            .graph
            .add_ints(&[8], &[0, 0, 0, 0, 0, appended as i64, 0, 0]);
        let padded = self
            .graph
            .add_shaped("Pad", &[image, pads], vec![], shape.into());
        self.images.push(padded);
        if pick(self.input, 0..=1) == 1 {
            let other = self.convolved(image, [shape[1], shape[1] - appended, 1, 1], 1, 1);
            let sum = self.graph.add_elementwise("Add", &[padded, other]);
            self.images.push(sum);
        }
    }

    fn pool(&mut self) {
        let image = self.image();
        let [_, channels, height, width] = self.dims(image);
        let output = if height < 2 || width < 2 || pick(self.input, 0..=1) == 0 {
            let shape = vec![1, channels, 1, 1];
            self.graph
                .add_shaped("GlobalAveragePool", &[image], vec![], shape)
        } else {
            let attributes = ["kernel_shape", "strides"].map(|name| Attribute::ints(name, &[2; 2]));
            let shape = vec![1, channels, height / 2, width / 2];
            self.graph
                .add_shaped("MaxPool", &[image], attributes.into(), shape)
        };
        self.images.push(output);
    }

    /// Squeeze-and-excitation.
    fn gate(&mut self) {
        let image = self.image();
        let [_, channels, ..] = self.dims(image);
        let shape = vec![1, channels, 1, 1];
        let averaged = self
            .graph
            .add_shaped("GlobalAveragePool", &[image], vec![], shape);
        let squeezed = pick(self.input, 1..=CHANNELS);
        let squeezed = self.convolved(averaged, [squeezed, channels, 1, 1], 1, 1);
        let inputs = self.dims(squeezed)[1];
        let expanded = self.convolved(squeezed, [channels, inputs, 1, 1], 1, 1);
        let gate = self.hard_sigmoid(expanded);
        let output = self.graph.add_elementwise("Mul", &[image, gate]);
        self.images.push(output);
    }

    /// A layer normalisation as TFLite writes it, sometimes with another value in one place.
    fn normalisation(&mut self) {
        let x = self.matrix();
        let columns = self.graph.shape(x)[1];
        let wrong = pick(self.input, 0..=15);
        let other = self.graph.add_elementwise("Neg", &[x]);
        let or_other = |place: usize, value: Value| if wrong == place { other } else { value };
        let epsilon = self.number(0.5);
        let scale = self.constant(&[columns]);
        let mean = self.mean(x);
        let difference = self.graph.add_elementwise("Sub", &[or_other(1, x), mean]);
        let square = self.graph.add_elementwise("Mul", &[difference, difference]);
        let variance = self.mean(square);
        let padded = self.graph.add_elementwise("Add", &[variance, epsilon]);
        let root = self.graph.add_elementwise("Sqrt", &[padded]);
        let deviation = self.graph.add_elementwise("Reciprocal", &[root]);
        let shape = self.graph.shape(x).to_vec();
        let factor = self
            .graph
            .add_shaped("Mul", &[deviation, scale], vec![], shape);
        let scaled = self.graph.add_elementwise("Mul", &[or_other(2, x), factor]);
        let negative = self.graph.add_elementwise("Neg", &[mean]);
        let shape = self.graph.shape(x).to_vec();
        let shift = self
            .graph
            .add_shaped("Mul", &[negative, factor], vec![], shape);
        let output = self.graph.add_elementwise("Add", &[scaled, shift]);
        self.matrices.push(output);
    }

    /// The mean over the columns.
    fn mean(&mut self, matrix: Value) -> Value {
        let rows = self.graph.shape(matrix)[0];
        let attributes = vec![Attribute::ints("axes", &[-1])];
        self.graph
            .add_shaped("ReduceMean", &[matrix], attributes, vec![rows, 1])
    }

    /// Some rows of a matrix, after an operator that a slice may pass.
    fn rows(&mut self) {
        let mut matrix = self.matrix();
        let [rows, columns] = *self.graph.shape(matrix) else {
            return;
        };
        let operand = [vec![rows, columns], vec![1, columns], vec![columns]];
        let operand = operand[pick(self.input, 0..=2)].clone();
        if pick(self.input, 0..=3) > 0 {
            let op = ["Add", "Sub", "Mul"][pick(self.input, 0..=2)];
            let operand = self.constant(&operand);
            matrix = self.graph.add_elementwise(op, &[matrix, operand]);
            matrix = self.graph.add_elementwise("Relu", &[matrix]);
        }
        let start = pick(self.input, 0..=rows - 1);
        let end = pick(self.input, start + 1..=rows);
        let output = self.graph.add_slice(matrix, start..end, 0);
        self.matrices.push(output);
    }

    fn gemm(&mut self) {
        let matrix = self.matrix();
        let [rows, columns] = *self.graph.shape(matrix) else {
            return;
        };
        let outputs = pick(self.input, 1..=CHANNELS);
        let mut inputs = vec![matrix, self.constant(&[columns, outputs])];
        if pick(self.input, 0..=1) == 1 {
            let dims = [vec![rows, outputs], vec![1, outputs], vec![outputs]];
            let chosen = pick(self.input, 0..=2);
            inputs.push(self.constant(&dims[chosen]));
        }
        let output = self
            .graph
            .add_shaped("Gemm", &inputs, vec![], vec![rows, outputs]);
        self.matrices.push(output);
    }
}
