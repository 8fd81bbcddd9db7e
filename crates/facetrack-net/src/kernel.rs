// SPDX-License-Identifier: MPL-2.0
//! The inner loops: a row of an image at a time, channels last, with the number of channels in
//! memory rounded up to [`LANES`].
//!
//! Each output is one sum in a fixed order, with fused multiplications and additions where the
//! processor has them. So the results do not depend on the width of its vectors.

pub mod dense;
pub mod depthwise;
pub mod rows;

use fearless_simd::{SimdFloat, prelude::*};

/// Channels of an image in memory are a multiple of this.
pub const LANES: usize = 8;

/// The number of channels in memory.
pub fn padded(channels: usize) -> usize {
    channels.next_multiple_of(LANES)
}

/// What follows a sum.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Activation {
    /// Nothing.
    #[default]
    Linear,
    /// The nearest number in this range.
    Clip(f32, f32),
    /// Negative numbers times a factor, one for each channel.
    PRelu(Vec<f32>),
    /// x · clip(alpha · x + beta, 0, 1).
    HardSwish(f32, f32),
}

/// [`Activation`] as a constant of a kernel. There are few, since each kernel is compiled for each.
const LINEAR: u8 = 0;
const CLIP: u8 = 1;
const PRELU: u8 = 2;
const HARD_SWISH: u8 = 3;

impl Activation {
    /// The negative numbers stay 0.
    pub fn relu() -> Self {
        Self::Clip(0.0, f32::INFINITY)
    }

    /// Its two numbers; unused by those that have none.
    fn numbers(&self) -> [f32; 2] {
        match *self {
            Self::Linear | Self::PRelu(_) => [0.0; 2],
            Self::Clip(a, b) | Self::HardSwish(a, b) => [a, b],
        }
    }

    /// Its factors; none of those that have none.
    fn slopes(&self) -> &[f32] {
        match self {
            Self::PRelu(slopes) => slopes,
            _ => &[],
        }
    }
}

/// Calls a function with the activation as its last constant.
macro_rules! with_activation {
    ($activation:expr, $name:ident::<$($generic:tt),*>($($argument:expr),* $(,)?)) => {
        match $activation {
            Activation::Linear => $name::<$($generic,)* { LINEAR }>($($argument),*),
            Activation::Clip(..) => $name::<$($generic,)* { CLIP }>($($argument),*),
            Activation::PRelu(_) => $name::<$($generic,)* { PRELU }>($($argument),*),
            Activation::HardSwish(..) => $name::<$($generic,)* { HARD_SWISH }>($($argument),*),
        }
    };
}
pub(crate) use with_activation;

/// A vector of floats.
pub trait Vector<S: Simd>: SimdFloat<S, Element = f32> {}

impl<S: Simd, V: SimdFloat<S, Element = f32>> Vector<S> for V {}

/// `x` after the activation `ACT`; `slopes` are the factors of its channels.
#[inline(always)]
fn activated<S: Simd, V: Vector<S>, const ACT: u8>(
    simd: S,
    x: V,
    [a, b]: [f32; 2],
    slopes: V,
) -> V {
    let all = |number| V::splat(simd, number);
    match ACT {
        PRELU => x.min(all(0.0)).mul_add(slopes, x.max(all(0.0))),
        HARD_SWISH => x * x.mul_add(all(a), all(b)).max(all(0.0)).min(all(1.0)),
        CLIP => x.max(all(a)).min(all(b)),
        _ => x,
    }
}
