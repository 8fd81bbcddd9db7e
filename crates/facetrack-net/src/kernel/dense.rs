// SPDX-License-Identifier: MPL-2.0
//! Convolutions whose outputs depend on all channels, and products of matrices.

use std::ops::Range;

use fearless_simd::{Simd, f32x8, f32x16, prelude::*};

use super::{Activation, BLOCK, LANES, Layout, Row, Vector, finish, padded};

/// Pixels for which all columns are computed before the next ones, a multiple of the pixels that are
/// computed together: their inputs stay in the first cache.
const SPAN: usize = 48;

/// Weights in the order of reading. The outer loops come first: blocks of columns, rows of the
/// kernel, blocks of channels, pixels of the kernel, channels, columns.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    values: Vec<f32>,
    /// One for each column.
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
    pub fn new(
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

    /// Takes a matrix, which is a row of pixels, as weights, and a pixel of ones behind it.
    pub fn take_matrix(&mut self, matrix: &[f32], layout: &Layout) {
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
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Channels of the input in memory.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// Bytes of all weights.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.values[..])
    }
}

/// Computes a row into `output`, whose pixels lie as `layout` says. If `adds`, the numbers that are
/// already there are added before the activation.
pub fn run<S: Simd>(
    simd: S,
    row: &Row<'_>,
    weights: &Weights,
    (activation, adds): (&Activation, bool),
    (output, layout): (&mut [f32], &Layout),
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let depth = weights.kernel[0] * weights.kernel[1] * weights.stored;
            for start in (0..layout.width).step_by(SPAN) {
                let span = start..layout.width.min(start + SPAN);
                for (first, values) in layout.blocks().zip(weights.values.chunks(depth * BLOCK)) {
                    let tile = Tile {
                        row,
                        span: span.clone(),
                        width: weights.kernel[1],
                        values,
                        bias: &weights.bias[first..],
                        activation,
                        adds,
                        first,
                    };
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
}

/// A block of columns.
struct Tile<'a> {
    row: &'a Row<'a>,
    /// The pixels to compute.
    span: Range<usize>,
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
    /// of columns has `Q` vectors.
    #[inline(always)]
    fn pixels<S: Simd, V: Vector<S>, const P: usize, const R: usize, const Q: usize>(
        &self,
        simd: S,
        output: &mut [f32],
    ) {
        let Row {
            rows,
            layout,
            stride,
            ..
        } = self.row;
        let Range { start, end } = self.span;
        let mut at = start;
        match (layout.block, rows.len(), self.width, stride) {
            (BLOCK, 1, 1, 1) => {
                while at + P <= end {
                    self.pointwise::<S, V, P, Q>(simd, at, output);
                    at += P;
                }
                while at + 4 <= end {
                    self.pointwise::<S, V, 4, Q>(simd, at, output);
                    at += 4;
                }
            }
            (1, _, 3, 2) => {
                while at + R <= end {
                    self.planar::<S, V, R, Q, 3, 2>(simd, at, output);
                    at += R;
                }
            }
            (1, _, 5, 2) => {
                while at + R <= end {
                    self.planar::<S, V, R, Q, 5, 2>(simd, at, output);
                    at += R;
                }
            }
            _ => {
                while at + P <= end {
                    self.compute::<S, V, P, Q>(simd, at, output);
                    at += P;
                }
            }
        }
        while at + 4 <= end {
            self.compute::<S, V, 4, Q>(simd, at, output);
            at += 4;
        }
        while at + 2 <= end {
            self.compute::<S, V, 2, Q>(simd, at, output);
            at += 2;
        }
        if at < end {
            self.compute::<S, V, 1, Q>(simd, at, output);
        }
    }

    /// The bias as the first summand of each pixel.
    #[inline(always)]
    fn bias<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(&self, simd: S) -> [[V; Q]; P] {
        let mut sums = [[V::splat(simd, 0.0); Q]; P];
        for q in 0..Q {
            let bias = V::from_slice(simd, &self.bias[q * V::LEN..][..V::LEN]);
            for sums in &mut sums {
                sums[q] = bias;
            }
        }
        sums
    }

    /// Computes the `P` pixels from `at` on from single pixels.
    #[inline(always)]
    fn pointwise<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(
        &self,
        simd: S,
        at: usize,
        output: &mut [f32],
    ) {
        let mut sums = self.bias::<S, V, P, Q>(simd);
        let layout = &self.row.layout;
        let mut values = self.values;
        for first in layout.blocks() {
            let row = &self.row.rows[0][layout.piece(first)];
            let at = self.row.first + at;
            let own = values.split_at(layout.lanes(first) * Q * V::LEN);
            values = own.1;
            if layout.lanes(first) == BLOCK {
                add_block::<S, V, P, Q, BLOCK>(simd, own.0, row, at, &mut sums);
            } else {
                add_block::<S, V, P, Q, LANES>(simd, own.0, row, at, &mut sums);
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
        let mut sums = self.bias::<S, V, P, Q>(simd);
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
            rows,
            layout,
            first,
            stride,
        } = *self.row;
        let mut sums = self.bias::<S, V, P, Q>(simd);
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
        self.store(simd, sums, at, output);
    }

    /// Stores the sums of the pixels from `at` on.
    #[inline(always)]
    fn store<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(
        &self,
        simd: S,
        mut sums: [[V; Q]; P],
        at: usize,
        output: &mut [f32],
    ) {
        let output = &mut output[at * Q * V::LEN..][..P * Q * V::LEN];
        if self.adds {
            for p in 0..P {
                for q in 0..Q {
                    sums[p][q] += V::from_slice(simd, &output[(p * Q + q) * V::LEN..][..V::LEN]);
                }
            }
        }
        finish::<S, V, P, Q>(simd, sums, self.activation, self.first, |p, q, x| {
            x.store_slice(&mut output[(p * Q + q) * V::LEN..][..V::LEN]);
        });
    }
}

/// Adds the products of `C` channels of each of the pixels from `at` on. All places are known then,
/// which matters if there is little to add.
#[inline(always)]
fn add_block<S: Simd, V: Vector<S>, const P: usize, const Q: usize, const C: usize>(
    simd: S,
    weights: &[f32],
    row: &[f32],
    at: usize,
    sums: &mut [[V; Q]; P],
) {
    let pixels = row.as_chunks::<C>().0[at..].first_chunk::<P>();
    let Some(pixels) = pixels else {
        return;
    };
    for (k, weights) in weights.chunks_exact(Q * V::LEN).enumerate().take(C) {
        let mut inputs = [0.0; P];
        for p in 0..P {
            inputs[p] = pixels[p][k];
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
