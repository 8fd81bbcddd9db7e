// SPDX-License-Identifier: MPL-2.0
//! Convolutions whose outputs depend on all channels, and products of matrices.

use fearless_simd::{Simd, f32x8, f32x16, prelude::*};

use super::{Activation, Aligned, BLOCK, LANES, Layout, Row, Vector, finish, padded};

/// Pixels for which all columns are computed before the next ones, a multiple of the pixels that are
/// computed together: their inputs stay in the first cache.
const SPAN: usize = 48;

/// Pixels of a group. The last group of a row may have fewer.
const GROUP: usize = 4;

/// The pixels of shorter rows are all computed across rows, if there are several.
const SHORT: usize = 12;

/// Pixels that are computed at a time across rows.
const ACROSS: usize = 6;

/// Up to this many pixels are computed for several blocks of columns at a time.
const FEW: usize = 2;

/// Maximum number of rows of an image that rows of pixels are computed from at a time.
pub(crate) const MAX_LINES: usize = 24;

/// Number of rows of this many pixels to compute at a time, so that each of the weights is read for
/// many pixels.
pub(crate) fn rows_at_a_time(width: usize, kernel: usize) -> usize {
    (SPAN / width).min(MAX_LINES / kernel).max(1)
}

/// Weights in the order of reading. The outer loops come first: blocks of columns, rows of the
/// kernel, blocks of channels, pixels of the kernel, channels, columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weights {
    values: Aligned,
    /// Bias of each column.
    bias: Vec<f32>,
    /// Rows and columns of the kernel.
    kernel: [usize; 2],
    /// Channels of the input in memory.
    stored: usize,
    /// Columns, without those that fill the last vector.
    columns: usize,
}

impl Weights {
    /// Packs the weights `of(row, x, channel, column)` for an input in blocks of `block` channels.
    pub(crate) fn new(
        kernel: [usize; 2],
        [stored, block]: [usize; 2],
        bias: &[f32],
        of: impl Fn(usize, usize, usize, usize) -> f32,
    ) -> Self {
        let columns = bias.len();
        let mut bias = bias.to_vec();
        bias.resize(padded(columns), 0.0);
        let mut values = Vec::with_capacity(kernel[0] * kernel[1] * stored * bias.len());
        for first in (0..bias.len()).step_by(BLOCK) {
            let own = first..bias.len().min(first + BLOCK);
            for row in 0..kernel[0] {
                for channels in (0..stored).step_by(block) {
                    for x in 0..kernel[1] {
                        for channel in channels..stored.min(channels + block) {
                            values.extend(own.clone().map(|column| match column < columns {
                                true => of(row, x, channel, column),
                                false => 0.0,
                            }));
                        }
                    }
                }
            }
        }
        Self {
            values: values.into(),
            bias,
            kernel,
            stored,
            columns,
        }
    }

    /// The weights of some columns.
    pub(crate) fn with_columns(&self, columns: &[usize]) -> Self {
        let depth = self.depth();
        let stored = self.bias.len();
        let mut values = Vec::with_capacity(depth * padded(columns.len()));
        let mut bias: Vec<f32> = columns.iter().map(|column| self.bias[*column]).collect();
        bias.resize(padded(columns.len()), 0.0);
        for own in columns.chunks(BLOCK) {
            for k in 0..depth {
                values.extend(own.iter().map(|column| {
                    let first = column - column % BLOCK;
                    let lanes = BLOCK.min(stored - first);
                    self.values[first * depth + k * lanes + column - first]
                }));
                values.resize(values.len() + padded(own.len()) - own.len(), 0.0);
            }
        }
        Self {
            values: values.into(),
            bias,
            columns: columns.len(),
            ..*self
        }
    }

