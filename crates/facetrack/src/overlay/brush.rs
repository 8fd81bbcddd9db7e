// SPDX-License-Identifier: MPL-2.0
//! Shapes on their way into a frame.

use super::canvas::{Canvas, Ink};
use super::color::Rgb;
use super::mask::Mask;
use super::text::Letters;
use crate::geometry::{Point, Rect};

/// Lengths of a dash and of the gap after it, in widths of the line.
const DASH: f32 = 5.0;
const GAP: f32 = 4.0;

/// Most dashes of a line; longer lines have longer dashes.
const MAX_DASHES: f32 = 256.0;

/// Space around the text of a plate, in heights of the text.
const PADDING: f32 = 0.2;

/// How much of the frame a plate under text hides.
const PLATE_OPACITY: u8 = 150;

/// Collects shapes of one colour, and paints them.
pub(super) struct Brush<'a, 'b> {
    canvas: &'a mut Canvas<'b>,
    mask: &'a mut Mask,
    over: &'a mut Mask,
    letters: &'a mut Letters,
    /// Width of lines, px.
    pub line_width: f32,
}

impl<'a, 'b> Brush<'a, 'b> {
    /// The masks are for the shapes, and for what they come to on transparent frames.
    pub fn new(
        canvas: &'a mut Canvas<'b>,
        [mask, over]: &'a mut [Mask; 2],
        letters: &'a mut Letters,
        line_width: f32,
    ) -> Self {
        mask.resize(canvas.width(), canvas.height());
        Self {
            canvas,
            mask,
            over,
            letters,
            line_width,
        }
    }

    /// Size of the frame, px.
    pub fn size(&self) -> [f32; 2] {
        [self.canvas.width() as f32, self.canvas.height() as f32]
    }

    /// Whether any of a rectangle lies in the frame.
    pub fn shows(&self, rect: &Rect) -> bool {
        let [width, height] = self.size();
        rect.x < width && rect.y < height && rect.right() > 0.0 && rect.bottom() > 0.0
    }

    /// A rectangle moved into the frame, to its upper left corner where it is larger than the frame.
    pub fn inside(&self, rect: Rect) -> Rect {
        let [width, height] = self.size();
        Rect {
            x: rect.x.min(width - rect.width).max(0.0),
            y: rect.y.min(height - rect.height).max(0.0),
            ..rect
        }
    }

    /// Paints the shapes since the last time.
    pub fn paint(&mut self, color: Rgb, opacity: u8) {
        let ink = Ink { color, opacity };
        self.canvas.paint(self.mask, self.over, ink);
        self.mask.clear();
    }

    /// A line.
    pub fn line(&mut self, from: Point, to: Point) {
        self.mask.line(from, to, self.line_width / 2.0);
    }

    /// A line of dashes, the first and the last of which are whole.
    pub fn dashes(&mut self, from: Point, to: Point) {
        let period = (DASH + GAP) * self.line_width;
        let count = (from.distance(to) / period).round();
        let count = if count >= 1.0 {
            count.min(MAX_DASHES)
        } else {
            1.0
        };
        // The last gap is left out.
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

    /// A disc, its radius in widths of a line.
    pub fn dot(&mut self, center: Point, radius: f32) {
        self.mask.line(center, center, radius * self.line_width);
    }

    /// An arrow.
    pub fn arrow(&mut self, from: Point, to: Point) {
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
    pub fn fill(&mut self, rect: Rect) {
        self.mask.fill(rect);
    }

    /// Height of a line of text with the space to the next, px.
    pub fn text_height(&self) -> f32 {
        self.letters.height()
    }

    /// Width of a text of `letters` letters, px.
    pub fn text_width(&self, letters: usize) -> f32 {
        letters as f32 * self.letters.advance() as f32
    }

    /// Letters in a row of a plate of this width, px.
    pub fn letters_in(&self, width: f32) -> usize {
        ((width - 2.0 * self.padding()) / self.letters.advance() as f32) as usize
    }

    /// Lines of text on a plate of the frame's height.
    pub fn lines_in_frame(&self) -> usize {
        let [_, height] = self.size();
        ((height - 2.0 * self.padding()) / self.text_height()) as usize
    }

    /// Text with its upper left corner at a point; nothing where that is not finite.
    pub fn text(&mut self, corner: Point, text: &str) {
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

    /// The rectangle behind `lines` lines of text of the widest of `letters` letters, with its corner at a point.
    pub fn plate(&self, corner: Point, letters: usize, lines: usize) -> Rect {
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

    /// Where the text on a plate begins.
    pub fn on_plate(&self, plate: &Rect) -> Point {
        Point::new(plate.x + self.padding(), plate.y + self.padding())
    }

    /// Darkens what is behind a plate.
    pub fn darken(&mut self, plate: Rect) {
        self.fill(plate);
        self.paint(Rgb::BLACK, PLATE_OPACITY);
    }

    fn padding(&self) -> f32 {
        (PADDING * self.text_height()).round()
    }
}
