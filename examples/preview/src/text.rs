// SPDX-License-Identifier: MPL-2.0
//! Text of one size on the pixels of a window.

use std::collections::HashMap;

use ab_glyph::{Font as _, FontRef, PxScale, ScaleFont};

use crate::pixels::Pixels;

/// Height of a line in a window of scale 1, px: 53 lines are lower than 720 px.
const HEIGHT: f64 = 13.0;

/// Letters of the monospaced font Hack, which `facetrackoverlay` uses too. All have the same width.
pub struct Letters {
    font: FontRef<'static>,
    /// Height of a line, px.
    pub height: u32,
    /// Distance from a letter to the next one, px.
    pub advance: f32,
    masks: HashMap<char, Mask>,
}

/// The coverage of the pixels of a letter.
#[derive(Default)]
struct Mask {
    left: i32,
    top: i32,
    width: usize,
    coverage: Vec<f32>,
}

impl Letters {
    /// Letters for a screen with this scale.
    pub fn new(scale: f64) -> Self {
        let font = FontRef::try_from_slice(epaint_default_fonts::HACK_REGULAR);
        let font = font.expect("the built-in font is valid");
        let height = (HEIGHT * scale).round().max(1.0) as u32;
        let advance = {
            let scaled = font.as_scaled(PxScale::from(height as f32));
            scaled.h_advance(scaled.glyph_id('0'))
        };
        Self {
            font,
            height,
            advance,
            masks: HashMap::new(),
        }
    }

    /// Width of a number of letters, px.
    pub fn width(&self, letters: usize) -> u32 {
        (letters as f32 * self.advance).ceil() as u32
    }

    /// Number of letters in a width.
    pub fn columns(&self, width: u32) -> usize {
        (width as f32 / self.advance) as usize
    }

    /// Writes a line whose upper left corner is at a place. The part of it that is outside is left
    /// out.
    pub fn write(&mut self, pixels: &mut Pixels<'_>, place: [u32; 2], text: &str, color: u32) {
        let scaled = self.font.as_scaled(PxScale::from(self.height as f32));
        let baseline = place[1] as i32 + scaled.ascent().round() as i32;
        for (index, letter) in text.chars().enumerate() {
            let x = place[0] as f32 + index as f32 * self.advance;
            let mask = self.masks.entry(letter);
            let mask = mask.or_insert_with(|| draw(&self.font, letter, self.height as f32));
            let corner = [x.round() as i32 + mask.left, baseline + mask.top];
            for (index, share) in mask.coverage.iter().enumerate() {
                let (row, column) = (index / mask.width, index % mask.width);
                let at = [corner[0] + column as i32, corner[1] + row as i32];
                pixels.blend(at, color, *share);
            }
        }
    }
}

fn draw(font: &FontRef<'static>, letter: char, size: f32) -> Mask {
    let glyph = font.glyph_id(letter).with_scale(PxScale::from(size));
    let Some(outline) = font.outline_glyph(glyph) else {
        return Mask::default();
    };
    let bounds = outline.px_bounds();
    let (width, height) = (bounds.width() as usize, bounds.height() as usize);
    let mut coverage = vec![0.0; width * height];
    outline.draw(|x, y, share| {
        let pixel = coverage.get_mut(y as usize * width + x as usize);
        if let Some(pixel) = pixel {
            *pixel = share.clamp(0.0, 1.0);
        }
    });
    Mask {
        left: bounds.min.x as i32,
        top: bounds.min.y as i32,
        width,
        coverage,
    }
}
