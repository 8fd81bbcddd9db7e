// SPDX-License-Identifier: MPL-2.0
//! Convolutions in which each output depends on all channels, and products of matrices.

use std::ops::Range;

use fearless_simd::{Simd, f32x8, f32x16, prelude::*};

use super::{
    Activation, CLIP, HARD_SWISH, LANES, LINEAR, PRELU, Vector, activated, padded, with_activation,
};

/// Columns that are computed together.
const BLOCK: usize = 2 * LANES;

/// Pixels for which all columns are computed before the next ones, a multiple of the pixels that are
/// computed together: their inputs stay in the first cache.
const SPAN: usize = 48;

/// Weights in the order in which they are read: for each block of columns, for each row of the
/// kernel, for each input, the weights of the columns.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    values: Vec<f32>,
    /// One for each column.
    bias: Vec<f32>,
    /// Rows of the kernel.
    rows: usize,
    /// Inputs in a row of the kernel, in memory.
    depth: usize,
    /// Columns, without those that fill the last vector.
    columns: usize,
}

impl Weights {
    /// Packs the weights `of(row, input, column)`.
    pub fn new(
        rows: usize,
        depth: usize,
        bias: &[f32],
        of: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let columns = bias.len();
        let mut weights = Self {
            bias: bias.to_vec(),
            rows,
            depth,
            columns,
            ..Self::default()
        };
        weights.bias.resize(padded(columns), 0.0);
        weights.pack(of);
        weights
    }

    /// Replaces the weights.
    pub fn pack(&mut self, of: impl Fn(usize, usize, usize) -> f32) {
        let stored = self.bias.len();
        self.values.clear();
        for first in (0..stored).step_by(BLOCK) {
            let block = first..stored.min(first + BLOCK);
            for row in 0..self.rows {
                for input in 0..self.depth {
                    let of = |column| match column < self.columns {
                        true => of(row, input, column),
                        false => 0.0,
                    };
                    self.values.extend(block.clone().map(of));
                }
            }
        }
    }

    /// Takes the rows of `matrix`, which have `columns`, as weights, and ones up to `depth` rows.
    pub fn take_matrix(&mut self, depth: usize, columns: usize, matrix: &[f32]) {
        self.bias.clear();
        self.bias.resize(columns, 0.0);
        (self.rows, self.depth, self.columns) = (1, depth, columns);
        self.values.clear();
        for first in (0..columns).step_by(BLOCK) {
            let last = columns.min(first + BLOCK);
            for row in matrix.chunks_exact(columns) {
                self.values.extend_from_slice(&row[first..last]);
            }
            let rest = depth.saturating_sub(matrix.len() / columns) * (last - first);
            self.values.resize(self.values.len() + rest, 1.0);
        }
    }

    /// Rows of the kernel, times the channels of an input that comes with its channels first.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes of all weights.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.values[..])
    }
}

/// A row of pixels to compute.
pub struct Row<'a> {
    /// For each row of the kernel, the image from the first input of the first pixel on.
    pub rows: &'a [&'a [f32]],
    /// Floats between the inputs of neighbouring pixels.
    pub step: usize,
    /// Number of pixels.
    pub pixels: usize,
    /// Whether the numbers that are already in the output are added before the activation.
    pub adds: bool,
}

/// Computes `row` into `output`, whose pixels have the channels of `weights`.
pub fn run<S: Simd>(
    simd: S,
    row: &Row<'_>,
    weights: &Weights,
    activation: &Activation,
    output: &mut [f32],
) {
    match row.adds {
        false => with_activation!(
            activation,
            columns::<S, false>(simd, row, weights, activation, output)
        ),
        true => with_activation!(
            activation,
            columns::<S, true>(simd, row, weights, activation, output)
        ),
    }
}

