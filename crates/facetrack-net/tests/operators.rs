// SPDX-License-Identifier: MPL-2.0
//! Networks of random layers yield the same as plain loops in 64 bits.

#[path = "../../../fuzz/fuzz_targets/evaluate.rs"]
mod evaluate;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use facetrack_graph::proto::TensorProto;
use facetrack_graph::{Attribute, Graph, Value};
use facetrack_net::Network;
use fastrand::Rng;
use ndarray::{ArrayD, Axis, concatenate};

/// Largest difference, as a part of the largest number on the way to the outputs.
const TOLERANCE: f64 = 1e-5;

/// Networks of each kind.
const ROUNDS: u64 = 150;

/// A network that is being made.
struct Maker {
    rng: Rng,
    graph: Graph,
}

/// An image: its value, channels, height and width.
type Image = (Value, usize, [usize; 2]);

/// A matrix: its value, rows and columns.
type Matrix = (Value, usize, usize);

impl Maker {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            graph: Graph::new(13),
        }
    }

    fn number(&mut self, range: RangeInclusive<usize>) -> usize {
        self.rng.usize(range)
    }

    fn floats(&mut self, dims: &[usize]) -> Value {
        let count = dims.iter().product();
        let values: Vec<f32> = (0..count).map(|_| self.rng.f32() - 0.5).collect();
        self.graph.add_floats(dims, &values)
    }

    fn positive(&mut self, count: usize) -> Value {
        let values: Vec<f32> = (0..count).map(|_| self.rng.f32() + 0.5).collect();
        self.graph.add_floats(&[count], &values)
    }

    fn input(&mut self) -> Image {
        let channels = self.number(1..=40);
        let size = [self.number(1..=17), self.number(1..=17)];
        let value = self
            .graph
            .add_input("image", &[1, channels, size[0], size[1]]);
        (value, channels, size)
    }

    /// A convolution with random weights.
    fn convolution(
        &mut self,
        (value, channels, size): Image,
        groups: usize,
        outputs: usize,
    ) -> Image {
        let kernel = [self.number(1..=5), self.number(1..=5)];
        let stride = [self.number(1..=3), self.number(1..=3)];
        let mut pads = [0; 4];
        let mut yielded = [0; 2];
        for axis in 0..2 {
            let missing = kernel[axis].saturating_sub(size[axis]);
            pads[axis] = missing + self.number(0..=kernel[axis] / 2);
            pads[axis + 2] = self.number(0..=2);
            yielded[axis] =
                (size[axis] + pads[axis] + pads[axis + 2] - kernel[axis]) / stride[axis] + 1;
        }
        let weights = self.floats(&[outputs, channels / groups, kernel[0], kernel[1]]);
        let bias = self.floats(&[outputs]);
        let ints = |name, values: &[usize]| {
            let values: Vec<i64> = values.iter().map(|value| *value as i64).collect();
            Attribute::ints(name, &values)
        };
        let attributes = vec![
            ints("strides", &stride),
            ints("pads", &pads),
            Attribute::int("group", groups as i64),
        ];
        let value = self.graph.add("Conv", &[value, weights, bias], attributes);
        (value, outputs, yielded)
    }

    fn number_constant(&mut self, number: f32) -> Value {
        self.graph.add_floats(&[], &[number])
    }

    fn hard_sigmoid(&mut self, value: Value) -> Value {
        let attributes = vec![
            Attribute::float("alpha", 1.0 / 6.0),
            Attribute::float("beta", 0.5),
        ];
        self.graph.add("HardSigmoid", &[value], attributes)
    }

    fn activated(&mut self, (value, channels, size): Image) -> Image {
        let value = match self.number(0..=6) {
            0 => self.graph.add("Relu", &[value], vec![]),
            1 => {
                let bounds = [-0.25, 0.5].map(|bound| self.number_constant(bound));
                self.graph
                    .add("Clip", &[value, bounds[0], bounds[1]], vec![])
            }
            2 => {
                let slopes = self.floats(&[channels, 1, 1]);
                self.graph.add("PRelu", &[value, slopes], vec![])
            }
            3 => {
                let gate = self.hard_sigmoid(value);
                self.graph.add("Mul", &[value, gate], vec![])
            }
            4 => self.graph.add("Sigmoid", &[value], vec![]),
            5 => self.hard_sigmoid(value),
            _ => value,
        };
        (value, channels, size)
    }

    /// Means, two convolutions, and a product with the image.
    fn excited(&mut self, (value, channels, size): Image) -> Image {
        let mean = self.graph.add("GlobalAveragePool", &[value], vec![]);
        let weights = [[3, channels, 1, 1], [channels, 3, 1, 1]].map(|dims| self.floats(&dims));
        let squeezed = self.graph.add("Conv", &[mean, weights[0]], vec![]);
        let squeezed = self.graph.add("Relu", &[squeezed], vec![]);
        let expanded = self.graph.add("Conv", &[squeezed, weights[1]], vec![]);
        let gate = self.hard_sigmoid(expanded);
        let operands = match self.rng.bool() {
            true => [value, gate],
            false => [gate, value],
        };
        (self.graph.add("Mul", &operands, vec![]), channels, size)
    }

    fn resized(&mut self, (value, channels, size): Image) -> Image {
        let size = size.map(|side| side + self.rng.usize(0..9));
        let (mode, coordinates) = match self.rng.bool() {
            true => ("nearest", "asymmetric"),
            false => ("linear", "align_corners"),
        };
        let attributes = vec![
            Attribute::text("mode", mode),
            Attribute::text("coordinate_transformation_mode", coordinates),
            Attribute::text("nearest_mode", "floor"),
        ];
        let none = self.graph.add_floats(&[0], &[]);
        let extents = [1, channels, size[0], size[1]].map(|extent| extent as i64);
        let extents = self.graph.add_ints(&[4], &extents);
        (
            self.graph
                .add("Resize", &[value, none, none, extents], attributes),
            channels,
            size,
        )
    }

    fn pooled(&mut self, (value, channels, size): Image) -> Image {
        let kernel = self.number(2..=3);
        let stride = self.number(1..=2);
        let pad = self.number(0..=kernel - 1);
        if size.iter().any(|side| side + 2 * pad < kernel) {
            return (value, channels, size);
        }
        let ints =
            |name, value: usize, count: usize| Attribute::ints(name, &vec![value as i64; count]);
        let attributes = vec![
            ints("kernel_shape", kernel, 2),
            ints("strides", stride, 2),
            ints("pads", pad, 4),
        ];
        let size = size.map(|side| (side + 2 * pad - kernel) / stride + 1);
        (
            self.graph.add("MaxPool", &[value], attributes),
            channels,
            size,
        )
    }

    /// A convolution of single pixels, and a sum with the image, which may get more channels.
    fn residual(&mut self, (value, channels, size): Image) -> Image {
        let outputs = channels + self.number(0..=1) * 5;
        let weights = self.floats(&[outputs, channels, 1, 1]);
        let branch = self.graph.add("Conv", &[value, weights], vec![]);
        let mut added = value;
        if outputs > channels {
            let pads = [0, 0, 0, 0, 0, (outputs - channels) as i64, 0, 0];
            let pads = self.graph.add_ints(&[8], &pads);
            added = self.graph.add("Pad", &[value, pads], vec![]);
        }
        let operands = match self.rng.bool() {
            true => [branch, added],
            false => [added, branch],
        };
        (self.graph.add("Add", &operands, vec![]), outputs, size)
    }

    fn normalized(&mut self, image: Image) -> Image {
        let outputs = self.number(1..=20);
        let (value, channels, size) = self.convolution(image, 1, outputs);
        let numbers = [(); 3].map(|()| self.floats(&[channels]));
        let variance = self.positive(channels);
        let operands = [value, numbers[0], numbers[1], numbers[2], variance];
        let epsilon = vec![Attribute::float("epsilon", 1e-3)];
        (
            self.graph.add("BatchNormalization", &operands, epsilon),
            channels,
            size,
        )
    }

    fn joined(&mut self, image: Image) -> Image {
        let (value, channels, size) = image;
        let weights = self.floats(&[7, channels, 1, 1]);
        let other = self.graph.add("Conv", &[value, weights], vec![]);
        let axis = vec![Attribute::int("axis", 1)];
        (
            self.graph.add("Concat", &[other, value], axis),
            channels + 7,
            size,
        )
    }

    /// An image as large as another one whose size the graph computes.
    fn resized_by_shape(&mut self, (value, channels, size): Image) -> Image {
        let constant = |values: &[i64]| Attribute {
            name: "value".to_owned(),
            t: Some(TensorProto::ints(&[values.len()], values)),
            ..Attribute::default()
        };
        let shape = self.graph.add_shaped("Shape", &[value], vec![], vec![4]);
        let mut extents = vec![self.graph.add_slice(shape, 0..2, 0)];
        let wanted = [self.number(1..=9), size[1]];
        let height = constant(&[wanted[0] as i64]);
        extents.push(self.graph.add("Constant", &[], vec![height]));
        let index = self.graph.add("Constant", &[], vec![constant(&[3])]);
        let width = self.graph.add("Gather", &[shape, index], vec![]);
        let axes = vec![Attribute::ints("axes", &[0])];
        extents.push(self.graph.add("Unsqueeze", &[width], axes));
        let axis = vec![Attribute::int("axis", 0)];
        let extents = self.graph.add("Concat", &extents, axis);
        let none = self.graph.add_floats(&[0], &[]);
        let attributes = vec![
            Attribute::text("mode", "nearest"),
            Attribute::text("coordinate_transformation_mode", "asymmetric"),
            Attribute::text("nearest_mode", "floor"),
        ];
        let operands = [value, none, none, extents];
        let value = self.graph.add("Resize", &operands, attributes);
        (value, channels, wanted)
    }

    /// A layer of a matrix with so many rows and columns.
    fn matrix_layer(&mut self, (value, rows, columns): Matrix) -> Matrix {
        let aligned = columns.is_multiple_of(8);
        match self.number(0..=8) {
            0 => {
                let outputs = [8, 16, 24, 5][self.number(0..=3)];
                let operands = [
                    value,
                    self.floats(&[columns, outputs]),
                    self.floats(&[outputs]),
                ];
                (self.graph.add("Gemm", &operands, vec![]), rows, outputs)
            }
            1 => {
                let outputs = self.number(1..=20);
                let operands = [
                    self.floats(&[outputs, rows]),
                    value,
                    self.floats(&[outputs, 1]),
                ];
                (self.graph.add("Gemm", &operands, vec![]), outputs, columns)
            }
            2 => {
                let weights = self.floats(&[rows, rows]);
                let mixed = self.graph.add("Gemm", &[weights, value], vec![]);
                (
                    self.graph.add("Add", &[value, mixed], vec![]),
                    rows,
                    columns,
                )
            }
            3 if aligned => {
                let count = self.number(1..=3);
                let constant = self.floats(&[count, columns]);
                let axis = vec![Attribute::int("axis", 0)];
                let value = self.graph.add("Concat", &[constant, value], axis);
                (value, rows + count, columns)
            }
            4 => {
                let first = self.number(0..=rows - 1);
                let last = self.number(first + 1..=rows);
                let bounds = [first, last, 0].map(|own| self.graph.add_ints(&[1], &[own as i64]));
                let operands = [value, bounds[0], bounds[1], bounds[2]];
                let value = self.graph.add("Slice", &operands, vec![]);
                (value, last - first, columns)
            }
            5 if aligned => {
                let scale = self.floats(&[columns]);
                let epsilon = vec![Attribute::float("epsilon", 1e-3)];
                let value = self
                    .graph
                    .add("LayerNormalization", &[value, scale], epsilon);
                (value, rows, columns)
            }
            6 => {
                let (op, axis) =
                    [("ReduceMean", -2), ("ReduceMean", -1), ("ReduceSum", -1)][self.number(0..=2)];
                let axes = vec![Attribute::ints("axes", &[axis])];
                let reduced = self.graph.add(op, &[value], axes);
                let op = ["Add", "Sub", "Mul"][self.number(0..=2)];
                (self.graph.add(op, &[value, reduced], vec![]), rows, columns)
            }
            7 => {
                let divisor = self.graph.add("Sigmoid", &[value], vec![]);
                let divisor = self.graph.add("Sqrt", &[divisor], vec![]);
                let half = self.number_constant(0.5);
                let divisor = self.graph.add("Add", &[divisor, half], vec![]);
                (
                    self.graph.add("Div", &[value, divisor], vec![]),
                    rows,
                    columns,
                )
            }
            _ => {
                let factor = self.number_constant(-1.5);
                (
                    self.graph.add("Mul", &[value, factor], vec![]),
                    rows,
                    columns,
                )
            }
        }
    }

    fn layer(&mut self, image: Image) -> Image {
        let outputs = self.number(1..=40);
        match self.number(0..=10) {
            0 => self.convolution(image, 1, outputs),
            1 => self.convolution(image, image.1, image.1),
            2 => self.activated(image),
            3 => self.excited(image),
            4 => self.resized(image),
            5 => self.pooled(image),
            6 => self.residual(image),
            7 => self.normalized(image),
            8 => self.joined(image),
            9 => self.resized_by_shape(image),
            _ => self.convolution(image, 1, 8),
        }
    }

    fn image(&mut self, shape: &[usize]) -> ArrayD<f32> {
        let mut values = || self.rng.f32() * 2.0 - 1.0;
        ArrayD::from_shape_simple_fn(shape, &mut values)
    }

    /// Compares the network with plain loops.
    fn check(mut self, shape: &[usize]) {
        self.graph.sort();
        let network = Network::new(&self.graph)
            .expect("a network that is supported")
            .with_least_work(1);
        let image = self.image(shape);
        compare(&self.graph, &network, &image);
    }
}

