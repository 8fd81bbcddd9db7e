// SPDX-License-Identifier: MPL-2.0
//! Rows of all other operators. Each is a loop over vectors of [`LANES`] channels, which the
//! compiler makes fit the processor.

use fearless_simd::{Simd, f32x8, prelude::*};

use super::{Activation, CLIP, HARD_SWISH, LANES, LINEAR, PRELU, activated, with_activation};
use crate::layer::Window;

/// The largest of two by two pixels.
fn max_of_four<S: Simd>(simd: S, [above, below]: [&[f32]; 2], stored: usize, output: &mut [f32]) {
    simd.vectorize(
        #[inline(always)]
        || {
            let pairs = above
                .chunks_exact(2 * stored)
                .zip(below.chunks_exact(2 * stored));
            for ((above, below), pixel) in pairs.zip(output.chunks_exact_mut(stored)) {
                let ((a, b), (c, d)) = (above.split_at(stored), below.split_at(stored));
                for ((((a, b), c), d), most) in a.iter().zip(b).zip(c).zip(d).zip(pixel) {
                    let larger = |a: f32, b: f32| if a > b { a } else { b };
                    *most = larger(larger(*a, *b), larger(*c, *d));
                }
            }
        },
    );
}

/// The largest of the pixels of a window, without those outside of the image.
pub fn max_pool<S: Simd>(
    simd: S,
    rows: &[&[f32]],
    window: &Window,
    stored: usize,
    output: &mut [f32],
) {
    let [kernel, stride, before] = [window.kernel[1], window.stride[1], window.before[1]];
    if let ([above, below], [2, 2, 0]) = (rows, [kernel, stride, before])
        && window.behind[1] == 0
    {
        return max_of_four(simd, [above, below], stored, output);
    }
    let width = rows.first().map_or(0, |row| row.len() / stored);
    simd.vectorize(
        #[inline(always)]
        || {
            for (x, pixel) in output.chunks_exact_mut(stored).enumerate() {
                let first = (x * stride).saturating_sub(before);
                let last = (x * stride + kernel - before).min(width);
                for channel in (0..stored).step_by(LANES) {
                    let mut most = f32x8::splat(simd, f32::NEG_INFINITY);
                    for row in rows {
                        for column in first..last {
                            let place = column * stored + channel;
                            most = most.max(f32x8::from_slice(simd, &row[place..][..LANES]));
                        }
                    }
                    most.store_slice(&mut pixel[channel..][..LANES]);
                }
            }
        },
    );
}

/// Selects `channels` of each pixel. The output has `whole` channels in memory.
pub fn select(input: &[f32], stored: usize, channels: &[usize], whole: usize, output: &mut [f32]) {
    for (pixel, output) in input
        .chunks_exact(stored)
        .zip(output.chunks_exact_mut(whole))
    {
        let (selected, zeros) = output.split_at_mut(channels.len());
        for (output, channel) in selected.iter_mut().zip(channels) {
            *output = pixel[*channel];
        }
        zeros.fill(0.0);
    }
}

/// Applies an activation to each element.
pub fn activate<S: Simd>(simd: S, stored: usize, activation: &Activation, output: &mut [f32]) {
    if *activation != Activation::Linear {
        with_activation!(
            activation,
            activate_all::<S>(simd, stored, activation, output)
        );
    }
}

fn activate_all<S: Simd, const ACT: u8>(
    simd: S,
    stored: usize,
    activation: &Activation,
    output: &mut [f32],
) {
    let numbers = activation.numbers();
    simd.vectorize(
        #[inline(always)]
        || {
            for pixel in output.chunks_exact_mut(stored) {
                for channel in (0..stored).step_by(LANES) {
                    let slopes = match ACT {
                        PRELU => f32x8::from_slice(simd, &activation.slopes()[channel..][..LANES]),
                        _ => f32x8::splat(simd, 0.0),
                    };
                    let place = &mut pixel[channel..][..LANES];
                    let x = f32x8::from_slice(simd, place);
                    activated::<S, f32x8<S>, ACT>(simd, x, numbers, slopes).store_slice(place);
                }
            }
        },
    );
}

