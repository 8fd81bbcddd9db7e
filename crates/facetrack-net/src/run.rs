// SPDX-License-Identifier: MPL-2.0
//! Runs a plan.

use fearless_simd::Simd;

use crate::kernel::{dense, depthwise, rows};
use crate::layer::{
    Arithmetic, Extent, Interpolation, Layer, MAX_KERNEL, MAX_LINES, Operator, Reduction, Shape,
    Window,
};
use crate::lower::{Input, Layers, Order, Output};
use crate::plan::{Place, Plan, Step};

/// Memory of one run at a time.
#[derive(Debug)]
pub struct State {
    plan: Plan,
    buffers: Vec<Vec<f32>>,
    /// A row above and below all images.
    zeros: Vec<f32>,
    packed: dense::Weights,
    /// Heights and widths of the inputs.
    pub extents: Vec<[usize; 2]>,
}

impl State {
    pub fn new(plan: Plan, extents: Vec<[usize; 2]>) -> Self {
        Self {
            buffers: plan
                .buffers
                .iter()
                .map(|length| vec![0.0; *length])
                .collect(),
            zeros: vec![0.0; plan.longest],
            packed: dense::Weights::default(),
            extents,
            plan,
        }
    }

    /// Copies a row of an input.
    fn load(&self, input: &Input, row: usize, values: &[f32], line: &mut [f32]) {
        let place = self.plan.places[input.id];
        let Shape {
            height,
            width,
            channels,
            stored,
            is_planar,
        } = place.shape;
        let [scale, added] = input.scale;
        let area = height * width;
        line.fill(0.0);
        for channel in 0..channels {
            let (from, step) = match input.order {
                Order::ChannelsFirst => (channel * area + row * width, 1),
                Order::ChannelsLast => (row * width * channels + channel, channels),
            };
            if is_planar {
                let whole = place.margins[0] + width + place.margins[1];
                let line = &mut line[channel * whole + place.margins[0]..][..width];
                for (x, value) in line.iter_mut().zip(&values[from..][..width]) {
                    *x = value * scale + added;
                }
            } else {
                let line = &mut line[place.margins[0] * stored..];
                let values = values[from..].iter().step_by(step).take(width);
                for (pixel, value) in line.chunks_exact_mut(stored).zip(values) {
                    pixel[channel] = value * scale + added;
                }
            }
        }
    }

    /// Runs all layers.
    pub fn run<S: Simd>(&mut self, simd: S, network: &Layers, inputs: &[&[f32]]) {
        let steps = std::mem::take(&mut self.plan.steps);
        let mut packed = std::mem::take(&mut self.packed);
        for step in &steps {
            match step {
                Step::Clear(id) => {
                    let place = self.plan.places[*id];
                    let stored = place.shape.stored;
                    let buffer = &mut self.buffers[place.buffer];
                    for line in buffer[..place.rows * place.line()].chunks_exact_mut(place.line()) {
                        line[..place.margins[0] * stored].fill(0.0);
                        let end = (place.margins[0] + place.shape.width) * stored;
                        line[end..].fill(0.0);
                    }
                }
                Step::Compute(work) => {
                    for work in work {
                        let layer = &network.layers[work.layer as usize];
                        let place = self.plan.places[layer.output];
                        let mut buffer = std::mem::take(&mut self.buffers[place.buffer]);
                        if let Operator::Load(index) = layer.operator {
                            let line =
                                &mut buffer[place.start(work.row as usize)..][..place.line()];
                            self.load(
                                &network.inputs[index],
                                work.row as usize,
                                inputs[index],
                                line,
                            );
                            self.buffers[place.buffer] = buffer;
                            continue;
                        }
                        let start =
                            place.start(work.row as usize) + place.margins[0] * place.shape.stored;
                        let output = &mut buffer[start..][..place.shape.width * place.shape.stored];
                        self.compute(simd, layer, work.row as usize, &mut packed, output);
                        self.buffers[place.buffer] = buffer;
                    }
                }
            }
        }
        self.plan.steps = steps;
        self.packed = packed;
    }

