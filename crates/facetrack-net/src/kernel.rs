// SPDX-License-Identifier: MPL-2.0
//! The inner loops, which compute one row of an image at a time.
//!
//! A row lies in memory in blocks of [`BLOCK`] channels: all pixels of the first block, then all
//! pixels of the next. So a kernel that has one filter for each channel reads a contiguous piece.
//!
//! Each output is one sum in a fixed order, with fused multiplications and additions where the
//! processor has them. So the results do not depend on the width of its vectors.

pub(crate) mod dense;
pub(crate) mod depthwise;
pub(crate) mod rows;

use std::ops::{Deref, DerefMut, Range};

use fearless_simd::{SimdFloat, prelude::*};

use crate::memory::{self, OutOfMemory};

/// Divisor of the number of channels of an image in memory.
pub(crate) const LANES: usize = 8;

/// Channels of a block. The last block of a row may have [`LANES`].
pub(crate) const BLOCK: usize = 2 * LANES;

/// Floats of a cache line.
const LINE: usize = 16;

/// Floats that begin with a cache line, so that a block of [`BLOCK`] channels is one line. Vectors that
/// lie in two lines take longer to read and to write.
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    values: Vec<f32>,
    first: usize,
}

impl Aligned {
    /// This many zeros.
    ///
    /// # Errors
    /// Returns an error if there is too little memory.
    pub(crate) fn zeros(length: usize) -> Result<Self, OutOfMemory> {
        Ok(Self::within(memory::zeros(length + LINE - 1)?, length))
    }

    /// The first `length` of `values` that begin with a cache line.
    fn within(mut values: Vec<f32>, length: usize) -> Self {
        let first = values.as_ptr().align_offset(size_of::<[f32; LINE]>());
        let first = first.min(LINE - 1);
        values.truncate(first + length);
        Self { values, first }
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.first..]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.first..]
    }
}

impl From<Vec<f32>> for Aligned {
    fn from(values: Vec<f32>) -> Self {
        let mut own = Self::within(vec![0.0; values.len() + LINE - 1], values.len());
        own.copy_from_slice(&values);
        own
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        self.to_vec().into()
    }
}

/// The number of channels in memory.
pub(crate) fn padded(channels: usize) -> usize {
    channels.next_multiple_of(LANES)
}

/// Memory layout of a row of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub width: usize,
    /// Pixels of zeros before and behind the row.
    pub margins: [usize; 2],
    /// Channels in memory.
    pub stored: usize,
    /// Channels of a block: [`BLOCK`], or 1 for an input that comes with its channels first.
    pub block: usize,
}

impl Layout {
    /// Pixels in memory.
    fn whole(&self) -> usize {
        self.margins[0] + self.width + self.margins[1]
    }

    /// Floats of a row.
    pub(crate) fn len(&self) -> usize {
        self.whole() * self.stored
    }

    /// The first channels of all blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.stored).step_by(self.block)
    }

    /// Channels of the block that begins with `first`.
    pub(crate) fn lanes(&self, first: usize) -> usize {
        self.block.min(self.stored - first)
    }

    /// The pixels of the block that begins with `first`, margins included.
    pub(crate) fn piece(&self, first: usize) -> Range<usize> {
        first * self.whole()..(first + self.lanes(first)) * self.whole()
    }

    /// The pixels of the block that begins with `first`, without margins.
    pub(crate) fn inner(&self, first: usize) -> Range<usize> {
        let (start, lanes) = (self.at(0, first), self.lanes(first));
        start..start + self.width * lanes
    }

    /// The first channel of the block of `channel`.
    pub(crate) fn block_of(&self, channel: usize) -> usize {
        channel - channel % self.block
    }

    /// The place of an element.
    pub(crate) fn at(&self, x: usize, channel: usize) -> usize {
        let first = self.block_of(channel);
        first * self.whole() + (self.margins[0] + x) * self.lanes(first) + (channel - first)
    }
}

/// The rows of an image that a row of pixels is computed from.
pub(crate) struct Row<'a> {
    /// A row of the image for each row of the kernel.
    pub rows: &'a [&'a [f32]],
    pub layout: Layout,
    /// The first pixel that is read, margins included.
    pub first: usize,
    /// Pixels between the inputs of neighbouring outputs.
    pub stride: usize,
}

/// A function of the sums of a layer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Activation {
    /// No activation.
    #[default]
    Linear,
    /// The nearest number in this range.
    Clip(f32, f32),
    /// Negative numbers times a factor, one for each channel.
    PRelu(Vec<f32>),
    /// x · clip(alpha · x + beta, 0, 1).
    HardSwish(f32, f32),
}

impl Activation {
    /// Returns the activation that replaces negative numbers by 0.
    pub(crate) fn relu() -> Self {
        Self::Clip(0.0, f32::INFINITY)
    }
}

/// A vector of floats.
pub(crate) trait Vector<S: Simd>: SimdFloat<S, Element = f32> {}

impl<S: Simd, V: SimdFloat<S, Element = f32>> Vector<S> for V {}

/// Passes on the sums of a tile, for each pixel and each vector of channels, after the activation.
/// `first` is the first of the channels.
#[inline(always)]
fn finish<S: Simd, V: Vector<S>, const P: usize, const Q: usize>(
    simd: S,
    sums: [[V; Q]; P],
    activation: &Activation,
    first: usize,
    store: impl FnMut(usize, usize, V),
) {
    let all = |number| V::splat(simd, number);
    let zero = all(0.0);
    match *activation {
        Activation::Linear => each(
            sums,
            #[inline(always)]
            |x, _| x,
            store,
        ),
        Activation::Clip(low, high) => {
            let (low, high) = (all(low), all(high));
            each(
                sums,
                #[inline(always)]
                |x, _| x.max(low).min(high),
                store,
            );
        }
        Activation::HardSwish(alpha, beta) => {
            let (alpha, beta, one) = (all(alpha), all(beta), all(1.0));
            each(
                sums,
                #[inline(always)]
                |x, _| x * x.mul_add(alpha, beta).max(zero).min(one),
                store,
            );
        }
        Activation::PRelu(ref slopes) => {
            let mut vectors = [zero; Q];
            for (q, vector) in vectors.iter_mut().enumerate() {
                *vector = V::from_slice(simd, &slopes[first + q * V::LEN..][..V::LEN]);
            }
            each(
                sums,
                #[inline(always)]
                |x, q| x.min(zero).mul_add(vectors[q], x.max(zero)),
                store,
            );
        }
    }
}

/// Stores what `of` yields for each sum and the number of its vector.
#[expect(
    clippy::needless_range_loop,
    reason = "with iterators, some of these loops are not unrolled, and the sums go through memory"
)]
#[inline(always)]
fn each<V: Copy, const P: usize, const Q: usize>(
    sums: [[V; Q]; P],
    of: impl Fn(V, usize) -> V,
    mut store: impl FnMut(usize, usize, V),
) {
    for p in 0..P {
        for q in 0..Q {
            store(p, q, of(sums[p][q], q));
        }
    }
}
