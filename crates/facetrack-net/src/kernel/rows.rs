// SPDX-License-Identifier: MPL-2.0
//! Computes rows of all other operators. Most take a block of channels, whose pixels are `stored`
//! floats apart. Each is a loop over vectors of [`LANES`] channels, which the compiler makes fit
//! the processor.

use fearless_simd::{Simd, f32x8, prelude::*};

use super::{Activation, BLOCK, LANES, Layout, finish};
use crate::layer::Window;

/// The largest of two by two pixels of `N` channels.
#[inline(always)]
fn max_of_four<S: Simd, const N: usize>(simd: S, [above, below]: [&[f32]; 2], output: &mut [f32]) {
    let [above, below] = [above, below].map(|row| row.as_chunks::<N>().0.as_chunks::<2>().0);
    let pixels = output.as_chunks_mut::<N>().0;
    for (([a, b], [c, d]), most) in above.iter().zip(below).zip(pixels) {
        for lane in (0..N).step_by(LANES) {
            let [a, b, c, d] =
                [a, b, c, d].map(|pixel| f32x8::from_slice(simd, &pixel[lane..][..LANES]));
            let largest = a.max(b).max(c.max(d));
            largest.store_slice(&mut most[lane..][..LANES]);
        }
    }
}

/// The largest of the pixels of a window, without those outside of the image.
pub(crate) fn max_pool<S: Simd>(
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
        return simd.vectorize(
            #[inline(always)]
            || match stored {
                LANES => max_of_four::<S, LANES>(simd, [above, below], output),
                _ => max_of_four::<S, BLOCK>(simd, [above, below], output),
            },
        );
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

/// Sets the blocks with channels from `channels` on to 0.
pub(crate) fn clear_behind(output: &mut [f32], layout: &Layout, channels: usize) {
    if channels < layout.stored {
        output[layout.piece(layout.block_of(channels)).start..].fill(0.0);
    }
}

/// Copies `count` channels of all pixels.
pub(crate) fn copy(
    (from, first_from): (&[f32], usize),
    input: &Layout,
    (to, first_to): (&mut [f32], usize),
    output: &Layout,
    count: usize,
) {
    let mut done = 0;
    while done < count {
        let [a, b] = [first_from + done, first_to + done];
        let [left, right] = [(input, a), (output, b)].map(|(layout, channel)| {
            let first = layout.block_of(channel);
            (layout.lanes(first), channel - first)
        });
        let own = (left.0 - left.1).min(right.0 - right.1).min(count - done);
        let (from, to) = (&from[input.at(0, a)..], &mut to[output.at(0, b)..]);
        if own == left.0 && own == right.0 {
            let count = own * input.width;
            to[..count].copy_from_slice(&from[..count]);
        } else if own == LANES {
            copy_pixels::<LANES>([left.0, right.0], input.width, from, to);
        } else if own == 1 {
            copy_pixels::<1>([left.0, right.0], input.width, from, to);
        } else {
            for x in 0..input.width {
                let to = &mut to[x * right.0..][..own];
                for (to, from) in to.iter_mut().zip(&from[x * left.0..]) {
                    *to = *from;
                }
            }
        }
        done += own;
    }
}

/// Copies the first `N` channels of pixels that have these distances.
fn copy_pixels<const N: usize>(steps: [usize; 2], width: usize, from: &[f32], to: &mut [f32]) {
    let pixels = from.chunks(steps[0]).zip(to.chunks_mut(steps[1]));
    for (from, to) in pixels.take(width) {
        if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
            *to = *from;
        }
    }
}

/// Applies an activation to each element of a block of channels.
pub(crate) fn activate<S: Simd>(
    simd: S,
    (first, stored): (usize, usize),
    activation: &Activation,
    output: &mut [f32],
) {
    if *activation == Activation::Linear {
        return;
    }
    simd.vectorize(
        #[inline(always)]
        || {
            for pixel in output.chunks_exact_mut(stored) {
                for (index, place) in pixel.chunks_exact_mut(LANES).enumerate() {
                    let x = [[f32x8::from_slice(simd, place)]];
                    finish(simd, x, activation, first + index * LANES, |_, _, x| {
                        x.store_slice(place);
                    });
                }
            }
        },
    );
}

