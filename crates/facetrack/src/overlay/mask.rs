// SPDX-License-Identifier: MPL-2.0
//! Coverage of pixels by shapes.

use std::ops::Range;

use crate::geometry::{Point, Rect};
use crate::memory::{self, OutOfMemory};

/// Maximum distance of a line from the corner of the frame, px: far outside every frame, and near
/// enough for the precision of `f32`.
const FARTHEST: f32 = 1e6;

/// Maximum number of rows between the ends of a horizontal line.
const LEVEL: f32 = 1e-3;

/// Number of pixels or samples whose coverage is tested together: most of a mask is empty.
pub(super) const BLOCK: usize = 16;

/// Coverage of each pixel, 0…255, by shapes of one color. If shapes overlap, the maximum counts, so
/// that joints of lines do not stand out.
#[derive(Debug, Default)]
pub(super) struct Mask {
    width: usize,
    height: usize,
    coverage: Vec<u8>,
    /// For each row, a range of columns that contains all covered pixels.
    spans: Vec<Range<usize>>,
    /// A range of rows that contains all covered pixels.
    rows: Range<usize>,
}

/// The mask of a letter.
#[derive(Debug, Clone, Default)]
pub(super) struct Stamp {
    /// Columns from the pen position to the left edge.
    pub left: i64,
    /// Rows from the baseline to the upper edge, negative above.
    pub top: i64,
    /// Columns.
    pub width: usize,
    /// Coverage in row-major order, 0…255.
    pub coverage: Vec<u8>,
}

impl Mask {
    /// Clears the mask and sets its size, px.
    ///
    /// # Errors
    /// Returns an error if there is too little memory.
    pub(super) fn resize(&mut self, width: usize, height: usize) -> Result<(), OutOfMemory> {
        if (self.width, self.height) == (width, height) {
            self.clear();
            return Ok(());
        }
        let purpose = format_args!("drawing on {width}×{height} pixels");
        *self = Self {
            width,
            height,
            coverage: memory::zeros(width * height, purpose)?,
            spans: vec![0..0; height],
            rows: 0..0,
        };
        Ok(())
    }

    /// Clears the mask.
    pub(super) fn clear(&mut self) {
        for y in std::mem::take(&mut self.rows) {
            let span = std::mem::take(&mut self.spans[y]);
            let start = y * self.width;
            self.coverage[start + span.start..start + span.end].fill(0);
        }
    }