    /// Takes a matrix, which is a row of pixels, as weights, and a pixel of ones behind it.
    pub(crate) fn take_matrix(&mut self, matrix: &[f32], layout: &Layout) {
        let depth = layout.width + 1;
        self.bias.clear();
        self.bias.resize(layout.stored, 0.0);
        (self.kernel, self.stored, self.columns) = ([1; 2], depth, layout.stored);
        let length = depth * layout.stored;
        if self.values.len() < length {
            self.values = vec![0.0; length].into();
        }
        for first in layout.blocks() {
            let (own, lanes) = (layout.inner(first), layout.lanes(first));
            let values = &mut self.values[first * depth..][..own.len() + lanes];
            let (pixels, ones) = values.split_at_mut(own.len());
            pixels.copy_from_slice(&matrix[own]);
            ones.fill(1.0);
        }
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Number of weights of a column.
    pub(crate) fn depth(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.stored
    }

    /// Channels of the input in memory.
    pub(crate) fn stored(&self) -> usize {
        self.stored
    }

    /// Number of packed weights.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Computes rows of pixels, which begin at `starts` in `output` and lie as `layout` says. `row` has the
/// rows of the image for all of them. Where a block begins before column `added`, the numbers that are
/// already there are added before the activation.
pub(crate) fn run<S: Simd>(
    simd: S,
    row: &Row<'_>,
    weights: &Weights,
    (activation, added): (&Activation, usize),
    (output, starts, layout): (&mut [f32], &[usize], &Layout),
) {
    let depth = weights.depth();
    let tile = |lines, first: usize| Tile {
        row,
        lines,
        kernel: weights.kernel,
        values: &weights.values[first * depth..],
        bias: &weights.bias[first..],
        activation,
        added,
        first,
    };
    let whole = match starts.len() > 1 && layout.width < SHORT {
        true => 0,
        false => layout.width - layout.width % GROUP,
    };
    for (lines, start) in row.rows.chunks_exact(weights.kernel[0]).zip(starts) {
        let output = &mut output[*start..][..layout.len()];
        simd.vectorize(
            #[inline(always)]
            || {
                for start in (0..whole).step_by(SPAN) {
                    let span = [start, whole.min(start + SPAN)];
                    for first in layout.blocks() {
                        let tile = tile(lines, first);
                        let output = &mut output[layout.inner(first)];
                        match (layout.lanes(first) == LANES, S::f32s::LEN >= BLOCK) {
                            (true, true) => {
                                tile.pixels::<S, f32x8<S>, 16, 8, 1>(simd, span, output)
                            }
                            (true, false) => {
                                tile.pixels::<S, f32x8<S>, 12, 8, 1>(simd, span, output)
                            }
                            (false, true) => {
                                tile.pixels::<S, f32x16<S>, 8, 8, 1>(simd, span, output)
                            }
                            (false, false) => {
                                tile.pixels::<S, f32x8<S>, 6, 4, 2>(simd, span, output)
                            }
                        }
                    }
                }
            },
        );
    }
    if whole == layout.width {
        return;
    }
    // This is a separate function because the compiler made other pixels slower when it was part of
    // the loops above.
    simd.vectorize(
        #[inline(always)]
        || {
            let rest = Rest {
                starts,
                layout,
                whole,
            };
            let pixels = (layout.width - whole) * starts.len();
            let (groups, count) = (pixels / ACROSS, pixels % ACROSS);
            let mut at = [0, whole];
            for first in layout.blocks().filter(|_| pixels > FEW) {
                let tile = tile(row.rows, first);
                at = [0, whole];
                for _ in 0..groups {
                    at = tile.across(simd, &rest, at, output);
                }
                if count > FEW {
                    tile.last(simd, &rest, (at, count), output);
                }
            }
            let mut first = 0;
            while (1..=FEW).contains(&count) && first < layout.stored {
                first += tile(row.rows, first).last(simd, &rest, (at, count), output);
            }
        },
    );
}

/// The pixels from `whole` on of all rows.
struct Rest<'a> {
    /// Where the rows begin in the output.
    starts: &'a [usize],
    layout: &'a Layout,
    whole: usize,
}

impl Rest<'_> {
    /// The place behind the pixel in this row and column.
    fn next(&self, [row, x]: [usize; 2]) -> [usize; 2] {
        match x + 1 < self.layout.width {
            true => [row, x + 1],
            false => [row + 1, self.whole],
        }
    }
}

/// A block of columns.
struct Tile<'a> {
    row: &'a Row<'a>,
    /// The rows of the image for one row of pixels, or for all of them.
    lines: &'a [&'a [f32]],
    /// Rows and columns of the kernel.
    kernel: [usize; 2],
    values: &'a [f32],
    bias: &'a [f32],
    activation: &'a Activation,
    /// The numbers in the output are added to blocks that begin before this column.
    added: usize,
    /// The first column.
    first: usize,
}