fn compare(graph: &Graph, network: &Network, image: &ArrayD<f32>) {
    let yielded = network.run(&[image.view()]).expect("an image that fits");
    for threads in 2..=4 {
        // Some functions are dropped, so other threads do their work.
        let begun = AtomicUsize::new(0);
        let divided = network.run_on(&[image.view()], threads, &|work| {
            if begun.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                thread::spawn(work);
            }
        });
        let divided = divided.expect("an image that fits");
        let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
        let mut outputs = yielded.iter().zip(&divided);
        assert!(outputs.all(|(a, b)| a.shape() == b.shape() && a.iter().zip(b).all(same)));
    }
    let (wanted, largest) = evaluate::evaluate(graph, &[image.mapv(f64::from)]);
    for (yielded, wanted) in yielded.iter().zip(&wanted) {
        let difference = evaluate::difference(&yielded.mapv(f64::from), wanted);
        assert!(
            difference <= TOLERANCE * largest,
            "{difference} of {largest}"
        );
    }
}

/// Makes networks of one image, and compares them.
fn check(make: impl Fn(&mut Maker, Image) -> Image) {
    for seed in 0..ROUNDS {
        let mut maker = Maker::new(seed);
        let input = maker.input();
        let (_, channels, [height, width]) = input;
        let (output, ..) = make(&mut maker, input);
        maker.graph.add_output("output", output);
        maker.check(&[1, channels, height, width]);
    }
}