    /// Pixels per row.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub(super) fn height(&self) -> usize {
        self.height
    }

    /// A range of rows that contains all covered pixels.
    pub(super) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// A range of columns that contains all covered pixels of row `y`.
    pub(super) fn span(&self, y: usize) -> Range<usize> {
        self.spans[y].clone()
    }

    /// A range of columns that contains all covered pixels.
    pub(super) fn columns(&self) -> Range<usize> {
        self.rows().fold(0..0, |all, y| hull(&all, &self.spans[y]))
    }

    /// All of row `y`.
    pub(super) fn row(&self, y: usize) -> &[u8] {
        &self.coverage[y * self.width..][..self.width]
    }

    /// The columns of row `y` in blocks, without blocks that are not covered at all.
    pub(super) fn covered(&self, y: usize) -> impl Iterator<Item = Range<usize>> {
        let (row, span) = (self.row(y), self.span(y));
        let blocks = span.clone().step_by(BLOCK);
        let blocks = blocks.map(move |start| start..(start + BLOCK).min(span.end));
        blocks.filter(|columns| !is_empty(&row[columns.clone()]))
    }

    /// A line with round ends: all points within `radius` px of it; a disc if both ends are the
    /// same point.
    ///
    /// A line with an end that is not a number or beyond [`FARTHEST`] covers nothing. A line
    /// thinner than a pixel covers pixels in proportion to its width.
    pub(super) fn line(&mut self, from: Point, to: Point, radius: f32) {
        let is_near = |value: &f32| value.abs() < FARTHEST;
        let is_thick = radius > 0.0 && is_near(&radius);
        if !is_thick || ![from.x, from.y, to.x, to.y].iter().all(is_near) {
            return;
        }
        let line = Line::new(from, to, radius);
        for y in pixels(line.rows(), self.height) {
            let center = y as f32 + 0.5;
            let columns = pixels(line.columns(center), self.width);
            let first = columns.start as f32 + 0.5;
            for (i, covered) in self.touch(y, columns).iter_mut().enumerate() {
                let level = line.level(Point::new(first + i as i32 as f32, center));
                *covered = (*covered).max(level);
            }
        }
    }

    /// A rectangle, px; nothing if its edges are not finite.
    pub(super) fn fill(&mut self, rect: Rect) {
        let edges = [rect.x, rect.y, rect.right(), rect.bottom()];
        if !edges.iter().all(|value| value.is_finite()) {
            return;
        }
        let [left, top, right, bottom] = edges;
        let columns = pixels([left, right], self.width);
        for y in pixels([top, bottom], self.height) {
            let share = overlap(y, top, bottom) * 255.0;
            for (x, covered) in columns.clone().zip(self.touch(y, columns.clone())) {
                let level = share * overlap(x, left, right);
                *covered = (*covered).max((level + 0.5) as u8);
            }
        }
    }

    /// Every pixel that a convex polygon touches; nothing if a corner is not finite.
    pub(super) fn polygon(&mut self, corners: &[Point]) {
        let is_finite = |point: &Point| point.x.is_finite() && point.y.is_finite();
        let Some(extent) =
            Rect::enclosing(corners.iter().copied()).filter(|_| corners.iter().all(is_finite))
        else {
            return;
        };
        for y in pixels([extent.y, extent.bottom()], self.height) {
            let columns = columns_between(corners, y as f32, y as f32 + 1.0);
            let columns = pixels(columns, self.width);
            self.touch(y, columns).fill(u8::MAX);
        }
    }

    /// A letter with the pen at a pixel of the baseline.
    pub(super) fn stamp(&mut self, (x, y): (i64, i64), stamp: &Stamp) {
        let (left, top) = (x.saturating_add(stamp.left), y.saturating_add(stamp.top));
        let columns = clip(left, stamp.width, self.width);
        if columns.is_empty() {
            return;
        }
        // Column or row of the stamp at a column or row of the frame.
        let offset = |start: usize, edge: i64| (start as i64 - edge) as usize;
        for y in clip(top, stamp.coverage.len() / stamp.width, self.height) {
            let row = &stamp.coverage[offset(y, top) * stamp.width..][..stamp.width];
            let levels = row.iter().skip(offset(columns.start, left));
            for (covered, level) in self.touch(y, columns.clone()).iter_mut().zip(levels) {
                *covered = (*covered).max(*level);
            }
        }
    }

    /// Copies `other`, which has the same size; `level` maps column, row and level of each covered pixel to a new level.
    pub(super) fn follow(&mut self, other: &Mask, level: impl Fn(usize, usize, u8) -> u8) {
        self.clear();
        for y in other.rows() {
            for columns in other.covered(y) {
                let others = other.row(y)[columns.clone()].iter().zip(columns.clone());
                for (covered, (other, x)) in self.touch(y, columns).iter_mut().zip(others) {
                    *covered = level(x, y, *other);
                }
            }
        }
    }

    /// The given pixels of a row, which are going to be covered.
    #[inline(always)]
    fn touch(&mut self, y: usize, columns: Range<usize>) -> &mut [u8] {
        if columns.is_empty() {
            return &mut [];
        }
        self.rows = hull(&self.rows, &(y..y + 1));
        self.spans[y] = hull(&self.spans[y], &columns);
        &mut self.coverage[y * self.width..][columns]
    }
}

/// Returns true if no pixel is covered.
#[inline(always)]
pub(super) fn is_empty(block: &[u8]) -> bool {
    let (words, rest) = block.as_chunks();
    let any = words
        .iter()
        .fold(0, |any, word| any | u128::from_ne_bytes(*word));
    any == 0 && rest.iter().all(|covered| *covered == 0)
}

/// Returns true if every pixel is covered completely.
#[inline(always)]
pub(super) fn is_full(block: &[u8]) -> bool {
    let (words, rest) = block.as_chunks();
    let all = words
        .iter()
        .fold(u128::MAX, |all, word| all & u128::from_ne_bytes(*word));
    all == u128::MAX && rest.iter().all(|covered| *covered == u8::MAX)
}

/// The smallest range that contains both.
pub(super) fn hull(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    if a.is_empty() {
        return b.clone();
    }
    if b.is_empty() {
        return a.clone();
    }
    a.start.min(b.start)..a.end.max(b.end)
}

