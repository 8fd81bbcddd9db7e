// SPDX-License-Identifier: MPL-2.0
//! Numbers as short texts: differences as bytes, deflated, in base64. `decode.js` reads them.

use std::io::{self, Write};

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Step of positions. They are right to 1/16 px, which is less than the width of a line.
pub(crate) const PIXEL: f32 = 1.0 / 8.0;

/// Steps that a position can be away from the frame's corner. Our choice: a million pixels.
const MOST: i64 = 8_000_000;

/// Numbers in as few bytes as they need: seven bits in each, the low ones first (LEB128).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers(Vec<u8>);

impl Numbers {
    pub(crate) fn push(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Adds a number that may be negative: 0, −1, 1, −2, 2 become 0, 1, 2, 3, 4.
    pub(crate) fn push_signed(&mut self, number: i64) {
        self.push(zigzag(number));
    }

    /// The numbers as text for a page.
    ///
    /// # Errors
    /// Returns the errors of the encoder.
    pub(crate) fn text(&self) -> io::Result<String> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.0)?;
        Ok(BASE64.encode(&encoder.finish()?))
    }
}

/// A signed number as an unsigned one that is small if its magnitude is.
pub(crate) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The number of steps in a value. Values beyond [`MOST`] become the largest ones.
pub(crate) fn quantised(value: f32, step: f32) -> i64 {
    // The cast turns values that are no numbers into 0.
    ((value / step).round() as i64).clamp(-MOST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_byte_for_seven_bits() {
        let mut numbers = Numbers::default();
        numbers.push(300);
        for number in [0, -1, 1, -65, i64::MIN] {
            numbers.push_signed(number);
        }
        let most = [[0xff; 9].as_slice(), &[1]].concat();
        let want = [&[0xac, 2, 0, 1, 2, 0x81, 1][..], &most].concat();
        assert_eq!(numbers.0, want);
    }

    #[test]
    fn values_that_are_no_numbers_or_too_large_are_bounded() {
        let values = [0.3, -0.3, f32::NAN, f32::INFINITY, -1e30];
        let want = [2, -2, 0, MOST, -MOST];
        assert_eq!(values.map(|value| quantised(value, PIXEL)), want);
    }
}
