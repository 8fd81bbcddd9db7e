// SPDX-License-Identifier: MPL-2.0
//! Letters as masks, of the monospaced font Hack.

use std::collections::HashMap;

use ab_glyph::{Font as _, FontRef, Glyph, PxScale, ScaleFont};

use super::mask::Stamp;

/// Replacement for characters that are not printable ASCII.
const UNKNOWN: char = '?';

/// Minimum and maximum height of letters, px: smaller letters are illegible, larger ones need too
/// much memory.
const MIN_SIZE: f32 = 8.0;
const MAX_SIZE: f32 = 256.0;

/// Letters of a size.
#[derive(Debug)]
pub(super) struct Letters {
    font: FontRef<'static>,
    /// Height of letters from the lowest to the highest edge, px.
    size: f32,
    stamps: HashMap<char, Stamp>,
}

impl Letters {
    pub(super) fn new() -> Self {
        let font = FontRef::try_from_slice(epaint_default_fonts::HACK_REGULAR);
        Self {
            font: font.expect("the built-in font is valid"),
            size: MIN_SIZE,
            stamps: HashMap::new(),
        }
    }

    /// Sets the height of letters, px, to the nearest supported whole number with which letters are
    /// at most `widest` px wide.
    pub(super) fn set_size(&mut self, size: f32, widest: f32) {
        // `max` replaces a size that is not a number.
        let size = size.round().clamp(MIN_SIZE, MAX_SIZE).max(MIN_SIZE);
        let sizes = (MIN_SIZE as u32..=size as u32).rev();
        let size = sizes
            .map(|size| size as f32)
            .find(|size| self.advance_at(*size) as f32 <= widest)
            .unwrap_or(MIN_SIZE);
        if size != self.size {
            self.stamps.clear();
            self.size = size;
        }
    }

    /// Distance between lines, px.
    pub(super) fn height(&self) -> f32 {
        self.size
    }

    /// Distance between letters, px.
    pub(super) fn advance(&self) -> i64 {
        self.advance_at(self.size)
    }

    fn advance_at(&self, size: f32) -> i64 {
        let font = self.font.as_scaled(PxScale::from(size));
        font.h_advance(font.glyph_id('0')).round() as i64
    }

    /// Distance from the upper edge of a line to its baseline, px.
    pub(super) fn ascent(&self) -> i64 {
        let font = self.font.as_scaled(PxScale::from(self.size));
        font.ascent().round() as i64
    }

    /// The mask of a letter.
    pub(super) fn stamp(&mut self, letter: char) -> &Stamp {
        let is_printable = letter.is_ascii_graphic() || letter == ' ';
        let letter = if is_printable { letter } else { UNKNOWN };
        self.stamps
            .entry(letter)
            .or_insert_with(|| draw(&self.font, letter, self.size))
    }
}

fn draw(font: &FontRef<'static>, letter: char, size: f32) -> Stamp {
    let glyph: Glyph = font.glyph_id(letter).with_scale(PxScale::from(size));
    let Some(outline) = font.outline_glyph(glyph) else {
        return Stamp::default();
    };
    let bounds = outline.px_bounds();
    let (width, height) = (bounds.width() as usize, bounds.height() as usize);
    let mut coverage = vec![0; width * height];
    outline.draw(|x, y, share| {
        let pixel = coverage.get_mut(y as usize * width + x as usize);
        if let Some(pixel) = pixel {
            *pixel = (share.clamp(0.0, 1.0) * 255.0 + 0.5) as u8;
        }
    });
    Stamp {
        left: bounds.min.x as i64,
        top: bounds.min.y as i64,
        width,
        coverage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_stand_on_a_line() {
        let mut letters = Letters::new();
        letters.set_size(40.4, f32::INFINITY);
        assert_eq!(letters.height(), 40.0);
        for letter in ['H', '1', 'x'] {
            let stamp = letters.stamp(letter);
            let height = (stamp.coverage.len() / stamp.width) as i64;
            assert_eq!(stamp.top + height, 0, "{letter}");
            assert!(stamp.coverage.contains(&255), "{letter}");
        }
        let deep = letters.stamp('g').clone();
        assert!(deep.top + (deep.coverage.len() / deep.width) as i64 > 0);
        assert!(-letters.stamp('H').top <= letters.ascent());
    }

    #[test]
    fn letters_are_no_wider_than_asked_unless_they_would_be_unreadable() {
        let mut letters = Letters::new();
        for widest in [5.0, 5.9, 6.0, 24.0] {
            letters.set_size(40.0, widest);
            assert!(letters.advance() as f32 <= widest, "{widest}");
            letters.set_size(letters.height() + 1.0, f32::INFINITY);
            assert!(letters.advance() as f32 > widest || letters.height() == 41.0);
        }
        letters.set_size(40.0, 1.0);
        assert_eq!(letters.height(), MIN_SIZE);
    }

    #[test]
    fn every_character_has_a_picture_and_every_size_is_one_that_can_be() {
        let mut letters = Letters::new();
        for size in [f32::NAN, -1.0, 0.0, 1e9, f32::INFINITY] {
            letters.set_size(size, f32::INFINITY);
            assert!(letters.advance() > 0 && letters.ascent() > 0, "{size}");
        }
        letters.set_size(20.0, f32::INFINITY);
        assert!(letters.stamp(' ').coverage.is_empty());
        let unknown = letters.stamp(UNKNOWN).coverage.clone();
        for letter in ['é', '\n', '\0', '😀'] {
            assert_eq!(letters.stamp(letter).coverage, unknown);
        }
    }
}
