// SPDX-License-Identifier: MPL-2.0
//! Letters as masks: Hack, whose letters are equally wide.

use std::collections::HashMap;

use ab_glyph::{Font as _, FontRef, Glyph, PxScale, ScaleFont};

use super::mask::Stamp;

/// What stands for a character that is no printable ASCII.
const UNKNOWN: char = '?';

/// Least and greatest height of letters, px: smaller ones can't be read, larger ones fill the memory.
const SIZES: [f32; 2] = [8.0, 256.0];

/// Letters of one size.
#[derive(Debug)]
pub(super) struct Letters {
    font: FontRef<'static>,
    /// Height from the lowest to the highest edge of letters, px.
    size: f32,
    stamps: HashMap<char, Stamp>,
}

impl Letters {
    pub fn new() -> Self {
        let font = FontRef::try_from_slice(epaint_default_fonts::HACK_REGULAR);
        Self {
            font: font.expect("the font that is compiled in is sound"),
            size: SIZES[0],
            stamps: HashMap::new(),
        }
    }

    /// Sets the height of letters, px, to the nearest whole one that is possible and makes no letter wider than `widest` px.
    pub fn set_size(&mut self, size: f32, widest: f32) {
        let size = match size.is_nan() {
            true => SIZES[0],
            false => size.round().clamp(SIZES[0], SIZES[1]),
        };
        let sizes = (SIZES[0] as u32..=size as u32).rev();
        let size = sizes
            .map(|size| size as f32)
            .find(|size| self.advance_at(*size) as f32 <= widest)
            .unwrap_or(SIZES[0]);
        if size != self.size {
            self.stamps.clear();
            self.size = size;
        }
    }

    /// From the upper edge of a line to that of the next, px.
    pub fn height(&self) -> f32 {
        self.size
    }

    /// From a letter to the next, px.
    pub fn advance(&self) -> i64 {
        self.advance_at(self.size)
    }

    fn advance_at(&self, size: f32) -> i64 {
        let font = self.font.as_scaled(PxScale::from(size));
        font.h_advance(font.glyph_id('0')).round() as i64
    }

    /// From the upper edge of a line to what letters stand on, px.
    pub fn ascent(&self) -> i64 {
        let font = self.font.as_scaled(PxScale::from(self.size));
        font.ascent().round() as i64
    }

    /// The picture of a letter.
    pub fn stamp(&mut self, letter: char) -> &Stamp {
        let letter = match letter.is_ascii_graphic() || letter == ' ' {
            true => letter,
            false => UNKNOWN,
        };
        self.stamps
            .entry(letter)
            .or_insert_with(|| draw(&self.font, letter, self.size))
    }
}

fn draw(font: &FontRef<'static>, letter: char, size: f32) -> Stamp {
    let glyph: Glyph = font.glyph_id(letter).with_scale(PxScale::from(size));
    let Some(outline) = font.outline_glyph(glyph) else {
        return Stamp {
            left: 0,
            top: 0,
            width: 0,
            coverage: Vec::new(),
        };
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
        assert_eq!(letters.height(), SIZES[0]);
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