impl Tile<'_> {
    /// Computes the pixels in `span`, `P` at a time, or `R` from an input that comes with its channels
    /// first. A block of columns has `Q` vectors. The number of pixels is a multiple of [`GROUP`].
    #[inline(always)]
    fn pixels<S: Simd, V: Vector<S>, const P: usize, const R: usize, const Q: usize>(
        &self,
        simd: S,
        span: [usize; 2],
        output: &mut [f32],
    ) {
        let Row { layout, stride, .. } = self.row;
        match (layout.block, self.kernel[1], stride) {
            (BLOCK, _, 1) => self.windows::<S, V, P, Q, 1>(simd, span, output),
            (BLOCK, _, 2) => self.windows::<S, V, P, Q, 2>(simd, span, output),
            (1, 3, 2) => self.planes::<S, V, R, Q, 3, 2>(simd, span, output),
            (1, 5, 2) => self.planes::<S, V, R, Q, 5, 2>(simd, span, output),
            _ => {
                let [mut at, end] = span;
                while at + P <= end {
                    self.compute::<S, V, P, Q>(simd, at, output);
                    at += P;
                }
                while at + 2 <= end {
                    self.compute::<S, V, 2, Q>(simd, at, output);
                    at += 2;
                }
            }
        }
    }

    /// Computes pixels from an image in blocks of channels, `P` at a time if possible. The last ones
    /// are divided so that there are enough sums to compute at a time.
    #[inline(always)]
    fn windows<S: Simd, V: Vector<S>, const P: usize, const Q: usize, const STRIDE: usize>(
        &self,
        simd: S,
        [mut at, end]: [usize; 2],
        output: &mut [f32],
    ) {
        while at < end {
            let left = end - at;
            if left >= P && !(P == 6 && left == 8) {
                self.window::<S, V, P, Q, STRIDE>(simd, at, output);
                at += P;
            } else if P > 8 && left >= 8 {
                self.window::<S, V, 8, Q, STRIDE>(simd, at, output);
                at += 8;
            } else {
                self.window::<S, V, GROUP, Q, STRIDE>(simd, at, output);
                at += GROUP;
            }
        }
    }

    /// Computes pixels from an input that comes with its channels first, `R` at a time if possible.
    #[inline(always)]
    fn planes<
        S: Simd,
        V: Vector<S>,
        const R: usize,
        const Q: usize,
        const K: usize,
        const STRIDE: usize,
    >(
        &self,
        simd: S,
        [mut at, end]: [usize; 2],
        output: &mut [f32],
    ) {
        while at + R <= end {
            self.planar::<S, V, R, Q, K, STRIDE>(simd, at, output);
            at += R;
        }
        while at < end {
            self.planar::<S, V, GROUP, Q, K, STRIDE>(simd, at, output);
            at += GROUP;
        }
    }

    /// Computes [`ACROSS`] pixels from `at` on of a block of columns. Returns the place behind them.
    #[inline(always)]
    fn across<S: Simd>(
        &self,
        simd: S,
        rest: &Rest<'_>,
        at: [usize; 2],
        output: &mut [f32],
    ) -> [usize; 2] {
        match (
            rest.layout.lanes(self.first) == LANES,
            S::f32s::LEN >= BLOCK,
        ) {
            (true, _) => self.few::<S, f32x8<S>, ACROSS, 1, LANES, 1>(simd, rest, at, output),
            (false, true) => self.few::<S, f32x16<S>, ACROSS, 1, BLOCK, 1>(simd, rest, at, output),
            (false, false) => self.few::<S, f32x8<S>, ACROSS, 1, BLOCK, 2>(simd, rest, at, output),
        }
    }

    /// Computes the last `count` pixels, which begin at `at`, for a block of columns. If they are few,
    /// computes them for several blocks, so that enough sums are computed at a time. Returns the number
    /// of columns.
    #[inline(always)]
    fn last<S: Simd>(
        &self,
        simd: S,
        rest: &Rest<'_>,
        last: ([usize; 2], usize),
        output: &mut [f32],
    ) -> usize {
        match (
            rest.layout.lanes(self.first) == LANES,
            S::f32s::LEN >= BLOCK,
        ) {
            (true, _) => self.last_of_one::<S, f32x8<S>, LANES, 1>(simd, rest, last, output),
            (false, true) => self.last_of::<S, f32x16<S>, 8, 4, 1>(simd, rest, last, output),
            (false, false) => self.last_of::<S, f32x8<S>, 4, 2, 2>(simd, rest, last, output),
        }
    }

    /// [`Self::last`] for blocks of `Q` vectors: one pixel for `B` blocks, or two pixels for `D` blocks, if
    /// there are as many.
    #[inline(always)]
    fn last_of<S: Simd, V: Vector<S>, const B: usize, const D: usize, const Q: usize>(
        &self,
        simd: S,
        rest: &Rest<'_>,
        (at, count): ([usize; 2], usize),
        output: &mut [f32],
    ) -> usize {
        let left = (rest.layout.stored - self.first) / BLOCK;
        if count == 1 && left >= B {
            self.few::<S, V, 1, B, BLOCK, Q>(simd, rest, at, output);
            B * BLOCK
        } else if count == 2 && left >= D {
            self.few::<S, V, 2, D, BLOCK, Q>(simd, rest, at, output);
            D * BLOCK
        } else {
            self.last_of_one::<S, V, BLOCK, Q>(simd, rest, (at, count), output)
        }
    }

    /// [`Self::last`] for one block of `C` columns, which has `Q` vectors.
    #[inline(always)]
    fn last_of_one<S: Simd, V: Vector<S>, const C: usize, const Q: usize>(
        &self,
        simd: S,
        rest: &Rest<'_>,
        (at, count): ([usize; 2], usize),
        output: &mut [f32],
    ) -> usize {
        match count {
            1 => self.few::<S, V, 1, 1, C, Q>(simd, rest, at, output),
            2 => self.few::<S, V, 2, 1, C, Q>(simd, rest, at, output),
            3 => self.few::<S, V, 3, 1, C, Q>(simd, rest, at, output),
            4 => self.few::<S, V, 4, 1, C, Q>(simd, rest, at, output),
            _ => self.few::<S, V, 5, 1, C, Q>(simd, rest, at, output),
        };
        C
    }

    /// Computes `P` pixels from `at` on of `B` blocks of columns. Returns the place behind them.
    #[inline(always)]
    fn few<
        S: Simd,
        V: Vector<S>,
        const P: usize,
        const B: usize,
        const C: usize,
        const Q: usize,
    >(
        &self,
        simd: S,
        rest: &Rest<'_>,
        mut at: [usize; 2],
        output: &mut [f32],
    ) -> [usize; 2] {
        let Row {
            layout: input,
            first,
            stride,
            ..
        } = self.row;
        let [height, width] = self.kernel;
        let mut places = [at; P];
        for place in &mut places {
            *place = at;
            at = rest.next(at);
        }
        let depth = height * width * input.stored;
        let values = self.values.as_chunks::<C>().0;
        let mut sums = [[[V::splat(simd, 0.0); Q]; P]; B];
        for (b, sums) in sums.iter_mut().enumerate() {
            *sums = bias::<S, V, P, Q>(simd, &self.bias[b * C..]);
        }
        // The blocks of a row of one pixel follow one another.
        let lanes = match input.whole() {
            1 => input.stored,
            _ => input.block,
        };
        let (size, count) = (input.piece(0).len(), input.stored / lanes);
        let mut weights = [values; B];
        for (b, weights) in weights.iter_mut().enumerate() {
            *weights = &values[b * depth..];
        }
        let blocks = count + usize::from(input.stored % lanes > 0);
        for line in 0..height {
            let mut near = [&self.values[..0]; P];
            for block in 0..blocks {
                let lanes = if block < count { lanes } else { LANES };
                if block == 0 || block == count {
                    for (near, [row, x]) in near.iter_mut().zip(places) {
                        let line = &self.lines[row * height + line][block * size..];
                        *near = &line[(first + x * stride) * lanes..];
                    }
                } else {
                    // Finding all positions again for each block made short rows a quarter slower.
                    for near in &mut near {
                        *near = &near[size..];
                    }
                }
                let count = width * lanes;
                add_pieces::<S, V, P, B, C, Q>(simd, weights, near, count, &mut sums);
                for weights in &mut weights {
                    *weights = &weights[count..];
                }
            }
        }
        // This loop is not unrolled. Without a copy, the sums would lie in memory from the start.
        let finished = sums;
        for (b, sums) in finished.iter().enumerate() {
            let first = self.first + b * C;
            let inner = rest.layout.inner(first).start;
            let place = |p: usize| rest.starts[places[p][0]] + inner + places[p][1] * C;
            self.store_at(simd, *sums, place, (first, &mut *output));
        }
        at
    }

    /// Computes the `P` pixels from `at` on from an image in blocks of channels.
    #[inline(always)]
    fn window<S: Simd, V: Vector<S>, const P: usize, const Q: usize, const STRIDE: usize>(
        &self,
        simd: S,
        at: usize,
        output: &mut [f32],
    ) {
        let mut sums = bias::<S, V, P, Q>(simd, self.bias);
        let layout = &self.row.layout;
        let (block, first) = (BLOCK * layout.whole(), self.row.first + at * STRIDE);
        let mut values = self.values;
        for row in self.lines {
            let mut rest = &row[..layout.len()];
            while rest.len() >= block {
                let (piece, others) = rest.split_at(block);
                rest = others;
                for x in first..first + self.kernel[1] {
                    let (own, others) = values.split_at(BLOCK * Q * V::LEN);
                    values = others;
                    add_block::<S, V, P, Q, BLOCK, STRIDE>(simd, own, piece, x, &mut sums);
                }
            }
            if rest.is_empty() {
                continue;
            }
            for x in first..first + self.kernel[1] {
                let (own, others) = values.split_at(LANES * Q * V::LEN);
                values = others;
                add_block::<S, V, P, Q, LANES, STRIDE>(simd, own, rest, x, &mut sums);
            }
        }
        self.store(simd, sums, at, output);
    }

    /// Computes the `P` pixels from `at` on from an input that comes with its channels first.
    #[inline(always)]
    fn planar<
        S: Simd,
        V: Vector<S>,
        const P: usize,
        const Q: usize,
        const K: usize,
        const STRIDE: usize,
    >(
        &self,
        simd: S,
        at: usize,
        output: &mut [f32],
    ) {
        let mut sums = bias::<S, V, P, Q>(simd, self.bias);
        let mut values = self.values;
        let layout = &self.row.layout;
        let first = self.row.first + at * STRIDE;
        for row in self.lines {
            for line in row.chunks_exact(layout.whole()).take(layout.stored) {
                let near = &line[first..][..(P - 1) * STRIDE + K];
                let own = values.split_at(K * Q * V::LEN);
                values = own.1;
                for k in 0..K {
                    let mut inputs = [0.0; P];
                    for p in 0..P {
                        inputs[p] = near[p * STRIDE + k];
                    }
                    add::<S, V, P, Q>(
                        simd,
                        &own.0[k * Q * V::LEN..][..Q * V::LEN],
                        inputs,
                        &mut sums,
                    );
                }
            }
        }
        self.store(simd, sums, at, output);
    }

    /// Computes the `P` pixels from `at` on.
    #[inline(always)]
    fn compute<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(
        &self,
        simd: S,
        at: usize,
        output: &mut [f32],
    ) {
        let Row {
            layout,
            first,
            stride,
            ..
        } = self.row;
        let mut sums = bias::<S, V, P, Q>(simd, self.bias);
        let mut values = self.values;
        for row in self.lines {
            for channel in layout.blocks() {
                let lanes = layout.lanes(channel);
                let depth = self.kernel[1] * lanes;
                let near = &row[layout.piece(channel)][(first + at * stride) * lanes..];
                let mut pixels = [&row[..0]; P];
                for (p, pixel) in pixels.iter_mut().enumerate() {
                    *pixel = &near[p * stride * lanes..][..depth];
                }
                let own = values.split_at(depth * Q * V::LEN);
                values = own.1;
                for (k, weights) in own.0.chunks_exact(Q * V::LEN).enumerate() {
                    let mut inputs = [0.0; P];
                    for p in 0..P {
                        inputs[p] = pixels[p][k];
                    }
                    add::<S, V, P, Q>(simd, weights, inputs, &mut sums);
                }
            }
        }
        self.store(simd, sums, at, output);
    }

    /// Stores the sums of the pixels from `at` on.
    #[inline(always)]
    fn store<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(
        &self,
        simd: S,
        sums: [[V; Q]; P],
        at: usize,
        output: &mut [f32],
    ) {
        let output = &mut output[at * Q * V::LEN..][..P * Q * V::LEN];
        self.store_at(simd, sums, |p| p * Q * V::LEN, (self.first, output));
    }

    /// Stores the sums of pixels at their places in the output.
    #[inline(always)]
    fn store_at<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(
        &self,
        simd: S,
        mut sums: [[V; Q]; P],
        place: impl Fn(usize) -> usize,
        (first, output): (usize, &mut [f32]),
    ) {
        if first < self.added {
            for (p, sums) in sums.iter_mut().enumerate() {
                for (q, sum) in sums.iter_mut().enumerate() {
                    let place = place(p) + q * V::LEN;
                    *sum += V::from_slice(simd, &output[place..][..V::LEN]);
                }
            }
        }
        finish::<S, V, P, Q>(simd, sums, self.activation, first, |p, q, x| {
            x.store_slice(&mut output[place(p) + q * V::LEN..][..V::LEN]);
        });
    }
}

