// SPDX-License-Identifier: MPL-2.0
//! Convolutions with one filter for each channel.

use fearless_simd::{Simd, f32x8, f32x16, prelude::*};

use super::{Activation, Aligned, BLOCK, LANES, Layout, Row, Vector, finish, padded};

/// The filters: for each block of channels, for each row, for each column of the kernel, the weights
/// of the channels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters {
    values: Aligned,
    bias: Vec<f32>,
    /// Rows and columns of the kernel.
    side: usize,
    /// Channels, without those that fill the last vector.
    channels: usize,
}

impl Filters {
    /// Packs the weights `of(row, column, channel)`.
    pub(crate) fn new(side: usize, bias: &[f32], of: impl Fn(usize, usize, usize) -> f32) -> Self {
        let (channels, stored) = (bias.len(), padded(bias.len()));
        let mut values = Vec::with_capacity(side * side * stored);
        for first in (0..stored).step_by(BLOCK) {
            let lanes = first..stored.min(first + BLOCK);
            for place in 0..side * side {
                values.extend(lanes.clone().map(|channel| match channel < channels {
                    true => of(place / side, place % side, channel),
                    false => 0.0,
                }));
            }
        }
        let mut bias = bias.to_vec();
        bias.resize(stored, 0.0);
        Self {
            values: values.into(),
            bias,
            side,
            channels,
        }
    }

    /// Number of channels.
    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    /// Number of packed weights.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Computes `row` into `output`, whose pixels lie as `layout` says.
pub(crate) fn run<S: Simd>(
    simd: S,
    row: &Row<'_>,
    filters: &Filters,
    activation: &Activation,
    (output, layout): (&mut [f32], &Layout),
) {
    let output = (output, layout);
    match (filters.side, row.stride) {
        (3, 1) => blocks::<S, 3, 1>(simd, row, filters, activation, output),
        (3, 2) => blocks::<S, 3, 2>(simd, row, filters, activation, output),
        (5, 1) => blocks::<S, 5, 1>(simd, row, filters, activation, output),
        (5, 2) => blocks::<S, 5, 2>(simd, row, filters, activation, output),
        _ => {}
    }
}

/// Returns true if there is a kernel for filters of this height and width, and this stride.
pub(crate) fn is_supported([height, width]: [usize; 2], stride: usize) -> bool {
    height == width && matches!((width, stride), (3 | 5, 1 | 2))
}

fn blocks<S: Simd, const K: usize, const STRIDE: usize>(
    simd: S,
    row: &Row<'_>,
    filters: &Filters,
    activation: &Activation,
    (output, layout): (&mut [f32], &Layout),
) {
    let Some(rows) = row.rows.first_chunk::<K>() else {
        return;
    };
    simd.vectorize(
        #[inline(always)]
        || {
            for first in layout.blocks() {
                let piece = row.layout.piece(first);
                let rows = rows.map(|row| &row[piece.clone()]);
                let output = &mut output[layout.inner(first)];
                let block = (first, row.first, filters, activation);
                if layout.lanes(first) == LANES {
                    vectors::<S, f32x8<S>, LANES, K, STRIDE>(simd, rows, block, output);
                } else if S::f32s::LEN >= BLOCK {
                    vectors::<S, f32x16<S>, BLOCK, K, STRIDE>(simd, rows, block, output);
                } else {
                    vectors::<S, f32x8<S>, BLOCK, K, STRIDE>(simd, rows, block, output);
                }
            }
        },
    );
}

/// Computes a block of `C` channels: its first channel, and the first pixel that is read.
#[inline(always)]
fn vectors<S: Simd, V: Vector<S>, const C: usize, const K: usize, const STRIDE: usize>(
    simd: S,
    rows: [&[f32]; K],
    (channel, first, filters, activation): (usize, usize, &Filters, &Activation),
    output: &mut [f32],
) {
    let mut near = [&[[0.0; C]][..0]; K];
    for (near, row) in near.iter_mut().zip(rows) {
        *near = &row.as_chunks::<C>().0[first..];
    }
    let block = Block {
        rows: near,
        weights: filters.values[channel * K * K..].as_chunks::<C>().0,
        bias: &filters.bias[channel..],
        activation,
        channel,
    };
    let output = output.as_chunks_mut::<C>().0;
    // Enough sums are computed at a time.
    match (output.len(), C == V::LEN) {
        (8.., _) => block.groups::<S, V, STRIDE, 8, 1>(simd, output),
        (4.., true) => block.groups::<S, V, STRIDE, 4, 1>(simd, output),
        (4.., false) => block.groups::<S, V, STRIDE, 4, 2>(simd, output),
        _ => block.groups::<S, V, STRIDE, 1, 1>(simd, output),
    }
}

/// A block of channels along a row.
struct Block<'a, const C: usize, const K: usize> {
    rows: [&'a [[f32; C]]; K],
    /// Weights of each pixel of the kernel.
    weights: &'a [[f32; C]],
    bias: &'a [f32],
    activation: &'a Activation,
    /// The first channel.
    channel: usize,
}

impl<const C: usize, const K: usize> Block<'_, C, K> {
    /// Computes all pixels, `Q` vectors of `P` pixels at a time; some of the last twice. All vectors of
    /// `P` pixels come before the next pixels, because rows of wide images do not stay in the first
    /// cache.
    #[inline(always)]
    fn groups<S: Simd, V: Vector<S>, const STRIDE: usize, const P: usize, const Q: usize>(
        &self,
        simd: S,
        output: &mut [[f32; C]],
    ) {
        let last = output.len() - P;
        for at in (0..output.len()).step_by(P) {
            for lane in (0..C).step_by(Q * V::LEN) {
                self.compute::<S, V, STRIDE, P, Q>(simd, (at.min(last), lane), output);
            }
        }
    }

