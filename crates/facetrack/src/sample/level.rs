// SPDX-License-Identifier: MPL-2.0
//! Rounding to the 256 levels of 8-bit samples, ties up, like OpenCV's fixed-point cast.
//!
//! Values are in 0…255 and have up to 10 binary digits after the point.

/// Moves ties, and no other values, above the middle.
const HALF_A_DIGIT: f32 = 1.0 / 2048.0;

/// 2²³, above which `f32` has only whole numbers, stored in its lowest bits.
const WHOLE: f32 = 8_388_608.0;

/// The nearest level.
#[inline(always)]
pub(super) fn round(value: f32) -> f32 {
    (value + HALF_A_DIGIT + WHOLE) - WHOLE
}

/// The nearest level as a byte.
#[inline(always)]
pub(super) fn code(value: f32) -> u8 {
    (value + HALF_A_DIGIT + WHOLE).to_bits() as u8
}