/// The bias as the first summand of each pixel.
#[inline(always)]
fn bias<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(
    simd: S,
    bias: &[f32],
) -> [[V; Q]; P] {
    let mut sums = [[V::splat(simd, 0.0); Q]; P];
    for q in 0..Q {
        let bias = V::from_slice(simd, &bias[q * V::LEN..][..V::LEN]);
        for sums in &mut sums {
            sums[q] = bias;
        }
    }
    sums
}

/// Adds the products of `C` channels of `P` pixels, `STRIDE` apart, from `at` on. All positions are
/// compile-time constants, which matters if there is little to add.
#[inline(always)]
fn add_block<
    S: Simd,
    V: Vector<S>,
    const P: usize,
    const Q: usize,
    const C: usize,
    const STRIDE: usize,
>(
    simd: S,
    weights: &[f32],
    row: &[f32],
    at: usize,
    sums: &mut [[V; Q]; P],
) {
    let pixels = &row.as_chunks::<C>().0[at..][..(P - 1) * STRIDE + 1];
    for (k, weights) in weights.chunks_exact(Q * V::LEN).enumerate().take(C) {
        let mut inputs = [0.0; P];
        for p in 0..P {
            inputs[p] = pixels[p * STRIDE][k];
        }
        add::<S, V, P, Q>(simd, weights, inputs, sums);
    }
}

