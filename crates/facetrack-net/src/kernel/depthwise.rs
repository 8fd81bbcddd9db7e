// SPDX-License-Identifier: MPL-2.0
//! Convolutions with one filter for each channel.

use fearless_simd::{Simd, f32x8, f32x16, prelude::*};

use super::{
    Activation, CLIP, HARD_SWISH, LANES, LINEAR, PRELU, Vector, activated, padded, with_activation,
};

/// Pixels for which all channels are computed before the next ones, a multiple of the pixels that
/// are computed together: their inputs stay in the first cache.
const SPAN: usize = 16;

/// The filters: for each row, for each column of the kernel, the weights of all channels.
#[derive(Debug, Clone, Default)]
pub struct Filters {
    values: Vec<f32>,
    bias: Vec<f32>,
    /// Columns of the kernel.
    width: usize,
    /// Channels, without those that fill the last vector.
    channels: usize,
}

impl Filters {
    /// Packs the weights `of(row, column, channel)`.
    pub fn new(
        [height, width]: [usize; 2],
        bias: &[f32],
        of: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let (channels, stored) = (bias.len(), padded(bias.len()));
        let mut values = Vec::with_capacity(height * width * stored);
        for row in 0..height {
            for column in 0..width {
                values.extend((0..stored).map(|channel| match channel < channels {
                    true => of(row, column, channel),
                    false => 0.0,
                }));
            }
        }
        let mut bias = bias.to_vec();
        bias.resize(stored, 0.0);
        Self {
            values,
            bias,
            width,
            channels,
        }
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Bytes of all weights.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.values[..])
    }
}

/// Computes a row of `pixels` whose inputs begin at the start of each of `rows`, `stride` pixels
/// apart.
pub fn run<S: Simd>(
    simd: S,
    rows: &[&[f32]],
    stride: usize,
    filters: &Filters,
    activation: &Activation,
    output: &mut [f32],
) {
    match (filters.width, stride) {
        (3, 1) => with_activation!(
            activation,
            channels::<S, 3, 1>(simd, rows, filters, activation, output)
        ),
        (3, 2) => with_activation!(
            activation,
            channels::<S, 3, 2>(simd, rows, filters, activation, output)
        ),
        (5, 1) => with_activation!(
            activation,
            channels::<S, 5, 1>(simd, rows, filters, activation, output)
        ),
        (5, 2) => with_activation!(
            activation,
            channels::<S, 5, 2>(simd, rows, filters, activation, output)
        ),
        _ => {}
    }
}

/// Whether there is a kernel for filters of this width and stride.
pub fn is_supported(width: usize, stride: usize) -> bool {
    matches!((width, stride), (3 | 5, 1 | 2))
}

fn channels<S: Simd, const K: usize, const STRIDE: usize, const ACT: u8>(
    simd: S,
    rows: &[&[f32]],
    filters: &Filters,
    activation: &Activation,
    output: &mut [f32],
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let stored = filters.bias.len();
            for (index, output) in output.chunks_mut(SPAN * stored).enumerate() {
                let mut channel = 0;
                while channel < stored {
                    let line = Line {
                        rows,
                        first: index * SPAN * STRIDE * stored,
                        filters,
                        numbers: activation.numbers(),
                        slopes: activation.slopes(),
                        channel,
                    };
                    if S::f32s::LEN >= 2 * LANES && stored - channel >= 2 * LANES {
                        line.pixels::<S, f32x16<S>, K, STRIDE, ACT>(simd, output);
                        channel += 2 * LANES;
                    } else {
                        line.pixels::<S, f32x8<S>, K, STRIDE, ACT>(simd, output);
                        channel += LANES;
                    }
                }
            }
        },
    );
}

/// A vector of channels along a row.
struct Line<'a> {
    rows: &'a [&'a [f32]],
    /// Where the inputs of the first pixel begin.
    first: usize,
    filters: &'a Filters,
    numbers: [f32; 2],
    slopes: &'a [f32],
    channel: usize,
}

impl Line<'_> {
    #[inline(always)]
    fn pixels<S: Simd, V: Vector<S>, const K: usize, const STRIDE: usize, const ACT: u8>(
        &self,
        simd: S,
        output: &mut [f32],
    ) {
        let pixels = output.len() / self.filters.bias.len();
        let mut at = 0;
        // More pixels would need more registers than there are.
        if STRIDE == 1 {
            while at + 8 <= pixels {
                self.compute::<S, V, K, STRIDE, 8, ACT>(simd, at, output);
                at += 8;
            }
        }
        while at + 4 <= pixels {
            self.compute::<S, V, K, STRIDE, 4, ACT>(simd, at, output);
            at += 4;
        }
        while at + 2 <= pixels {
            self.compute::<S, V, K, STRIDE, 2, ACT>(simd, at, output);
            at += 2;
        }
        if at < pixels {
            self.compute::<S, V, K, STRIDE, 1, ACT>(simd, at, output);
        }
    }

    /// Computes the `P` pixels from `at` on.
    #[inline(always)]
    fn compute<
        S: Simd,
        V: Vector<S>,
        const K: usize,
        const STRIDE: usize,
        const P: usize,
        const ACT: u8,
    >(
        &self,
        simd: S,
        at: usize,
        output: &mut [f32],
    ) {
        let stored = self.filters.bias.len();
        let mut sums = [V::from_slice(simd, &self.filters.bias[self.channel..][..V::LEN]); P];
        let of_row = self.filters.values.chunks_exact(K * stored);
        for (row, values) in self.rows.iter().zip(of_row) {
            let mut weights = [V::splat(simd, 0.0); K];
            for (k, weights) in weights.iter_mut().enumerate() {
                *weights = V::from_slice(simd, &values[k * stored + self.channel..][..V::LEN]);
            }
            let near = &row[self.first + at * STRIDE * stored + self.channel..]
                [..((P - 1) * STRIDE + K - 1) * stored + V::LEN];
            if STRIDE == 1 {
                // Each pixel is loaded once for all outputs that it contributes to.
                for x in 0..P + K - 1 {
                    let input = V::from_slice(simd, &near[x * stored..][..V::LEN]);
                    for k in 0..K {
                        if x >= k && x - k < P {
                            sums[x - k] = input.mul_add(weights[k], sums[x - k]);
                        }
                    }
                }
            } else {
                for (p, sum) in sums.iter_mut().enumerate() {
                    for (k, weights) in weights.iter().enumerate() {
                        let input =
                            V::from_slice(simd, &near[(p * STRIDE + k) * stored..][..V::LEN]);
                        *sum = input.mul_add(*weights, *sum);
                    }
                }
            }
        }
        let mut slopes = V::splat(simd, 0.0);
        if ACT == PRELU {
            slopes = V::from_slice(simd, &self.slopes[self.channel..][..V::LEN]);
        }
        for (p, sum) in sums.into_iter().enumerate() {
            activated::<S, V, ACT>(simd, sum, self.numbers, slopes)
                .store_slice(&mut output[(at + p) * stored + self.channel..][..V::LEN]);
        }
    }
}
