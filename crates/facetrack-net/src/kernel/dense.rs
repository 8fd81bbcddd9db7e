// SPDX-License-Identifier: MPL-2.0
//! Convolutions whose outputs depend on all channels, and products of matrices.

use fearless_simd::{Simd, f32x8, f32x16, prelude::*};

use super::{Activation, BLOCK, LANES, Layout, Row, Vector, finish, padded};

/// Pixels for which all columns are computed before the next ones, a multiple of the pixels that are
/// computed together: their inputs stay in the first cache.
const SPAN: usize = 48;

/// Pixels of a group. The last group of a row may have fewer.
const GROUP: usize = 4;

/// Weights in the order of reading. The outer loops come first: blocks of columns, rows of the
/// kernel, blocks of channels, pixels of the kernel, channels, columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weights {
    values: Vec<f32>,
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
            values,
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
            values,
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
        self.values.clear();
        for first in layout.blocks() {
            self.values.extend_from_slice(&matrix[layout.inner(first)]);
            let lanes = layout.lanes(first);
            self.values.resize(self.values.len() + lanes, 1.0);
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

/// Computes a row into `output`, whose pixels lie as `layout` says. If `adds`, the numbers that are
/// already there are added before the activation.
pub(crate) fn run<S: Simd>(
    simd: S,
    row: &Row<'_>,
    weights: &Weights,
    (activation, adds): (&Activation, bool),
    (output, layout): (&mut [f32], &Layout),
) {
    let depth = weights.depth();
    let tile = |first: usize, start: usize, end: usize| Tile {
        row,
        span: [start, end],
        width: weights.kernel[1],
        values: &weights.values[first * depth..],
        bias: &weights.bias[first..],
        activation,
        adds,
        first,
    };
    let whole = layout.width - layout.width % GROUP;
    simd.vectorize(
        #[inline(always)]
        || {
            for start in (0..whole).step_by(SPAN) {
                for first in layout.blocks() {
                    let tile = tile(first, start, whole.min(start + SPAN));
                    let output = &mut output[layout.inner(first)];
                    match (layout.lanes(first) == LANES, S::f32s::LEN >= BLOCK) {
                        (true, true) => tile.pixels::<S, f32x8<S>, 16, 8, 1>(simd, output),
                        (true, false) => tile.pixels::<S, f32x8<S>, 12, 8, 1>(simd, output),
                        (false, true) => tile.pixels::<S, f32x16<S>, 8, 8, 1>(simd, output),
                        (false, false) => tile.pixels::<S, f32x8<S>, 6, 4, 2>(simd, output),
                    }
                }
            }
        },
    );
    if whole == layout.width {
        return;
    }
    // This is a separate function because the compiler made other pixels slower when it was part of
    // the loops above.
    simd.vectorize(
        #[inline(always)]
        || {
            let mut first = 0;
            while first < layout.stored {
                let tile = tile(first, whole, layout.width);
                let output = (&mut *output, layout);
                first += match (layout.lanes(first) == LANES, S::f32s::LEN >= BLOCK) {
                    (true, _) => tile.last::<S, f32x8<S>, LANES, 1>(simd, output),
                    (false, true) => tile.last::<S, f32x16<S>, BLOCK, 1>(simd, output),
                    (false, false) => tile.last::<S, f32x8<S>, BLOCK, 2>(simd, output),
                };
            }
        },
    );
}

/// A block of columns.
struct Tile<'a> {
    row: &'a Row<'a>,
    /// The first pixel to compute, and the one behind the last.
    span: [usize; 2],
    /// Columns of the kernel.
    width: usize,
    values: &'a [f32],
    bias: &'a [f32],
    activation: &'a Activation,
    adds: bool,
    /// The first column.
    first: usize,
}