/// The pixels between two edges, clipped to `0..count`. Casts saturate and truncate, so that
/// negative numbers become 0.
#[inline(always)]
fn pixels([from, to]: [f32; 2], count: usize) -> Range<usize> {
    let whole = to as u32;
    let to = whole.saturating_add(u32::from(whole as f32 != to && to > 0.0));
    let to = (to as usize).min(count);
    (from as u32 as usize).min(to)..to
}

/// The leftmost and the rightmost point of a polygon between two heights.
fn columns_between(corners: &[Point], top: f32, bottom: f32) -> [f32; 2] {
    let next = corners.iter().cycle().skip(1);
    let mut columns = [f32::INFINITY, f32::NEG_INFINITY];
    for (a, b) in std::iter::zip(corners, next) {
        if a.y.max(b.y) < top || a.y.min(b.y) > bottom {
            continue;
        }
        for y in [a.y, b.y].map(|y| y.clamp(top, bottom)) {
            let part = if a.y == b.y {
                0.0
            } else {
                (y - a.y) / (b.y - a.y)
            };
            let x = a.x + (b.x - a.x) * part;
            columns = [columns[0].min(x), columns[1].max(x)];
        }
        if a.y == b.y {
            columns = [columns[0].min(b.x), columns[1].max(b.x)];
        }
    }
    columns
}

/// `count` pixels from `first` on, clipped to `0..limit`.
fn clip(first: i64, count: usize, limit: usize) -> Range<usize> {
    let limit = limit as i64;
    let end = first.saturating_add(count as i64).clamp(0, limit);
    first.clamp(0, end) as usize..end as usize
}

/// The part of pixel `index` between two edges.
#[inline(always)]
fn overlap(index: usize, from: f32, to: f32) -> f32 {
    let start = index as i32 as f32;
    (to.min(start + 1.0) - from.max(start)).max(0.0)
}

/// A thick line between two points.
struct Line {
    from: Point,
    to: Point,
    /// The middle, and half the length.
    middle: Point,
    half: f32,
    /// Unit vector from one end to the other; an arbitrary one if the length is 0.
    along: Point,
    /// Columns to the right per row down; `None` for a horizontal line.
    slope: Option<f32>,
    /// Distance from the line at which coverage ends.
    reach: f32,
    /// Level of a pixel on the line.
    max: f32,
}

impl Line {
    fn new(from: Point, to: Point, radius: f32) -> Self {
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let length = from.distance(to);
        let along = if length > 0.0 {
            Point::new(dx / length, dy / length)
        } else {
            Point::new(1.0, 0.0)
        };
        Self {
            from,
            to,
            middle: Point::new((from.x + to.x) / 2.0, (from.y + to.y) / 2.0),
            half: length / 2.0,
            along,
            slope: (dy.abs() > LEVEL).then(|| dx / dy),
            reach: radius.max(0.5) + 0.5,
            max: (2.0 * radius).min(1.0) * 255.0,
        }
    }

    /// The upper and the lower edge.
    fn rows(&self) -> [f32; 2] {
        let (from, to) = (self.from.y, self.to.y);
        [from.min(to) - self.reach, from.max(to) + self.reach]
    }

    /// Left and right edge of the covered part of the row with its middle at `y`.
    #[inline(always)]
    fn columns(&self, y: f32) -> [f32; 2] {
        let Some(slope) = self.slope else {
            let (from, to) = (self.from.x, self.to.x);
            return [from.min(to) - self.reach, from.max(to) + self.reach];
        };
        let (upper, lower) = (self.from.y.min(self.to.y), self.from.y.max(self.to.y));
        let at = |y: f32| self.from.x + (y.clamp(upper, lower) - self.from.y) * slope;
        let (a, b) = (at(y - self.reach), at(y + self.reach));
        [a.min(b) - self.reach, a.max(b) + self.reach]
    }

    /// Coverage of the pixel with its middle at `point`, 0…255.
    #[inline(always)]
    fn level(&self, point: Point) -> u8 {
        let (x, y) = (point.x - self.middle.x, point.y - self.middle.y);
        let across = (x * self.along.y - y * self.along.x).abs();
        let beyond = (x * self.along.x + y * self.along.y).abs() - self.half;
        let distance = if beyond > 0.0 {
            (across * across + beyond * beyond).sqrt()
        } else {
            across
        };
        ((self.reach - distance).clamp(0.0, 1.0) * self.max + 0.5) as u8
    }
}

#[cfg(test)]
mod tests;