#[test]
fn convolutions_equal_plain_loops() {
    check(|maker, image| {
        let outputs = maker.number(1..=40);
        let image = maker.convolution(image, 1, outputs);
        maker.activated(image)
    });
}

#[test]
fn convolutions_in_groups_equal_plain_loops() {
    check(|maker, (value, channels, size)| {
        let groups = maker.number(1..=9);
        let inputs = groups * maker.number(1..=7);
        let weights = maker.floats(&[inputs, channels, 1, 1]);
        let value = maker.graph.add("Conv", &[value, weights], vec![]);
        let outputs = groups * maker.number(1..=12);
        let image = maker.convolution((value, inputs, size), groups, outputs);
        maker.activated(image)
    });
}

#[test]
fn convolutions_of_which_groups_take_channels_equal_plain_loops() {
    check(|maker, image| {
        let groups = maker.number(2..=3);
        let inputs = groups * [16, 24, 63][maker.number(0..=2)];
        let source = maker.convolution(image, 1, inputs);
        let source = maker.activated(source);
        if maker.rng.bool() {
            maker.graph.add_output("source", source.0);
        }
        let outputs = groups * maker.number(1..=30);
        maker.convolution(source, groups, outputs)
    });
}

#[test]
fn single_layers_equal_plain_loops() {
    check(Maker::layer);
}