    /// Elements of an output.
    pub fn output(&self, output: &Output) -> Vec<f32> {
        let pieces = &output.pieces;
        let length = pieces
            .iter()
            .map(|piece| self.plan.places[piece.id].shape.len())
            .sum();
        let mut values = Vec::with_capacity(length);
        for piece in pieces {
            let place = &self.plan.places[piece.id];
            let Shape {
                height,
                width,
                channels,
                stored,
                ..
            } = place.shape;
            let lines =
                || (0..height).map(|row| &self.line(place, row)[place.margins[0] * stored..]);
            match piece.order {
                Order::ChannelsLast => {
                    for line in lines() {
                        let pixels = line.chunks_exact(stored).take(width);
                        values.extend(pixels.flat_map(|pixel| &pixel[..channels]));
                    }
                }
                Order::ChannelsFirst => {
                    for channel in 0..channels {
                        for line in lines() {
                            values.extend(line[channel..].iter().step_by(stored).take(width));
                        }
                    }
                }
            }
        }
        values
    }

    /// The shape of an output.
    pub fn shape(&self, output: &Output) -> Vec<usize> {
        let shapes = output
            .pieces
            .iter()
            .map(|piece| self.plan.places[piece.id].shape);
        let length = shapes.map(|shape| shape.len()).sum();
        let product = |extents: &[usize]| extents.iter().product::<usize>();
        if !output.declared.is_empty() && product(&output.declared) == length {
            return output.declared.clone();
        }
        if let Some(extents) = &output.extents {
            return self.list(extents, length);
        }
        let Some(piece) = output.pieces.first() else {
            return vec![0];
        };
        let Shape {
            height,
            width,
            channels,
            ..
        } = self.plan.places[piece.id].shape;
        match piece.order {
            Order::ChannelsFirst => vec![1, channels, height, width],
            Order::ChannelsLast => vec![height * width, channels],
        }
    }

    /// The extents of a list of this length.
    fn list(&self, extents: &[Extent], length: usize) -> Vec<usize> {
        let known = extents.iter().map(|extent| match *extent {
            Extent::Fixed(extent) => Some(extent),
            Extent::Of(id, axis) => self.plan.places[id].shape.extent(axis),
            Extent::Times(_) | Extent::Rest => None,
        });
        let known: Vec<Option<usize>> = known.collect();
        let product = known
            .iter()
            .flatten()
            .fold(1, |product: usize, own| product.saturating_mul(*own));
        let rest = length.checked_div(product).unwrap_or(0);
        known.into_iter().map(|own| own.unwrap_or(rest)).collect()
    }

    /// A row of a tensor with its margins.
    fn line(&self, place: &Place, row: usize) -> &[f32] {
        &self.buffers[place.buffer][place.start(row)..][..place.line()]
    }

    /// A row of a tensor without its margins.
    fn inner(&self, place: &Place, row: usize) -> &[f32] {
        let Shape { width, stored, .. } = place.shape;
        &self.line(place, row)[place.margins[0] * stored..][..width * stored]
    }

    /// Calls `run` with the `count` lines of a window.
    fn with_lines(
        &self,
        count: usize,
        (input, window, row): (&Place, &Window, usize),
        run: impl FnOnce(&[&[f32]]),
    ) {
        // A longer list takes longer to fill.
        match count {
            1 => run(&self.lines::<1>(input, window, row)),
            3 => run(&self.lines::<3>(input, window, row)),
            _ => run(&self.lines::<MAX_LINES>(input, window, row)[..count]),
        }
    }

    /// Puts the channels of images one behind the other.
    fn concat(&self, layer: &Layer, row: usize, output: &mut [f32]) {
        output.fill(0.0);
        let whole = self.plan.places[layer.output].shape.stored;
        let mut first = 0;
        for id in &layer.inputs {
            let place = &self.plan.places[*id];
            let Shape {
                channels, stored, ..
            } = place.shape;
            let pixels = self.inner(place, row).chunks_exact(stored);
            for (pixel, output) in pixels.zip(output.chunks_exact_mut(whole)) {
                output[first..first + channels].copy_from_slice(&pixel[..channels]);
            }
            first += channels;
        }
    }