impl Tile<'_> {
    /// Computes `P` pixels at a time, or `R` from an input that comes with its channels first. A block
    /// of columns has `Q` vectors. The number of pixels is a multiple of [`GROUP`].
    #[inline(always)]
    fn pixels<S: Simd, V: Vector<S>, const P: usize, const R: usize, const Q: usize>(
        &self,
        simd: S,
        output: &mut [f32],
    ) {
        let Row { layout, stride, .. } = self.row;
        match (layout.block, self.width, stride) {
            (BLOCK, _, 1) => self.windows::<S, V, P, Q, 1>(simd, output),
            (BLOCK, _, 2) => self.windows::<S, V, P, Q, 2>(simd, output),
            (1, 3, 2) => self.planes::<S, V, R, Q, 3, 2>(simd, output),
            (1, 5, 2) => self.planes::<S, V, R, Q, 5, 2>(simd, output),
            _ => {
                let [mut at, end] = self.span;
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
        output: &mut [f32],
    ) {
        let [mut at, end] = self.span;
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
        output: &mut [f32],
    ) {
        let [mut at, end] = self.span;
        while at + R <= end {
            self.planar::<S, V, R, Q, K, STRIDE>(simd, at, output);
            at += R;
        }
        while at < end {
            self.planar::<S, V, GROUP, Q, K, STRIDE>(simd, at, output);
            at += GROUP;
        }
    }

    /// Computes the last pixels, fewer than [`GROUP`], of several blocks of `C` columns, so that enough
    /// sums are computed at a time. Returns the number of their columns.
    #[inline(always)]
    fn last<S: Simd, V: Vector<S>, const C: usize, const Q: usize>(
        &self,
        simd: S,
        output: (&mut [f32], &Layout),
    ) -> usize {
        let blocks = (output.1.stored - self.first) / C;
        match (self.span[1] - self.span[0], blocks) {
            (1, 8..) if Q == 1 => self.few::<S, V, 1, 8, C, Q>(simd, output),
            (1, 4..) => self.few::<S, V, 1, 4, C, Q>(simd, output),
            (1, 2..) => self.few::<S, V, 1, 2, C, Q>(simd, output),
            (1, _) => self.few::<S, V, 1, 1, C, Q>(simd, output),
            (2, 4..) if Q == 1 => self.few::<S, V, 2, 4, C, Q>(simd, output),
            (2, 2..) => self.few::<S, V, 2, 2, C, Q>(simd, output),
            (2, _) => self.few::<S, V, 2, 1, C, Q>(simd, output),
            (_, 2..) => self.few::<S, V, 3, 2, C, Q>(simd, output),
            _ => self.few::<S, V, 3, 1, C, Q>(simd, output),
        }
    }

    /// Computes the last `P` pixels of `B` blocks of columns.
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
        (output, layout): (&mut [f32], &Layout),
    ) -> usize {
        let Row {
            rows,
            layout: input,
            first,
            stride,
        } = *self.row;
        let at = self.span[0];
        let depth = rows.len() * self.width * input.stored;
        let values = self.values.as_chunks::<C>().0;
        let mut sums = [[[V::splat(simd, 0.0); Q]; P]; B];
        for (b, sums) in sums.iter_mut().enumerate() {
            *sums = bias::<S, V, P, Q>(simd, &self.bias[b * C..]);
        }
        let mut done = 0;
        for row in rows {
            for channel in input.blocks() {
                let lanes = input.lanes(channel);
                let count = self.width * lanes;
                let near = &row[input.piece(channel)][(first + at * stride) * lanes..];
                let mut pixels = [&row[..0]; P];
                for (p, pixel) in pixels.iter_mut().enumerate() {
                    *pixel = &near[p * stride * lanes..][..count];
                }
                let mut weights = [&values[..0]; B];
                for (b, weights) in weights.iter_mut().enumerate() {
                    *weights = &values[b * depth + done..][..count];
                }
                done += count;
                for k in 0..count {
                    let mut inputs = [0.0; P];
                    for p in 0..P {
                        inputs[p] = pixels[p][k];
                    }
                    for b in 0..B {
                        add::<S, V, P, Q>(simd, &weights[b][k], inputs, &mut sums[b]);
                    }
                }
            }
        }
        for (b, sums) in sums.iter().enumerate() {
            let first = self.first + b * C;
            self.store(simd, *sums, at, (first, &mut output[layout.inner(first)]));
        }
        B * C
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
        for row in self.row.rows {
            let mut rest = &row[..layout.len()];
            while rest.len() >= block {
                let (piece, others) = rest.split_at(block);
                rest = others;
                for x in first..first + self.width {
                    let (own, others) = values.split_at(BLOCK * Q * V::LEN);
                    values = others;
                    add_block::<S, V, P, Q, BLOCK, STRIDE>(simd, own, piece, x, &mut sums);
                }
            }
            if rest.is_empty() {
                continue;
            }
            for x in first..first + self.width {
                let (own, others) = values.split_at(LANES * Q * V::LEN);
                values = others;
                add_block::<S, V, P, Q, LANES, STRIDE>(simd, own, rest, x, &mut sums);
            }
        }
        self.store(simd, sums, at, (self.first, output));
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
        for row in self.row.rows {
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
        self.store(simd, sums, at, (self.first, output));
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
            rows,
            layout,
            first,
            stride,
        } = *self.row;
        let mut sums = bias::<S, V, P, Q>(simd, self.bias);
        let mut values = self.values;
        for row in rows {
            for channel in layout.blocks() {
                let lanes = layout.lanes(channel);
                let depth = self.width * lanes;
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
        self.store(simd, sums, at, (self.first, output));
    }

    /// Stores the sums of the pixels from `at` on.
    #[inline(always)]
    fn store<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(
        &self,
        simd: S,
        mut sums: [[V; Q]; P],
        at: usize,
        (first, output): (usize, &mut [f32]),
    ) {
        let output = &mut output[at * Q * V::LEN..][..P * Q * V::LEN];
        if self.adds {
            for p in 0..P {
                for q in 0..Q {
                    sums[p][q] += V::from_slice(simd, &output[(p * Q + q) * V::LEN..][..V::LEN]);
                }
            }
        }
        finish::<S, V, P, Q>(simd, sums, self.activation, first, |p, q, x| {
            x.store_slice(&mut output[(p * Q + q) * V::LEN..][..V::LEN]);
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