/// `combine` of each element of `a` and `b`.
pub(crate) fn combine<S: Simd>(
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
pub(crate) fn scale<S: Simd>(simd: S, input: &[f32], factors: &[f32], output: &mut [f32]) {
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
pub(crate) fn accumulate<S: Simd>(simd: S, input: &[f32], sums: &mut [f32]) {
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
pub(crate) fn normalize<S: Simd>(
    simd: S,
    (input, layout): (&[f32], &Layout),
    factors: &[f32],
    epsilon: f32,
    (output, yielded): (&mut [f32], &Layout),
) {
    let count = layout.stored as f32;
    simd.vectorize(
        #[inline(always)]
        || {
            for x in 0..layout.width {
                let mut sums = f32x8::splat(simd, 0.0);
                for channel in (0..layout.stored).step_by(LANES) {
                    sums += f32x8::from_slice(simd, &input[layout.at(x, channel)..][..LANES]);
                }
                let mean = f32x8::splat(simd, total(sums) / count);
                let mut sums = f32x8::splat(simd, 0.0);
                for channel in (0..layout.stored).step_by(LANES) {
                    let values = f32x8::from_slice(simd, &input[layout.at(x, channel)..][..LANES]);
                    sums += (values - mean) * (values - mean);
                }
                let deviation = f32x8::splat(simd, 1.0 / (total(sums) / count + epsilon).sqrt());
                for channel in (0..layout.stored).step_by(LANES) {
                    let values = f32x8::from_slice(simd, &input[layout.at(x, channel)..][..LANES]);
                    let factors = f32x8::from_slice(simd, &factors[channel..][..LANES]);
                    ((values - mean) * (deviation * factors))
                        .store_slice(&mut output[yielded.at(x, channel)..][..LANES]);
                }
            }
        },
    );
}

/// The sum of all lanes, the first ones first.
#[inline(always)]
fn total<S: Simd>(lanes: f32x8<S>) -> f32 {
    lanes.as_slice().iter().fold(0.0, |sum, x| sum + x)
}

/// Copies the first pixel of each of `columns`.
pub(crate) fn repeat(
    input: &[f32],
    columns: &[(usize, usize, f32)],
    stored: usize,
    output: &mut [f32],
) {
    match stored {
        LANES => repeat_pixels::<LANES>(input, columns, output),
        _ => repeat_pixels::<BLOCK>(input, columns, output),
    }
}

fn repeat_pixels<const N: usize>(
    input: &[f32],
    columns: &[(usize, usize, f32)],
    output: &mut [f32],
) {
    let (input, output) = (input.as_chunks::<N>().0, output.as_chunks_mut::<N>().0);
    for ((near, ..), pixel) in columns.iter().zip(output) {
        *pixel = input[*near];
    }
}

/// Interpolates pixels between two lines, with the weight `down` of the second line. Each of `columns`
/// names two pixels of a line and the weight of the second pixel.
pub(crate) fn interpolate<S: Simd>(
    simd: S,
    lines: [&[f32]; 2],
    down: f32,
    columns: &[(usize, usize, f32)],
    stored: usize,
    output: &mut [f32],
) {
    simd.vectorize(
        #[inline(always)]
        || match stored {
            LANES => interpolate_pixels::<LANES>(lines, down, columns, output),
            _ => interpolate_pixels::<BLOCK>(lines, down, columns, output),
        },
    );
}

#[inline(always)]
fn interpolate_pixels<const N: usize>(
    lines: [&[f32]; 2],
    down: f32,
    columns: &[(usize, usize, f32)],
    output: &mut [f32],
) {
    let [above, below] = lines.map(|line| line.as_chunks::<N>().0);
    let pixels = output.as_chunks_mut::<N>().0;
    for ((near, far, across), pixel) in columns.iter().zip(pixels) {
        let (a, b, c, d) = (&above[*near], &above[*far], &below[*near], &below[*far]);
        for (lane, output) in pixel.iter_mut().enumerate() {
            let above = a[lane] + (b[lane] - a[lane]) * across;
            let below = c[lane] + (d[lane] - c[lane]) * across;
            *output = above + (below - above) * down;
        }
    }
}