    /// The lines of an image that the window of the output row `row` covers, from its first column
    /// on. A planar image has a line for each channel.
    fn lines<const N: usize>(&self, input: &Place, window: &Window, row: usize) -> [&[f32]; N] {
        let [planes, floats] = match input.shape.is_planar {
            true => [input.shape.stored, 1],
            false => [1, input.shape.stored],
        };
        let plane = input.line() / planes;
        let start = (input.margins[0] - window.before[1]) * floats;
        let mut lines = [&self.zeros[..]; N];
        for (index, line) in lines.iter_mut().take(window.kernel[0] * planes).enumerate() {
            let row = (row * window.stride[0] + index / planes).wrapping_sub(window.before[0]);
            if row < input.shape.height {
                *line = &self.line(input, row)[index % planes * plane + start..][..plane - start];
            }
        }
        lines
    }

    /// Copies what a layer adds to its sums into its output, if anything; it may be there already.
    fn add_to(&self, layer: &Layer, row: usize, output: &mut [f32]) -> bool {
        let Some(added) = layer.inputs.get(1).map(|id| &self.plan.places[*id]) else {
            return false;
        };
        let place = &self.plan.places[layer.output];
        if added.buffer == place.buffer {
            return true;
        }
        let (from, to) = (added.shape.stored, place.shape.stored);
        let line = self.inner(added, row);
        if from == to {
            output.copy_from_slice(line);
            return true;
        }
        for (pixel, output) in line.chunks_exact(from).zip(output.chunks_exact_mut(to)) {
            output[..from].copy_from_slice(pixel);
            output[from..].fill(0.0);
        }
        true
    }

