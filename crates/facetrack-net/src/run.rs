// SPDX-License-Identifier: MPL-2.0
//! Runs a plan.

use fearless_simd::Simd;

use crate::kernel::{Layout, Row, dense, depthwise, rows};
use crate::layer::{Extent, Interpolation, Layer, MAX_KERNEL, Operator, Reduction, Shape, Window};
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
        let layout = place.layout();
        let Shape {
            height,
            width,
            channels,
            ..
        } = place.shape;
        let [scale, added] = input.scale;
        if !place.shape.is_planar {
            line.fill(0.0);
        }
        for channel in 0..channels {
            let (from, step) = match input.order {
                Order::ChannelsFirst => (channel * height * width + row * width, 1),
                Order::ChannelsLast => (row * width * channels + channel, channels),
            };
            let values = &values[from..];
            let line = &mut line[layout.at(0, channel)..];
            if place.shape.is_planar {
                for (x, value) in line.iter_mut().zip(&values[..width]) {
                    *x = value * scale + added;
                }
            } else {
                let lanes = layout.lanes(layout.block_of(channel));
                let pixels = line.iter_mut().step_by(lanes);
                for (x, value) in pixels.zip(values.iter().step_by(step)).take(width) {
                    *x = value * scale + added;
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
                    let layout = place.layout();
                    let buffer = &mut self.buffers[place.buffer];
                    for line in buffer[..place.rows * layout.len()].chunks_exact_mut(layout.len()) {
                        for first in layout.blocks() {
                            let inner = layout.inner(first);
                            line[layout.piece(first).start..inner.start].fill(0.0);
                            line[inner.end..layout.piece(first).end].fill(0.0);
                        }
                    }
                }
                Step::Compute(work) => {
                    for work in work {
                        let layer = &network.layers[work.layer as usize];
                        let place = self.plan.places[layer.output];
                        let mut buffer = std::mem::take(&mut self.buffers[place.buffer]);
                        let row = work.row as usize;
                        let output = &mut buffer[place.start(row)..][..place.layout().len()];
                        match layer.operator {
                            Operator::Load(index) => {
                                self.load(&network.inputs[index], row, inputs[index], output);
                            }
                            _ => self.compute(simd, layer, row, &mut packed, output),
                        }
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
            let layout = place.layout();
            let Shape {
                height,
                width,
                channels,
                ..
            } = place.shape;
            let of_row = |row| self.line(place, row);
            match piece.order {
                Order::ChannelsLast => {
                    for line in (0..height).map(of_row) {
                        for x in 0..width {
                            values.extend((0..channels).map(|channel| line[layout.at(x, channel)]));
                        }
                    }
                }
                Order::ChannelsFirst => {
                    for channel in 0..channels {
                        for line in (0..height).map(of_row) {
                            values.extend((0..width).map(|x| line[layout.at(x, channel)]));
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
        &self.buffers[place.buffer][place.start(row)..][..place.layout().len()]
    }

    /// Calls `run` with the rows that the output row `row` depends on.
    fn with_rows(&self, layer: &Layer, row: usize, run: impl FnOnce(&Row<'_>)) {
        let input = &self.plan.places[layer.inputs[0]];
        let window = layer.window().unwrap_or(&Window::PIXEL);
        let run = |rows: &[&[f32]]| {
            run(&Row {
                rows,
                layout: input.layout(),
                first: input.margins[0] - window.before[1],
                stride: window.stride[1],
            });
        };
        // A longer list takes longer to fill.
        match window.kernel[0] {
            1 => run(&self.rows::<1>(input, window, row)),
            3 => run(&self.rows::<3>(input, window, row)),
            count => run(&self.rows::<MAX_KERNEL>(input, window, row)[..count]),
        }
    }

    /// The rows of an image that the window of the output row `row` covers.
    fn rows<const N: usize>(&self, input: &Place, window: &Window, row: usize) -> [&[f32]; N] {
        let mut rows = [&self.zeros[..]; N];
        for (index, own) in rows.iter_mut().enumerate().take(window.kernel[0]) {
            let row = (row * window.stride[0] + index).wrapping_sub(window.before[0]);
            if row < input.shape.height {
                *own = self.line(input, row);
            }
        }
        rows
    }

    /// Copies what a layer adds to its sums into its output, if anything; it may be there already.
    fn add_to(&self, layer: &Layer, row: usize, output: &mut [f32]) -> bool {
        let Some(added) = layer.inputs.get(1).map(|id| &self.plan.places[*id]) else {
            return false;
        };
        let place = &self.plan.places[layer.output];
        if added.buffer != place.buffer {
            let (layout, whole) = (added.layout(), place.layout());
            if layout.stored < whole.stored {
                output.fill(0.0);
            }
            let line = self.line(added, row);
            rows::copy((line, 0), &layout, (output, 0), &whole, layout.stored);
        }
        true
    }

    /// Computes a row of the output of `layer`, margins aside.
    fn compute<S: Simd>(
        &self,
        simd: S,
        layer: &Layer,
        row: usize,
        packed: &mut dense::Weights,
        output: &mut [f32],
    ) {
        let layout = self.plan.places[layer.output].layout();
        let input = &self.plan.places[layer.inputs[0]];
        match &layer.operator {
            Operator::Dense(weights, _) => {
                let after = (&layer.activation, self.add_to(layer, row, output));
                self.with_rows(layer, row, |row| {
                    dense::run(simd, row, weights, after, (output, &layout));
                });
            }
            Operator::Depthwise(filters, _) => self.with_rows(layer, row, |row| {
                depthwise::run(simd, row, filters, &layer.activation, (output, &layout));
            }),
            Operator::Mix { constant, .. } => {
                packed.take_matrix(self.line(input, row), &input.layout());
                let after = (&layer.activation, self.add_to(layer, row, output));
                let depth = packed.stored();
                let row = Row {
                    rows: &[constant],
                    layout: Layout {
                        width: layout.width,
                        margins: [0; 2],
                        stored: depth,
                        block: depth,
                    },
                    first: 0,
                    stride: 1,
                };
                dense::run(simd, &row, packed, after, (output, &layout));
            }
            Operator::Select(channels) => {
                output.fill(0.0);
                let (line, own) = (self.line(input, row), input.layout());
                let mut index = 0;
                for run in channels.chunk_by(|a, b| a + 1 == *b) {
                    rows::copy((line, run[0]), &own, (output, index), &layout, run.len());
                    index += run.len();
                }
            }
            Operator::Concat(_) => {
                output.fill(0.0);
                let mut first = 0;
                for id in &layer.inputs {
                    let place = &self.plan.places[*id];
                    let (line, own) = (self.line(place, row), place.layout());
                    let count = place.shape.channels;
                    rows::copy((line, 0), &own, (output, first), &layout, count);
                    first += count;
                }
            }
            Operator::Normalize { scale, epsilon } => {
                let line = (self.line(input, row), &input.layout());
                rows::normalize(simd, line, scale, *epsilon, (output, &layout));
            }
            Operator::Reduce(reduction @ (Reduction::MeanOfColumns | Reduction::SumOfColumns)) => {
                let (line, own) = (self.line(input, row), input.layout());
                let divisor = match reduction {
                    Reduction::SumOfColumns => 1.0,
                    _ => input.shape.channels as f32,
                };
                output.fill(0.0);
                for x in 0..layout.width {
                    let values = (0..input.shape.channels).map(|channel| line[own.at(x, channel)]);
                    output[layout.at(x, 0)] = values.fold(0.0, |sum, value| sum + value) / divisor;
                }
            }
            _ => {
                for first in layout.blocks() {
                    self.compute_block(simd, layer, row, first, &mut output[layout.inner(first)]);
                }
            }
        }
    }

    /// Computes the block of channels that begins with `first`.
    fn compute_block<S: Simd>(
        &self,
        simd: S,
        layer: &Layer,
        row: usize,
        first: usize,
        output: &mut [f32],
    ) {
        let place = |index: usize| &self.plan.places[layer.inputs[index]];
        let inner = |index: usize, row: usize| {
            &self.line(place(index), row)[place(index).layout().inner(first)]
        };
        let input = place(0);
        let lanes = input.layout().lanes(first);
        // Without the channels that fill the last vector.
        let count = lanes.min(input.shape.channels - first);
        match &layer.operator {
            Operator::MaxPool(window) => {
                let near = window.rows(row, input.shape.height);
                let mut lines = [&self.zeros[..]; MAX_KERNEL];
                for (line, row) in lines.iter_mut().zip(near.clone()) {
                    *line = inner(0, row);
                }
                rows::max_pool(simd, &lines[..near.len()], window, lanes, output);
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
                rows::activate(simd, (first, lanes), &layer.activation, output);
            }
            Operator::Scale => rows::scale(simd, inner(0, row), inner(1, 0), output),
            Operator::Resize(interpolation, _) => {
                let shape = self.plan.places[layer.output].shape;
                let (near, far, down) =
                    interpolation.neighbours(row, input.shape.height, shape.height);
                let lines = [inner(0, near), inner(0, far)];
                let column = |x| interpolation.neighbours(x, input.shape.width, shape.width);
                match interpolation {
                    Interpolation::Nearest if shape.width == 2 * input.shape.width => {
                        rows::double(lines[0], lanes, output);
                    }
                    Interpolation::Nearest => {
                        for (x, pixel) in output.chunks_exact_mut(lanes).enumerate() {
                            pixel.copy_from_slice(&lines[0][column(x).0 * lanes..][..lanes]);
                        }
                    }
                    Interpolation::AlignedCorners => {
                        let columns = (0..shape.width).map(column);
                        rows::interpolate(simd, lines, down, columns, lanes, output);
                    }
                }
            }
            Operator::Identity => {
                output.copy_from_slice(inner(0, row));
                rows::activate(simd, (first, lanes), &layer.activation, output);
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
                output.fill(0.0);
                let pixels = inner(0, row).chunks_exact(lanes);
                for (pixel, output) in pixels.zip(output.chunks_exact_mut(lanes)) {
                    for (x, output) in pixel.iter().zip(output).take(count) {
                        *output = 1.0 / (1.0 + libm::expf(-x));
                    }
                }
            }
            Operator::Sqrt => {
                for (x, output) in inner(0, row).iter().zip(output) {
                    *output = x.sqrt();
                }
            }
            Operator::Prepend(rows) => {
                let channels = input.shape.channels;
                let (constant, rest) = output.split_at_mut(rows.len() / channels * lanes);
                let rows = rows.chunks_exact(channels);
                for (pixel, row) in constant.chunks_exact_mut(lanes).zip(rows) {
                    pixel.copy_from_slice(&row[first..][..lanes]);
                }
                rest.copy_from_slice(inner(0, row));
            }
            Operator::Rows(start, end) => {
                output.copy_from_slice(&inner(0, row)[start * lanes..end * lanes]);
            }
            Operator::Binary(arithmetic) if input.shape == place(1).shape && count == lanes => {
                let (a, b) = (inner(0, row), inner(1, row));
                rows::combine(simd, a, b, output, |a, b| arithmetic.of(a, b));
            }
            Operator::Binary(arithmetic) => {
                let (shape, own) = (place(1).shape, place(1).layout());
                let line = self.line(place(1), row);
                let pixels = inner(0, row).chunks_exact(lanes);
                output.fill(0.0);
                for (x, (pixel, output)) in pixels.zip(output.chunks_exact_mut(lanes)).enumerate() {
                    let x = x.min(shape.width - 1);
                    for (lane, output) in output.iter_mut().enumerate().take(count) {
                        let channel = (first + lane).min(shape.channels - 1);
                        *output = arithmetic.of(pixel[lane], line[own.at(x, channel)]);
                    }
                }
            }
            Operator::Reduce(_) => {
                output.fill(0.0);
                rows::accumulate(simd, inner(0, row), output);
                for sum in output {
                    *sum /= input.shape.width as f32;
                }
            }
            // `compute` has done them, or the run before.
            Operator::Load(_)
            | Operator::Dense(..)
            | Operator::Depthwise(..)
            | Operator::Mix { .. }
            | Operator::Select(_)
            | Operator::Concat(_)
            | Operator::Normalize { .. } => {}
        }
    }
}
