// SPDX-License-Identifier: MPL-2.0
//! Unpacked rows of a frame.

use crate::image::{PixelRows, Plane, ROW_GROUP};
use crate::memory::{self, OutOfMemory};

/// The unpacked rows of a frame that a crop reads. Other rows stay zero: the system provides memory
/// only for pages that are written.
pub(super) struct Picture {
    data: Vec<u8>,
    stride: usize,
}

impl Picture {
    /// Unpacks the rows of a frame of `width`×`height` pixels for which `is_needed` returns true.
    pub(super) fn unpack(
        source: &dyn PixelRows,
        [width, height]: [usize; 2],
        is_needed: impl Fn(usize) -> bool,
    ) -> Result<Self, OutOfMemory> {
        let pixel = source.layout().components.first().map_or(0, |c| c.step);
        let stride = width.next_multiple_of(ROW_GROUP) * pixel;
        let purpose = format_args!("unpacking a frame of {width}×{height} pixels");
        let mut data = memory::zeros(stride * height, purpose)?;
        let mut rows = (0..height).filter(|row| is_needed(*row));
        source.unpack(&mut rows, stride, &mut data);
        Ok(Self { data, stride })
    }

    /// Returns the only plane.
    pub(super) fn plane(&self) -> Plane<'_> {
        Plane {
            data: &self.data,
            stride: self.stride,
        }
    }
}