/// `combine` of each element of `a` and `b`.
pub fn combine<S: Simd>(
    simd: S,
    a: &[f32],
    b: &[f32],
    output: &mut [f32],
    combine: impl Fn(f32, f32) -> f32,
) {
    simd.vectorize(
        #[inline(always)]
        || {
            for ((a, b), output) in a.iter().zip(b).zip(output) {
                *output = combine(*a, *b);
            }
        },
    );
}

/// Each pixel times `factors`.
pub fn scale<S: Simd>(simd: S, input: &[f32], factors: &[f32], output: &mut [f32]) {
    let stored = factors.len();
    simd.vectorize(
        #[inline(always)]
        || {
            for (pixel, output) in input
                .chunks_exact(stored)
                .zip(output.chunks_exact_mut(stored))
            {
                for ((x, factor), output) in pixel.iter().zip(factors).zip(output) {
                    *output = x * factor;
                }
            }
        },
    );
}

/// Adds all pixels of a row to `sums`.
pub fn accumulate<S: Simd>(simd: S, input: &[f32], sums: &mut [f32]) {
    let stored = sums.len();
    simd.vectorize(
        #[inline(always)]
        || {
            for pixel in input.chunks_exact(stored) {
                for (x, sum) in pixel.iter().zip(&mut *sums) {
                    *sum += x;
                }
            }
        },
    );
}

/// Each pixel less its mean, with a variance of 1, times `factors`. The sums have a fixed order.
pub fn normalize<S: Simd>(
    simd: S,
    input: &[f32],
    factors: &[f32],
    epsilon: f32,
    output: &mut [f32],
) {
    let stored = factors.len();
    simd.vectorize(
        #[inline(always)]
        || {
            for (pixel, output) in input
                .chunks_exact(stored)
                .zip(output.chunks_exact_mut(stored))
            {
                let sum_of = |of: &dyn Fn(f32x8<S>) -> f32x8<S>| {
                    let mut sums = f32x8::splat(simd, 0.0);
                    for values in pixel.chunks_exact(LANES) {
                        sums += of(f32x8::from_slice(simd, values));
                    }
                    sums.as_slice().iter().fold(0.0, |sum, x| sum + x)
                };
                let mean = f32x8::splat(simd, sum_of(&|x| x) / stored as f32);
                let variance = sum_of(&|x| (x - mean) * (x - mean)) / stored as f32;
                let deviation = f32x8::splat(simd, 1.0 / (variance + epsilon).sqrt());
                for channel in (0..stored).step_by(LANES) {
                    let x = f32x8::from_slice(simd, &pixel[channel..][..LANES]);
                    let factor = f32x8::from_slice(simd, &factors[channel..][..LANES]);
                    ((x - mean) * (deviation * factor))
                        .store_slice(&mut output[channel..][..LANES]);
                }
            }
        },
    );
}

/// Interpolates pixels between two lines, with the weight `down` of the second line. Each of `columns`
/// names two pixels of a line and the weight of the second pixel.
pub fn interpolate<S: Simd>(
    simd: S,
    lines: [&[f32]; 2],
    down: f32,
    columns: impl Iterator<Item = (usize, usize, f32)>,
    stored: usize,
    output: &mut [f32],
) {
    simd.vectorize(
        #[inline(always)]
        || {
            for ((near, far, across), output) in columns.zip(output.chunks_exact_mut(stored)) {
                let [(a, b), (c, d)] = lines.map(|line| {
                    let pixel = |x: usize| &line[x * stored..][..stored];
                    (pixel(near), pixel(far))
                });
                for ((((a, b), c), d), output) in a.iter().zip(b).zip(c).zip(d).zip(output) {
                    let (above, below) = (a + (b - a) * across, c + (d - c) * across);
                    *output = above + (below - above) * down;
                }
            }
        },
    );
}
