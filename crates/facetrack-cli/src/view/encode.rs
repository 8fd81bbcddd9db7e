// SPDX-License-Identifier: MPL-2.0
//! Numbers as short texts: differences as bytes, deflated, in base64. `decode.js` reads them.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// The digits of base64, RFC 4648.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
    pub(crate) fn text(&self) -> io::Result<Vec<u8>> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.0)?;
        Ok(base64(&encoder.finish()?))
    }
}

/// A signed number as an unsigned one that is small if its magnitude is.
pub(crate) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// `bytes` in base64, with padding.
pub(crate) fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digits = [18, 12, 6, 0].map(|shift| DIGITS[(bits >> shift & 63) as usize]);
        text.extend_from_slice(&digits[..=chunk.len()]);
        text.resize(text.len() + 3 - chunk.len(), b'=');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, want) in [
            ("", ""),
            ("f", "Zg=="),
            ("fooba", "Zm9vYmE="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), want.as_bytes());
        }
        assert_eq!(base64(&[0xfb, 0xff]), b"+/8=");
    }

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
}
