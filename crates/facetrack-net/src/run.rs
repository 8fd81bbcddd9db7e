// SPDX-License-Identifier: MPL-2.0
//! Runs a plan.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::{hint, mem, thread};

use fearless_simd::Simd;

use crate::kernel::dense::MAX_LINES;
use crate::kernel::{Aligned, Layout, Row, dense, depthwise, rows};
use crate::layer::{
    Extent, Id, Interpolation, Layer, MAX_KERNEL, Operator, Reduction, Shape, Window,
};
use crate::lower::{Input, Layers, Order, Output};
use crate::memory::{self, OutOfMemory};
use crate::plan::{self, Place, Plan, Step, Work, owner};

/// Number of times that a waiting thread looks for work before it yields its processor: some 25 µs.
const SPINS: usize = 1000;

/// Number of columns of an enlarged image whose neighbours are found at a time.
const COLUMNS: usize = 64;

/// Memory of one run at a time.
#[derive(Debug)]
pub(crate) struct State {
    /// Memory of the bands, each in a separate allocation because several threads write at a time.
    bands: Vec<Mutex<Box<Band>>>,
    /// Number of stages of a run.
    stages: usize,
    /// Number of stages after the last step of each band.
    idle: Vec<usize>,
    /// Number of stages that each band is done with, in all runs.
    done: Vec<AtomicUsize>,
    /// Number of stages that each band has to do, in all runs.
    goal: AtomicUsize,
    /// Rows that are copied between bands.
    copies: Vec<Mutex<Vec<f32>>>,
    /// Shapes of all tensors.
    shapes: Vec<Shape>,
    /// Heights and widths of the inputs.
    extents: Vec<[usize; 2]>,
    /// Maximum number of threads of a run.
    threads: usize,
}

impl State {
    /// Memory for runs of `plan`.
    ///
    /// # Errors
    /// Returns an error if there is too little memory.
    pub(crate) fn new(
        plan: Plan,
        extents: Vec<[usize; 2]>,
        threads: usize,
    ) -> Result<Self, OutOfMemory> {
        let stages = plan.bands.iter().map(|band| band.stages.len()).max();
        let stages = stages.unwrap_or(0);
        let idle = plan.bands.iter().map(|band| stages - band.stages.len());
        let band = |mut band: plan::Band| {
            band.stages.resize_with(stages, Vec::new);
            let buffers = band.buffers.into_iter().map(Aligned::zeros);
            Ok(Mutex::new(Box::new(Band {
                places: band.places,
                stages: band.stages,
                buffers: buffers.collect::<Result<_, _>>()?,
                zeros: Aligned::zeros(plan.longest)?,
                packed: dense::Weights::default(),
            })))
        };
        let shapes = plan.bands[0].places.iter().map(|place| place.shape);
        let copies = plan.copies.into_iter();
        let copies = copies.map(|length| memory::zeros(length).map(Mutex::new));
        Ok(Self {
            shapes: shapes.collect(),
            idle: idle.collect(),
            stages,
            done: plan.bands.iter().map(|_| AtomicUsize::new(0)).collect(),
            goal: AtomicUsize::new(0),
            copies: copies.collect::<Result<_, _>>()?,
            bands: plan.bands.into_iter().map(band).collect::<Result<_, _>>()?,
            extents,
            threads,
        })
    }

    /// Returns true if this memory is for such inputs and threads, and its number of stages cannot
    /// overflow in the next run.
    pub(crate) fn fits(&self, extents: &[[usize; 2]], threads: usize) -> bool {
        let is_young = self.goal.load(Ordering::Relaxed) <= usize::MAX / 2;
        is_young && self.extents == extents && self.threads == threads
    }

    /// Number of bands.
    pub(crate) fn bands(&self) -> usize {
        self.bands.len()
    }

    /// Begins a run, after all stages of the one before.
    pub(crate) fn begin(&self) {
        self.goal.fetch_add(self.stages, Ordering::AcqRel);
    }