#[test]
fn chains_equal_plain_loops() {
    check(|maker, mut image| {
        for _ in 0..maker.number(2..=12) {
            image = maker.layer(image);
            image.2 = image.2.map(|side| side.max(1));
            if image.1 > 60 {
                image = maker.convolution(image, 1, 8);
            }
            if maker.number(0..=5) == 0 {
                maker.graph.add_output("between", image.0);
            }
        }
        image
    });
}

#[test]
fn products_of_images_equal_plain_loops() {
    for seed in 0..ROUNDS {
        let mut maker = Maker::new(seed);
        let channels = maker.number(1..=40);
        let shape = [1, channels, maker.number(1..=8), maker.number(1..=8)];
        let value = maker.graph.add_input("image", &shape);
        let length: usize = shape.iter().product();
        let columns = maker.number(1..=30);
        let flat = maker.graph.add("Flatten", &[value], vec![]);
        let weights = maker.floats(&[columns, length]);
        let bias = maker.floats(&[columns]);
        let transposed = vec![Attribute::int("transB", 1)];
        let output = maker.graph.add("Gemm", &[flat, weights, bias], transposed);
        maker.graph.add_output("output", output);
        maker.check(&shape);
    }
}

#[test]
fn layers_of_matrices_equal_plain_loops() {
    for seed in 0..4 * ROUNDS {
        let mut maker = Maker::new(seed);
        let (rows, columns) = (maker.number(1..=12), 8 * maker.number(1..=5));
        let shape = [1, rows, columns];
        let list = maker.graph.add_input("list", &shape);
        let extents = maker.graph.add_ints(&[2], &[rows as i64, columns as i64]);
        let as_matrix = vec![rows, columns];
        let value = maker
            .graph
            .add_shaped("Reshape", &[list, extents], vec![], as_matrix);
        let mut matrix = (value, rows, columns);
        for _ in 0..maker.number(1..=6) {
            matrix = maker.matrix_layer(matrix);
        }
        maker.graph.add_output("output", matrix.0);
        maker.check(&shape);
    }
}