    /// Computes the `P` pixels from `at` on of the `Q` vectors that begin with the channel `lane`.
    #[inline(always)]
    fn compute<S: Simd, V: Vector<S>, const STRIDE: usize, const P: usize, const Q: usize>(
        &self,
        simd: S,
        (at, lane): (usize, usize),
        output: &mut [[f32; C]],
    ) {
        let load =
            |pixel: &[f32], q: usize| V::from_slice(simd, &pixel[lane + q * V::LEN..][..V::LEN]);
        let mut sums = [[V::splat(simd, 0.0); Q]; P];
        for sums in &mut sums {
            for (q, sum) in sums.iter_mut().enumerate() {
                *sum = load(self.bias, q);
            }
        }
        for r in 0..K {
            let near = &self.rows[r][at * STRIDE..][..(P - 1) * STRIDE + K];
            let mut weights = [[V::splat(simd, 0.0); Q]; K];
            for (k, weights) in weights.iter_mut().enumerate() {
                for (q, weights) in weights.iter_mut().enumerate() {
                    *weights = load(&self.weights[r * K + k], q);
                }
            }
            if STRIDE == 1 {
                // Each pixel is loaded once for all outputs that it contributes to.
                for x in 0..P + K - 1 {
                    for q in 0..Q {
                        let input = load(&near[x], q);
                        for k in 0..K {
                            if x >= k && x - k < P {
                                sums[x - k][q] = input.mul_add(weights[k][q], sums[x - k][q]);
                            }
                        }
                    }
                }
            } else {
                for (p, sums) in sums.iter_mut().enumerate() {
                    for (k, weights) in weights.iter().enumerate() {
                        for (q, sum) in sums.iter_mut().enumerate() {
                            *sum = load(&near[p * STRIDE + k], q).mul_add(weights[q], *sum);
                        }
                    }
                }
            }
        }
        let output = &mut output[at..at + P];
        finish::<S, V, P, Q>(
            simd,
            sums,
            self.activation,
            self.channel + lane,
            |p, q, x| {
                x.store_slice(&mut output[p][lane + q * V::LEN..][..V::LEN]);
            },
        );
    }
}