fn columns<S: Simd, const ADD: bool, const ACT: u8>(
    simd: S,
    row: &Row<'_>,
    weights: &Weights,
    activation: &Activation,
    output: &mut [f32],
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let stored = weights.bias.len();
            let block = weights.rows * weights.depth * BLOCK;
            let blocks = || weights.values.chunks(block).enumerate();
            let spans = (0..row.pixels).step_by(SPAN);
            for (start, (index, values)) in
                spans.flat_map(|start| blocks().map(move |own| (start, own)))
            {
                let first = index * BLOCK;
                let tile = Tile {
                    row,
                    span: start..row.pixels.min(start + SPAN),
                    values,
                    bias: &weights.bias[first..],
                    slopes: activation.slopes().get(first..).unwrap_or_default(),
                    numbers: activation.numbers(),
                    depth: weights.depth,
                    first,
                    stored,
                };
                match (stored - first >= BLOCK, S::f32s::LEN >= BLOCK) {
                    (false, _) => tile.pixels::<S, f32x8<S>, 8, 1, ADD, ACT>(simd, output),
                    (true, true) => tile.pixels::<S, f32x16<S>, 8, 1, ADD, ACT>(simd, output),
                    (true, false) => tile.pixels::<S, f32x8<S>, 6, 2, ADD, ACT>(simd, output),
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
    values: &'a [f32],
    bias: &'a [f32],
    slopes: &'a [f32],
    numbers: [f32; 2],
    depth: usize,
    first: usize,
    stored: usize,
}

impl Tile<'_> {
    /// Computes all pixels, at most `P` together. A block of columns has `Q` vectors.
    #[inline(always)]
    fn pixels<
        S: Simd,
        V: Vector<S>,
        const P: usize,
        const Q: usize,
        const ADD: bool,
        const ACT: u8,
    >(
        &self,
        simd: S,
        output: &mut [f32],
    ) {
        let Range { start, end } = self.span;
        let whole = end - (end - start) % P;
        let is_pointwise = self.row.rows.len() == 1 && self.row.step == self.depth;
        match self.depth {
            8 if is_pointwise => {
                for at in (start..whole).step_by(P) {
                    self.compute::<S, V, P, Q, 8, ADD, ACT>(simd, at, output);
                }
            }
            16 if is_pointwise => {
                for at in (start..whole).step_by(P) {
                    self.compute::<S, V, P, Q, 16, ADD, ACT>(simd, at, output);
                }
            }
            _ => {
                for at in (start..whole).step_by(P) {
                    self.compute::<S, V, P, Q, 0, ADD, ACT>(simd, at, output);
                }
            }
        }
        let mut at = whole;
        if at + 4 <= end {
            self.compute::<S, V, 4, Q, 0, ADD, ACT>(simd, at, output);
            at += 4;
        }
        while at + 2 <= end {
            self.compute::<S, V, 2, Q, 0, ADD, ACT>(simd, at, output);
            at += 2;
        }
        if at < end {
            self.compute::<S, V, 1, Q, 0, ADD, ACT>(simd, at, output);
        }
    }

    /// Computes the `P` pixels from `at` on.
    #[inline(always)]
    fn compute<
        S: Simd,
        V: Vector<S>,
        const P: usize,
        const Q: usize,
        const D: usize,
        const ADD: bool,
        const ACT: u8,
    >(
        &self,
        simd: S,
        at: usize,
        output: &mut [f32],
    ) {
        let Row { rows, step, .. } = *self.row;
        let mut sums = [[V::splat(simd, 0.0); Q]; P];
        for q in 0..Q {
            let bias = V::from_slice(simd, &self.bias[q * V::LEN..][..V::LEN]);
            for sums in &mut sums {
                sums[q] = bias;
            }
        }
        if D > 0 {
            // All addresses are known, which matters if there is little to add.
            let pixels = rows[0][at * D..].as_chunks::<D>().0;
            if let Some(pixels) = pixels.first_chunk::<P>() {
                for (k, weights) in self.values[..D * Q * V::LEN]
                    .chunks_exact(Q * V::LEN)
                    .enumerate()
                    .take(D)
                {
                    let mut inputs = [0.0; P];
                    for p in 0..P {
                        inputs[p] = pixels[p][k];
                    }
                    add::<S, V, P, Q>(simd, weights, inputs, &mut sums);
                }
            }
        } else {
            let of_row = self.values.chunks_exact(self.depth * Q * V::LEN);
            for (row, values) in rows.iter().zip(of_row) {
                let mut pixels = [&row[..0]; P];
                for (p, pixel) in pixels.iter_mut().enumerate() {
                    *pixel = &row[(at + p) * step..][..self.depth];
                }
                for (k, weights) in values.chunks_exact(Q * V::LEN).enumerate() {
                    add::<S, V, P, Q>(simd, weights, pixels.map(|pixel| pixel[k]), &mut sums);
                }
            }
        }
        let mut slopes = [V::splat(simd, 0.0); Q];
        if ACT == PRELU {
            for (q, slopes) in slopes.iter_mut().enumerate() {
                *slopes = V::from_slice(simd, &self.slopes[q * V::LEN..][..V::LEN]);
            }
        }
        for p in 0..P {
            let line = &mut output[(at + p) * self.stored + self.first..][..Q * V::LEN];
            for q in 0..Q {
                let mut sum = sums[p][q];
                if ADD {
                    sum += V::from_slice(simd, &line[q * V::LEN..][..V::LEN]);
                }
                activated::<S, V, ACT>(simd, sum, self.numbers, slopes[q])
                    .store_slice(&mut line[q * V::LEN..][..V::LEN]);
            }
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
