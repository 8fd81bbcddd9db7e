// SPDX-License-Identifier: MPL-2.0
//! Integral images, a band of rows at a time.
//!
//! Cell (x, y) is the sum of the pixels above row y and left of column x. A tilted sum covers the
//! pixels in the cone above the cell (`cv::integral`). Sums wrap around. Only differences are used,
//! and these are correct as long as they fit 32 bits.

use crate::memory::{self, OutOfMemory};

/// Number of cells read beyond the end of a row.
const OVERHANG: usize = 64;

/// Memory layout of the cells: planes of rows. With a step of 2 between windows, even columns come
/// before odd ones, so that neighbouring windows read neighbouring cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Distance of neighbouring windows, px.
    pub step: usize,
    /// Cells from one row to the next.
    pub stride: usize,
    /// Rows of a plane.
    pub rows: usize,
}

/// Values that a plane's cells add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plane {
    /// Pixels.
    Sums,
    /// Squares of pixels.
    Squares,
    /// Pixels in a cone.
    Tilted,
}

impl Layout {
    /// Creates a layout for `rows` rows of cells over images of up to `width` pixels.
    pub(super) fn new(step: usize, width: usize, rows: usize) -> Self {
        Self {
            step,
            stride: (width + 1).next_multiple_of(step),
            rows,
        }
    }

    /// Index of the cell at a column and row of a plane.
    pub(super) fn cell(&self, plane: Plane, [x, y]: [usize; 2]) -> usize {
        let column = x % self.step * (self.stride / self.step) + x / self.step;
        self.plane(plane) + y * self.stride + column
    }

    /// Number of cells in memory.
    fn cells(&self, tilted: bool) -> usize {
        let planes = if tilted { 3 } else { 2 };
        planes * self.stride * self.rows + OVERHANG
    }

    fn plane(&self, plane: Plane) -> usize {
        plane as usize * self.stride * self.rows
    }
}

/// The cells of a band of rows.
#[derive(Debug, Default)]
pub(super) struct Integral {
    /// Planes one after another.
    cells: Vec<i32>,
    /// Number of rows filled.
    filled: usize,
    /// The last row of each plane, columns in their order.
    sums: Vec<i32>,
    squares: Vec<i32>,
    cone: Option<Cone>,
}

impl Integral {
    /// Makes room for images of this layout.
    ///
    /// # Errors
    /// Returns an error if there is too little memory.
    pub(super) fn reserve(&mut self, layout: &Layout, tilted: bool) -> Result<(), OutOfMemory> {
        let missing = layout.cells(tilted).saturating_sub(self.cells.len());
        memory::reserve(&mut self.cells, missing, "the cascade's image")
    }

    /// Starts an image of `width` pixels with row 0, whose cells are 0.
    pub(super) fn begin(&mut self, layout: &Layout, width: usize, tilted: bool) {
        self.cells.resize(layout.cells(tilted), 0);
        for row in [&mut self.sums, &mut self.squares] {
            row.clear();
            row.resize(width + 1, 0);
        }
        self.cone = tilted.then(|| Cone::new(width));
        self.filled = 0;
        self.store(layout);
    }

    /// Appends the row of cells below `pixels`.
    #[inline(always)]
    pub(super) fn push(&mut self, layout: &Layout, pixels: &[u8]) {
        let (mut sum, mut square) = (0i32, 0i32);
        let cells = std::iter::zip(&mut self.sums[1..], &mut self.squares[1..]);
        for (pixel, (sums, squares)) in pixels.iter().zip(cells) {
            let pixel = i32::from(*pixel);
            sum = sum.wrapping_add(pixel);
            square = square.wrapping_add(pixel * pixel);
            *sums = sums.wrapping_add(sum);
            *squares = squares.wrapping_add(square);
        }
        if let Some(cone) = &mut self.cone {
            cone.push(pixels);
        }
        self.store(layout);
    }

    /// Drops the rows above `first`, which becomes row 0.
    pub(super) fn forget(&mut self, layout: &Layout, first: usize) {
        for plane in [Plane::Sums, Plane::Squares, Plane::Tilted] {
            let start = layout.plane(plane);
            let rows = start + first * layout.stride..start + self.filled * layout.stride;
            if rows.end <= self.cells.len() {
                self.cells.copy_within(rows, start);
            }
        }
        self.filled -= first;
    }

    /// All cells from a row's first window onwards.
    pub(super) fn row(&self, layout: &Layout, row: usize) -> &[i32] {
        &self.cells[row * layout.stride..]
    }

    #[inline(always)]
    fn store(&mut self, layout: &Layout) {
        let tilted = self.cone.as_ref().map(|cone| (Plane::Tilted, &cone.last));
        let rows = [(Plane::Sums, &self.sums), (Plane::Squares, &self.squares)];
        for (plane, row) in rows.into_iter().chain(tilted) {
            let start = layout.cell(plane, [0, self.filled]);
            let cells = &mut self.cells[start..][..layout.stride];
            match layout.step {
                1 => cells[..row.len()].copy_from_slice(row),
                _ => deinterleave(row, cells),
            }
        }
        self.filled += 1;
    }
}