    fn compute<S: Simd>(
        &self,
        simd: S,
        layer: &Layer,
        row: usize,
        packed: &mut dense::Weights,
        output: &mut [f32],
    ) {
        let place = |index: usize| &self.plan.places[layer.inputs[index]];
        let inner = |index: usize, row: usize| self.inner(place(index), row);
        let input = place(0);
        let stored = input.shape.stored;
        match &layer.operator {
            // It is done before.
            Operator::Load(_) => {}
            Operator::Dense(weights, window, _) => {
                let adds = self.add_to(layer, row, output);
                let step = window.stride[1] * if input.shape.is_planar { 1 } else { stored };
                let pixels = self.plan.places[layer.output].shape.width;
                self.with_lines(weights.rows(), (input, window, row), |rows| {
                    let row = dense::Row {
                        rows,
                        step,
                        pixels,
                        adds,
                    };
                    dense::run(simd, &row, weights, &layer.activation, output);
                });
            }
            Operator::Depthwise(filters, window) => {
                let (stride, activation) = (window.stride[1], &layer.activation);
                self.with_lines(window.kernel[0], (input, window, row), |rows| {
                    depthwise::run(simd, rows, stride, filters, activation, output);
                });
            }
            Operator::MaxPool(window) => {
                let near = window.rows(row, input.shape.height);
                let mut lines = [&self.zeros[..]; MAX_KERNEL];
                for (line, row) in lines.iter_mut().zip(near.clone()) {
                    *line = inner(0, row);
                }
                rows::max_pool(simd, &lines[..near.len()], window, stored, output);
            }
            Operator::Mix { constant, rows } => {
                let matrix = inner(0, row);
                let (columns, depth) = (stored, input.shape.width + 1);
                packed.take_matrix(depth, columns, matrix);
                let adds = self.add_to(layer, row, output);
                let row = dense::Row {
                    rows: &[constant],
                    step: depth,
                    pixels: *rows,
                    adds,
                };
                dense::run(simd, &row, packed, &layer.activation, output);
            }
            Operator::Mean => {
                output.fill(0.0);
                for row in 0..input.shape.height {
                    rows::accumulate(simd, inner(0, row), output);
                }
                let count = (input.shape.height * input.shape.width) as f32;
                for sum in output {
                    *sum /= count;
                }
            }
            Operator::Add => {
                rows::combine(simd, inner(0, row), inner(1, row), output, |a, b| a + b);
                rows::activate(simd, stored, &layer.activation, output);
            }
            Operator::Select(channels) => {
                let whole = self.plan.places[layer.output].shape.stored;
                rows::select(inner(0, row), stored, channels, whole, output);
            }
            Operator::Scale => rows::scale(simd, inner(0, row), inner(1, 0), output),
            Operator::Concat(_) => self.concat(layer, row, output),
            Operator::Resize(interpolation, _) => {
                let shape = self.plan.places[layer.output].shape;
                let (near, far, down) =
                    interpolation.neighbours(row, input.shape.height, shape.height);
                let lines = [inner(0, near), inner(0, far)];
                let column = |x| interpolation.neighbours(x, input.shape.width, shape.width);
                match interpolation {
                    Interpolation::Nearest => {
                        for (x, pixel) in output.chunks_exact_mut(stored).enumerate() {
                            pixel.copy_from_slice(&lines[0][column(x).0 * stored..][..stored]);
                        }
                    }
                    Interpolation::AlignedCorners => {
                        let columns = (0..shape.width).map(column);
                        rows::interpolate(simd, lines, down, columns, stored, output);
                    }
                }
            }
            Operator::Identity => {
                output.copy_from_slice(inner(0, row));
                rows::activate(simd, stored, &layer.activation, output);
            }
            Operator::Affine(factor, added) => {
                let input = inner(0, row);
                rows::combine(simd, input, input, output, |x, _| x * factor + added);
            }
            Operator::HardSigmoid(a, b) => {
                let input = inner(0, row);
                rows::combine(simd, input, input, output, |x, _| {
                    x.mul_add(*a, *b).clamp(0.0, 1.0)
                });
            }
            Operator::Sigmoid => {
                for (x, output) in inner(0, row).iter().zip(output) {
                    *output = 1.0 / (1.0 + libm::expf(-x));
                }
            }
            Operator::Sqrt => {
                for (x, output) in inner(0, row).iter().zip(output) {
                    *output = x.sqrt();
                }
            }
            Operator::Normalize { scale, epsilon } => {
                rows::normalize(simd, inner(0, row), scale, *epsilon, output)
            }
            Operator::Prepend(rows) => {
                let (constant, rest) = output.split_at_mut(rows.len());
                constant.copy_from_slice(rows);
                rest.copy_from_slice(inner(0, row));
            }
            Operator::Rows(first, last) => {
                output.copy_from_slice(&inner(0, row)[first * stored..last * stored])
            }
            Operator::Binary(arithmetic) => {
                let other = place(1).shape;
                let (a, b) = (inner(0, row), inner(1, row));
                for (x, (pixel, output)) in a
                    .chunks_exact(stored)
                    .zip(output.chunks_exact_mut(stored))
                    .enumerate()
                {
                    let line = &b[x.min(other.width - 1) * other.stored..];
                    for channel in 0..input.shape.channels {
                        let (a, b) = (pixel[channel], line[channel.min(other.channels - 1)]);
                        output[channel] = match arithmetic {
                            Arithmetic::Add => a + b,
                            Arithmetic::Sub => a - b,
                            Arithmetic::Mul => a * b,
                            Arithmetic::Div => a / b,
                        };
                    }
                }
            }
            Operator::Reduce(reduction) => reduce(*reduction, inner(0, row), &input.shape, output),
        }
    }
}

fn reduce(reduction: Reduction, matrix: &[f32], shape: &Shape, output: &mut [f32]) {
    output.fill(0.0);
    let pixels = matrix
        .chunks_exact(shape.stored)
        .map(|pixel| &pixel[..shape.channels]);
    match reduction {
        Reduction::MeanOfRows => {
            for pixel in pixels {
                for (x, sum) in pixel.iter().zip(&mut *output) {
                    *sum += x;
                }
            }
            for sum in output {
                *sum /= shape.width as f32;
            }
        }
        Reduction::MeanOfColumns | Reduction::SumOfColumns => {
            let divisor = match reduction {
                Reduction::SumOfColumns => 1.0,
                _ => shape.channels as f32,
            };
            let stored = crate::kernel::padded(1);
            for (pixel, output) in pixels.zip(output.chunks_exact_mut(stored)) {
                output[0] = pixel.iter().fold(0.0, |sum, x| sum + x) / divisor;
            }
        }
    }
}
