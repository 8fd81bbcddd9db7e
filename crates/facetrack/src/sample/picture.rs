// SPDX-License-Identifier: MPL-2.0
//! The rows of a frame that a crop needs, unpacked.

use crate::image::{PixelRows, Plane};

/// Rows are as long as whole groups of so many pixels: functions that unpack words of several pixels
/// may write beyond the last one. v210 has the longest groups.
const GROUP: usize = 48;

/// Unpacked rows of a frame. Others are there too, and black: memory that is zero already is only
/// taken up where it is written to.
pub struct Picture {
    data: Vec<u8>,
    stride: usize,
}

impl Picture {
    /// Unpacks the rows of a frame of `width`×`height` pixels for which `is_needed` holds.
    pub fn unpack(
        source: &dyn PixelRows,
        [width, height]: [usize; 2],
        is_needed: impl Fn(usize) -> bool,
    ) -> Self {
        let pixel = source.layout().components.first().map_or(0, |c| c.step);
        let stride = width.next_multiple_of(GROUP) * pixel;
        let mut data = vec![0; stride * height];
        let mut rows = (0..height).filter(|row| is_needed(*row));
        source.unpack(&mut rows, stride, &mut data);
        Self { data, stride }
    }

    /// Its only plane.
    pub fn plane(&self) -> Plane<'_> {
        Plane {
            data: &self.data,
            stride: self.stride,
        }
    }
}
