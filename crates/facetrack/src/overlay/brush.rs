// SPDX-License-Identifier: MPL-2.0
//! Shapes, and their painting into a frame.

use super::canvas::Canvas;
use super::color::Rgb;
use super::mask::Mask;
use super::text::Letters;
use crate::geometry::{Point, Rect};

/// Lengths of a dash and of the gap after it, in line widths.
const DASH: f32 = 5.0;
const GAP: f32 = 4.0;

/// Maximum number of dashes of a line; longer lines have longer dashes.
const MAX_DASHES: f32 = 256.0;

/// Space around the text of a plate, relative to the text height.
const PADDING: f32 = 0.2;

/// Opacity of a plate under text.
const PLATE_OPACITY: u8 = 150;

/// Collects shapes of one color, and paints them.
pub(super) struct Brush<'a, 'b> {
    canvas: &'a mut Canvas<'b>,
    mask: &'a mut Mask,
    over: &'a mut Mask,
    letters: &'a mut Letters,
    /// Line width, px.
    pub line_width: f32,
}

impl<'a, 'b> Brush<'a, 'b> {
    /// A brush for `canvas`, with empty masks of its size. The second mask is working memory.
    pub(super) fn new(
        canvas: &'a mut Canvas<'b>,
        [mask, over]: &'a mut [Mask; 2],
        letters: &'a mut Letters,
        line_width: f32,
    ) -> Self {
        Self {
            canvas,
            mask,
            over,
            letters,
            line_width,
        }
    }

    /// Size of the frame, px.
    pub(super) fn size(&self) -> [f32; 2] {
        [self.canvas.width() as f32, self.canvas.height() as f32]
    }

    /// Returns true if a part of a rectangle is inside the frame.
    pub(super) fn shows(&self, rect: &Rect) -> bool {
        let [width, height] = self.size();
        rect.x < width && rect.y < height && rect.right() > 0.0 && rect.bottom() > 0.0
    }

    /// A rectangle moved into the frame; to its upper left corner if it is larger than the frame.
    pub(super) fn inside(&self, rect: Rect) -> Rect {
        let [width, height] = self.size();
        Rect {
            x: rect.x.min(width - rect.width).max(0.0),
            y: rect.y.min(height - rect.height).max(0.0),
            ..rect
        }
    }

    /// Paints the collected shapes.
    pub(super) fn paint(&mut self, color: Rgb, opacity: u8) {
        self.canvas.paint(self.mask, self.over, color, opacity);
        self.mask.clear();
    }

    /// A line.
    pub(super) fn line(&mut self, from: Point, to: Point) {
        self.mask.line(from, to, self.line_width / 2.0);
    }

    /// A dashed line, with whole dashes at both ends.
    pub(super) fn dashes(&mut self, from: Point, to: Point) {
        let period = (DASH + GAP) * self.line_width;
        let count = (from.distance(to) / period).round();
        // `max` replaces a count that is not a number.
        let count = count.clamp(1.0, MAX_DASHES).max(1.0);
        // There is no gap after the last dash.
        let whole = count - GAP / (DASH + GAP);
        let at = |share: f32| {
            Point::new(
                from.x + (to.x - from.x) * share,
                from.y + (to.y - from.y) * share,
            )
        };
        for index in 0..count as usize {
            let start = index as f32;
            let end = start + DASH / (DASH + GAP);
            self.line(at(start / whole), at(end / whole));
        }
    }

    /// A disc; `radius` is in line widths.
    pub(super) fn dot(&mut self, center: Point, radius: f32) {
        self.mask.line(center, center, radius * self.line_width);
    }

    /// An arrow.
    pub(super) fn arrow(&mut self, from: Point, to: Point) {
        self.line(from, to);
        let length = from.distance(to);
        if length > 0.0 {
            let barb = (5.0 * self.line_width).min(length / 2.0) / length;
            let (x, y) = ((from.x - to.x) * barb, (from.y - to.y) * barb);
            self.line(to, Point::new(to.x + x - y / 2.0, to.y + y + x / 2.0));
            self.line(to, Point::new(to.x + x + y / 2.0, to.y + y - x / 2.0));
        }
    }

    /// A filled rectangle.
    pub(super) fn fill(&mut self, rect: Rect) {
        self.mask.fill(rect);
    }

    /// Distance between lines of text, px.
    pub(super) fn text_height(&self) -> f32 {
        self.letters.height()
    }

    /// Width of a text of `letters` letters, px.
    pub(super) fn text_width(&self, letters: usize) -> f32 {
        letters as f32 * self.letters.advance() as f32
    }

    /// Number of letters that fit into a row of a plate of `width` px.
    pub(super) fn letters_in(&self, width: f32) -> usize {
        ((width - 2.0 * self.padding()) / self.letters.advance() as f32) as usize
    }

    /// Number of lines that fit on a plate of the frame's height.
    pub(super) fn lines_in_frame(&self) -> usize {
        let [_, height] = self.size();
        ((height - 2.0 * self.padding()) / self.text_height()) as usize
    }

    /// Text with its upper left corner at a point; nothing if that is not finite.
    pub(super) fn text(&mut self, corner: Point, text: &str) {
        if !(corner.x.is_finite() && corner.y.is_finite()) {
            return;
        }
        let advance = self.letters.advance();
        let baseline = (corner.y.round() as i64).saturating_add(self.letters.ascent());
        let mut x = corner.x.round() as i64;
        for letter in text.chars() {
            self.mask.stamp((x, baseline), self.letters.stamp(letter));
            x = x.saturating_add(advance);
        }
    }

    /// The plate for `lines` lines of text of at most `letters` letters, with its upper left corner
    /// at a point.
    pub(super) fn plate(&self, corner: Point, letters: usize, lines: usize) -> Rect {
        let padding = 2.0 * self.padding();
        let width = self.text_width(letters) + padding;
        let height = lines as f32 * self.text_height() + padding;
        Rect::new(
            corner.x.round(),
            corner.y.round(),
            width.round(),
            height.round(),
        )
    }

    /// The upper left corner of the text on a plate.
    pub(super) fn on_plate(&self, plate: &Rect) -> Point {
        Point::new(plate.x + self.padding(), plate.y + self.padding())
    }

    /// Darkens the frame behind a plate.
    pub(super) fn darken(&mut self, plate: Rect) {
        self.fill(plate);
        self.paint(Rgb::BLACK, PLATE_OPACITY);
    }

    fn padding(&self) -> f32 {
        (PADDING * self.text_height()).round()
    }
}