/// Copies even columns to the first half of `cells`, and odd ones to the second.
#[inline(always)]
fn deinterleave(row: &[i32], cells: &mut [i32]) {
    let (even, odd) = cells.split_at_mut(cells.len() / 2);
    let (pairs, last) = row.as_chunks::<2>();
    for ((even, odd), pair) in even.iter_mut().zip(odd).zip(pairs) {
        [*even, *odd] = *pair;
    }
    if let [last] = last {
        even[pairs.len()] = *last;
    }
}

/// The last two rows of tilted sums.
#[derive(Debug)]
struct Cone {
    last: Vec<i32>,
    last_but_one: Vec<i32>,
    /// The row of pixels above the last row of cells.
    pixels: Vec<u8>,
}

impl Cone {
    fn new(width: usize) -> Self {
        Self {
            last: vec![0; width + 1],
            last_but_one: vec![0; width + 1],
            pixels: vec![0; width],
        }
    }

    /// Appends a row. The two cones above a cell overlap in the cone two rows above it, and miss
    /// two pixels. A cone outside the image has the sum of the nearest cone above it.
    fn push(&mut self, pixels: &[u8]) {
        let (above, two_above) = (&self.last, &mut self.last_but_one);
        let width = pixels.len();
        let (first, last) = (two_above[0], two_above[width]);
        for x in 0..=width {
            let left = if x > 0 { above[x - 1] } else { first };
            let right = if x < width { above[x + 1] } else { last };
            let own = match x.checked_sub(1) {
                Some(column) => i32::from(pixels[column]) + i32::from(self.pixels[column]),
                None => 0,
            };
            two_above[x] = left
                .wrapping_add(right)
                .wrapping_sub(two_above[x])
                .wrapping_add(own);
        }
        std::mem::swap(&mut self.last, &mut self.last_but_one);
        self.pixels.copy_from_slice(pixels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cv::integral`, from its definition.
    fn expected(plane: Plane, image: &[Vec<u8>], [x, y]: [usize; 2]) -> u32 {
        let mut sum = 0u32;
        for (row, pixels) in image.iter().enumerate().take(y) {
            let reach = (y - row - 1) as isize;
            for (column, pixel) in pixels.iter().enumerate() {
                let pixel = u32::from(*pixel);
                sum = sum.wrapping_add(match plane {
                    Plane::Sums if column < x => pixel,
                    Plane::Squares if column < x => pixel * pixel,
                    Plane::Tilted if (column as isize - x as isize + 1).abs() <= reach => pixel,
                    _ => 0,
                });
            }
        }
        sum
    }

    fn noise(width: usize, height: usize) -> Vec<Vec<u8>> {
        let row = |y| {
            (0..width)
                .map(move |x| ((x * x + 3 * y) * 37 % 256) as u8)
                .collect()
        };
        (0..height).map(row).collect()
    }

    #[test]
    fn cells_are_the_sums_that_they_are_said_to_be() {
        let (band, kept) = (6, 4);
        for (step, width) in [(1, 7), (1, 8), (2, 7), (2, 8), (2, 3)] {
            let image = noise(width, 12);
            let layout = Layout::new(step, width + 3, band + kept);
            let mut integral = Integral::default();
            for round in 0..2 {
                integral.begin(&layout, width, true);
                let mut top = 0;
                for (y, pixels) in image.iter().enumerate() {
                    if y + 1 - top == band + kept {
                        integral.forget(&layout, band);
                        top += band;
                    }
                    integral.push(&layout, pixels);
                }
                for plane in [Plane::Sums, Plane::Squares, Plane::Tilted] {
                    for (x, y) in (0..=width).flat_map(|x| (top..=12).map(move |y| (x, y))) {
                        let cells = integral.row(&layout, y - top);
                        let cell = cells[layout.cell(plane, [x, 0])] as u32;
                        let expected = expected(plane, &image, [x, y]);
                        assert_eq!(cell, expected, "{plane:?} {step} {width} {x} {y} {round}");
                    }
                }
            }
        }
    }

    #[test]
    fn sums_that_wrap_around_have_right_differences() {
        let (width, rows) = (40_000, 40);
        let layout = Layout::new(1, width, rows + 1);
        let mut integral = Integral::default();
        integral.begin(&layout, width, false);
        for _ in 0..rows {
            integral.push(&layout, &vec![255; width]);
        }
        let at = |plane, x, y| integral.row(&layout, 0)[layout.cell(plane, [x, y])];
        let sum = |plane| {
            let (left, right) = (width - 24, width);
            let upper = at(plane, right, 16).wrapping_sub(at(plane, left, 16));
            let lower = at(plane, right, 40).wrapping_sub(at(plane, left, 40));
            lower.wrapping_sub(upper)
        };
        assert!(at(Plane::Squares, width, rows) as u32 as usize != width * rows * 255 * 255);
        assert_eq!(sum(Plane::Sums), 24 * 24 * 255);
        assert_eq!(sum(Plane::Squares), 24 * 24 * 255 * 255);
    }
}
