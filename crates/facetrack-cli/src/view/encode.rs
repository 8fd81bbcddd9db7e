// SPDX-License-Identifier: MPL-2.0
//! Numbers as short texts: an array in JSON, deflated, in base64. `decode.js` reads them.

use std::fmt::Display;
use std::io::{self, Write};

use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Step of positions. They are right to 1/16 px, which is less than the width of a line.
pub(crate) const PIXEL: f32 = 1.0 / 8.0;

/// Steps that a position can be away from the frame's corner. Our choice: a million pixels.
const MOST: i64 = 8_000_000;

/// The elements of an array in JSON.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers(String);

impl Numbers {
    pub(crate) fn push(&mut self, number: impl Display) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0 += &number.to_string();
    }

    /// Adds a place without a number.
    pub(crate) fn push_none(&mut self) {
        self.push("null");
    }

    /// The numbers as text for a page.
    ///
    /// # Errors
    /// Returns the errors of the encoder.
    pub(crate) fn text(&self) -> io::Result<String> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        write!(encoder, "[{}]", self.0)?;
        Ok(BASE64.encode(&encoder.finish()?))
    }
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
    fn values_that_are_no_numbers_or_too_large_are_bounded() {
        let values = [0.3, -0.3, f32::NAN, f32::INFINITY, -1e30];
        let want = [2, -2, 0, MOST, -MOST];
        assert_eq!(values.map(|value| quantised(value, PIXEL)), want);
    }
}