#[test]
fn one_network_takes_images_of_several_sizes_and_batches() {
    let mut maker = Maker::new(3);
    let value = maker.graph.add_input("image", &[1, 3, 8, 8]);
    maker.graph.set_input_extent(2, None);
    maker.graph.set_input_extent(3, None);
    let mut image = (value, 3, [8, 8]);
    for outputs in [12, 40, 5] {
        image = maker.convolution(image, 1, outputs);
        image = maker.excited(image);
    }
    maker.graph.set_outputs(&[image.0]);
    maker.graph.sort();
    let network = Network::new(&maker.graph)
        .expect("a network that is supported")
        .with_least_work(1);
    for size in [
        [40, 31],
        [33, 57],
        [64, 40],
        [40, 31],
        [35, 36],
        [61, 33],
        [33, 57],
    ] {
        let image = maker.image(&[1, 3, size[0], size[1]]);
        compare(&maker.graph, &network, &image);
    }
    let images = [maker.image(&[1, 3, 40, 41]), maker.image(&[1, 3, 40, 41])];
    let both = concatenate(Axis(0), &images.each_ref().map(|own| own.view())).expect("a batch");
    let of_both = network.run(&[both.view()]).expect("a batch");
    let single = images.map(|image| network.run(&[image.view()]).expect("an image").remove(0));
    let single = concatenate(Axis(0), &single.each_ref().map(|own| own.view()));
    assert_eq!(of_both[0], single.expect("results of one shape"));
}