/// Adds the products of the first `count` inputs of `P` pieces and the weights of `B` blocks of columns.
#[inline(always)]
fn add_pieces<
    S: Simd,
    V: Vector<S>,
    const P: usize,
    const B: usize,
    const C: usize,
    const Q: usize,
>(
    simd: S,
    mut weights: [&[[f32; C]]; B],
    mut pieces: [&[f32]; P],
    count: usize,
    sums: &mut [[[V; Q]; P]; B],
) {
    for weights in &mut weights {
        *weights = &weights[..count];
    }
    for piece in &mut pieces {
        *piece = &piece[..count];
    }
    for k in 0..count {
        let mut inputs = [0.0; P];
        for p in 0..P {
            inputs[p] = pieces[p][k];
        }
        for b in 0..B {
            add::<S, V, P, Q>(simd, &weights[b][k], inputs, &mut sums[b]);
        }
    }
}

/// Adds the products of an input of each pixel and its weights.
#[inline(always)]
fn add<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(
    simd: S,
    weights: &[f32],
    inputs: [f32; P],
    sums: &mut [[V; Q]; P],
) {
    let mut vectors = [V::splat(simd, 0.0); Q];
    for q in 0..Q {
        vectors[q] = V::from_slice(simd, &weights[q * V::LEN..][..V::LEN]);
    }
    for p in 0..P {
        let x = V::splat(simd, inputs[p]);
        for q in 0..Q {
            sums[p][q] = x.mul_add(vectors[q], sums[p][q]);
        }
    }
}