    /// Does the first stage of all bands, which takes the inputs.
    pub(crate) fn load<S: Simd>(&self, simd: S, network: &Layers, inputs: &[&[f32]]) {
        for (band, done) in self.bands.iter().zip(&self.done) {
            lock(band).run(simd, network, inputs, (0, &self.copies));
            done.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Works on a run until the band `own` has no more steps. The first band works until all bands
    /// are done. Stages of other bands that no thread has begun are done too. Returns at once if the
    /// run is over.
    pub(crate) fn work<S: Simd>(&self, simd: S, network: &Layers, own: usize) {
        let goal = self.goal.load(Ordering::Acquire);
        let left = |band: &usize| self.done(*band) < goal;
        let is_needed = || match own {
            0 => (0..self.bands()).any(|band| left(&band)),
            _ => self.done(own) < goal - self.idle[own],
        };
        let mut spins = 0;
        while is_needed() {
            let mut bands = (own..self.bands()).chain(0..own).filter(left);
            if bands.any(|band| self.advance(simd, network, band)) {
                spins = 0;
                continue;
            }
            spins += 1;
            match spins < SPINS {
                true => hint::spin_loop(),
                false => thread::yield_now(),
            }
        }
    }

    /// Number of stages that a band is done with, in all runs.
    fn done(&self, band: usize) -> usize {
        self.done[band].load(Ordering::Acquire)
    }

    /// Does the next stage of a band, unless the inputs are missing, another band is behind, or
    /// another thread does it.
    fn advance<S: Simd>(&self, simd: S, network: &Layers, band: usize) -> bool {
        let done = self.done(band);
        let stage = done % self.stages;
        if stage == 0 || (0..self.bands()).any(|other| self.done(other) < done) {
            return false;
        }
        let Some(mut own) = try_lock(&self.bands[band]) else {
            return false;
        };
        if self.done(band) != done {
            return false;
        }
        own.run(simd, network, &[], (stage, &self.copies));
        self.done[band].fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Returns true if a thread has panicked, so that the outputs are wrong.
    pub(crate) fn has_failed(&self) -> bool {
        self.bands.iter().any(Mutex::is_poisoned)
    }

    /// Elements of an output.
    ///
    /// # Errors
    /// Returns an error if there is too little memory.
    pub(crate) fn output(&self, output: &Output) -> Result<Vec<f32>, OutOfMemory> {
        let pieces = &output.pieces;
        let length = pieces.iter().map(|piece| self.shapes[piece.id].len()).sum();
        let bands: Vec<_> = self.bands.iter().map(lock).collect();
        let mut values = Vec::new();
        memory::reserve(&mut values, length)?;
        for piece in pieces {
            let Shape {
                height,
                width,
                channels,
                ..
            } = self.shapes[piece.id];
            let layout = bands[0].places[piece.id].layout();
            let of_row = |row| {
                let band = &bands[owner(height, row, bands.len())];
                band.line(&band.places[piece.id], row)
            };
            match piece.order {
                Order::ChannelsLast => {
                    for line in (0..height).map(of_row) {
                        for x in 0..width {
                            for first in layout.blocks().take_while(|first| *first < channels) {
                                let count = layout.lanes(first).min(channels - first);
                                values.extend_from_slice(&line[layout.at(x, first)..][..count]);
                            }
                        }
                    }
                }
                Order::ChannelsFirst => {
                    for channel in 0..channels {
                        let lanes = layout.lanes(layout.block_of(channel));
                        for line in (0..height).map(of_row) {
                            let pixels = line[layout.at(0, channel)..].iter().step_by(lanes);
                            values.extend(pixels.take(width));
                        }
                    }
                }
            }
        }
        Ok(values)
    }

    /// The shape of an output.
    pub(crate) fn shape(&self, output: &Output) -> Vec<usize> {
        let shapes = output.pieces.iter().map(|piece| self.shapes[piece.id]);
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
        } = self.shapes[piece.id];
        match piece.order {
            Order::ChannelsFirst => vec![1, channels, height, width],
            Order::ChannelsLast => vec![height * width, channels],
        }
    }

    /// The extents of a list of this length.
    fn list(&self, extents: &[Extent], length: usize) -> Vec<usize> {
        let known = extents.iter().map(|extent| match *extent {
            Extent::Fixed(extent) => Some(extent),
            Extent::Of(id, axis) => self.shapes[id].extent(axis),
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
}

/// Waits for a lock that nothing else holds.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock of a band, unless a thread works on it. If a thread has panicked there, the others go
/// on, so that none of them waits for ever.
fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(locked) => Some(locked),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The memory of a band.
#[derive(Debug)]
struct Band {
    places: Vec<Place>,
    stages: Vec<Vec<Step>>,
    buffers: Vec<Aligned>,
    /// A row above and below all images.
    zeros: Aligned,
    packed: dense::Weights,
}

impl Band {
    /// Does the steps of a stage.
    fn run<S: Simd>(
        &mut self,
        simd: S,
        network: &Layers,
        inputs: &[&[f32]],
        (stage, copies): (usize, &[Mutex<Vec<f32>>]),
    ) {
        let steps = mem::take(&mut self.stages[stage]);
        for step in &steps {
            match step {
                Step::Clear(id) => self.clear(*id),
                Step::Compute(work) => self.compute_all(simd, network, inputs, work),
                Step::Send(id, rows, number) => {
                    let place = &self.places[*id];
                    let mut copy = lock(&copies[*number]);
                    let lines = copy.chunks_exact_mut(place.layout().len());
                    for (row, line) in rows.clone().zip(lines) {
                        line.copy_from_slice(self.line(place, row));
                    }
                }
                Step::Receive(id, rows, number) => {
                    let place = &self.places[*id];
                    let length = place.layout().len();
                    let copy = lock(&copies[*number]);
                    for (row, line) in rows.clone().zip(copy.chunks_exact(length)) {
                        let buffer = &mut self.buffers[place.buffer];
                        buffer[place.start(row)..][..length].copy_from_slice(line);
                    }
                }
            }
        }
        self.stages[stage] = steps;
    }

    /// Sets the margins of a tensor to 0.
    fn clear(&mut self, id: Id) {
        let place = self.places[id];
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

    /// Computes rows.
    fn compute_all<S: Simd>(
        &mut self,
        simd: S,
        network: &Layers,
        inputs: &[&[f32]],
        work: &[Work],
    ) {
        let mut packed = mem::take(&mut self.packed);
        for work in work {
            let layer = &network.layers[work.layer as usize];
            let place = self.places[layer.output];
            let mut buffer = mem::take(&mut self.buffers[place.buffer]);
            let rows = work.rows.start as usize..work.rows.end as usize;
            if let Operator::Dense(weights, _) = &layer.operator {
                self.convolve(simd, (layer, weights), rows, &mut buffer);
            } else {
                for row in rows {
                    let output = &mut buffer[place.start(row)..][..place.layout().len()];
                    match layer.operator {
                        Operator::Load(index) => {
                            let input = &network.inputs[index];
                            self.load(input, row, inputs[index], output);
                        }
                        _ => self.compute(simd, layer, row, &mut packed, output),
                    }
                }
            }
            self.buffers[place.buffer] = buffer;
        }
        self.packed = packed;
    }

    /// Copies a row of an input.
    fn load(&self, input: &Input, row: usize, values: &[f32], line: &mut [f32]) {
        let place = self.places[input.id];
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

    /// A row of a tensor with its margins.
    fn line(&self, place: &Place, row: usize) -> &[f32] {
        &self.buffers[place.buffer][place.start(row)..][..place.layout().len()]
    }

    /// Calls `run` with the rows of the image that the output rows `rows` depend on.
    fn with_lines(&self, layer: &Layer, rows: Range<usize>, run: impl FnOnce(&Row<'_>)) {
        let input = &self.places[layer.inputs[0]];
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
        match rows.len() * window.kernel[0] {
            1 => run(&self.lines::<1>(input, window, rows)),
            3 => run(&self.lines::<3>(input, window, rows)),
            count @ ..=MAX_KERNEL => run(&self.lines::<MAX_KERNEL>(input, window, rows)[..count]),
            count => run(&self.lines::<MAX_LINES>(input, window, rows)[..count]),
        }
    }

    /// The rows of an image that the windows of the output rows `rows` cover, one window after the
    /// other.
    fn lines<const N: usize>(
        &self,
        input: &Place,
        window: &Window,
        rows: Range<usize>,
    ) -> [&[f32]; N] {
        let mut lines = [&self.zeros[..]; N];
        let windows = lines.chunks_exact_mut(window.kernel[0]);
        for (row, lines) in rows.zip(windows) {
            for (index, line) in lines.iter_mut().enumerate() {
                let row = (row * window.stride[0] + index).wrapping_sub(window.before[0]);
                if row < input.shape.height {
                    *line = self.line(input, row);
                }
            }
        }
        lines
    }

    /// Computes rows of the output of a convolution, which is in `buffer`.
    fn convolve<S: Simd>(
        &self,
        simd: S,
        (layer, weights): (&Layer, &dense::Weights),
        rows: Range<usize>,
        buffer: &mut [f32],
    ) {
        let place = self.places[layer.output];
        let layout = place.layout();
        let mut starts = [0; MAX_LINES];
        let starts = &mut starts[..rows.len()];
        let mut added = 0;
        for (start, row) in starts.iter_mut().zip(rows.clone()) {
            *start = place.start(row);
            added = self.add_to(layer, row, &mut buffer[*start..][..layout.len()]);
        }
        self.with_lines(layer, rows, |row| {
            let after = (&layer.activation, added);
            dense::run(simd, row, weights, after, (buffer, starts, &layout));
        });
    }

    /// Copies what a layer adds to its sums into its output; it may be there already. Returns the
    /// number of its columns. If they end within a block of the output, zeros fill the block.
    fn add_to(&self, layer: &Layer, row: usize, output: &mut [f32]) -> usize {
        let Some(added) = layer.inputs.get(1).map(|id| &self.places[*id]) else {
            return 0;
        };
        let place = &self.places[layer.output];
        let (layout, whole) = (added.layout(), place.layout());
        if added.buffer != place.buffer {
            let last = whole.block_of(layout.stored - 1);
            if layout.stored < last + whole.lanes(last) {
                output[whole.inner(last)].fill(0.0);
            }
            let line = self.line(added, row);
            rows::copy((line, 0), &layout, (output, 0), &whole, layout.stored);
        }
        layout.stored
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
        let layout = self.places[layer.output].layout();
        let input = &self.places[layer.inputs[0]];
        match &layer.operator {
            Operator::Depthwise(filters, _) => self.with_lines(layer, row..row + 1, |row| {
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
                dense::run(simd, &row, packed, after, (output, &[0], &layout));
            }
            Operator::Select(channels) => {
                rows::clear_behind(output, &layout, channels.len());
                let (line, own) = (self.line(input, row), input.layout());
                let mut index = 0;
                for run in channels.chunk_by(|a, b| a + 1 == *b) {
                    rows::copy((line, run[0]), &own, (output, index), &layout, run.len());
                    index += run.len();
                }
            }
            Operator::Concat(_) => {
                let parts = layer
                    .inputs
                    .iter()
                    .map(|id| self.places[*id].shape.channels);
                rows::clear_behind(output, &layout, parts.sum());
                let mut first = 0;
                for id in &layer.inputs {
                    let place = &self.places[*id];
                    let (line, own) = (self.line(place, row), place.layout());
                    let count = place.shape.channels;
                    rows::copy((line, 0), &own, (output, first), &layout, count);
                    first += count;
                }
            }
            Operator::Resize(interpolation, _) => {
                self.resize(simd, *interpolation, (layer, row), output);
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

    /// Computes a row of an image of another size.
    fn resize<S: Simd>(
        &self,
        simd: S,
        interpolation: Interpolation,
        (layer, row): (&Layer, usize),
        output: &mut [f32],
    ) {
        let [input, place] = [layer.inputs[0], layer.output].map(|id| &self.places[id]);
        let (own, layout) = (input.layout(), place.layout());
        let (near, far, down) =
            interpolation.neighbours(row, input.shape.height, place.shape.height);
        let lines = [near, far].map(|row| self.line(input, row));
        let mut columns = [(0, 0, 0.0); COLUMNS];
        for start in (0..layout.width).step_by(COLUMNS) {
            let columns = &mut columns[..COLUMNS.min(layout.width - start)];
            for (x, column) in columns.iter_mut().enumerate() {
                *column = interpolation.neighbours(start + x, own.width, layout.width);
            }
            for first in layout.blocks() {
                let (lines, lanes) = (lines.map(|line| &line[own.inner(first)]), own.lanes(first));
                let output = &mut output[layout.inner(first)][start * lanes..];
                match interpolation {
                    Interpolation::Nearest => rows::repeat(lines[0], columns, lanes, output),
                    Interpolation::AlignedCorners => {
                        rows::interpolate(simd, lines, down, columns, lanes, output);
                    }
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
        let place = |index: usize| &self.places[layer.inputs[index]];
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
            // `compute` has done them, or the previous run has.
            Operator::Load(_)
            | Operator::Dense(..)
            | Operator::Depthwise(..)
            | Operator::Mix { .. }
            | Operator::Select(_)
            | Operator::Concat(_)
            | Operator::Resize(..)
            | Operator::Normalize { .. } => {}
        }
    }
}
