// SPDX-License-Identifier: MPL-2.0
//! Frames of red, green and blue side by side.

use super::pixels::Component;
use super::{Raster, Rows, Source, blend, byte};
use crate::image::{ImageView, PixelFormat};
use crate::sample::grid::{LANES, Lanes};

/// RGB in pixels of `BYTES` bytes. Like `videoconvert` it ignores the range of the codes.
pub struct PackedRgb<'a, const BYTES: usize> {
    size: [usize; 2],
    rows: Rows<'a>,
    /// Bit positions of red, green and blue in a little-endian pixel.
    shifts: [u32; 3],
}

impl<'a, const BYTES: usize> PackedRgb<'a, BYTES> {
    pub fn new(image: &ImageView<'a>, format: PixelFormat) -> Self {
        let shifts = match format {
            PixelFormat::Bgr | PixelFormat::Bgrx => [16, 8, 0],
            PixelFormat::Xrgb => [8, 16, 24],
            PixelFormat::Xbgr => [24, 16, 8],
            _ => [0, 8, 16],
        };
        Self {
            size: image.stored_size(),
            rows: Rows::new(image.planes()[0], image.height()),
            shifts,
        }
    }
}

impl<const BYTES: usize> Source for PackedRgb<'_, BYTES> {
    #[inline(always)]
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>, out: &mut [Lanes<f32>; 3]) {
        let raster = Raster::new(x, y, self.size);
        let mut pixels = [[0u32; LANES]; 4];
        let offsets = self.rows.offsets(&raster, BYTES as u32);
        for i in 0..LANES {
            let [top, bottom] = self.rows.pair(offsets[i]).map(u64::from_le_bytes);
            pixels[0][i] = top as u32;
            pixels[1][i] = (top >> (8 * BYTES)) as u32;
            pixels[2][i] = bottom as u32;
            pixels[3][i] = (bottom >> (8 * BYTES)) as u32;
        }
        for (channel, shift) in out.iter_mut().zip(self.shifts) {
            for i in 0..LANES {
                let [a, b, c, d] = [0, 1, 2, 3].map(|tap: usize| byte(pixels[tap][i], shift));
                channel[i] = blend([a, b], [c, d], raster.x.weight[i], raster.y.weight[i]);
            }
        }
    }

    #[inline(always)]
    fn pixels(&self, x: usize, y: usize, out: &mut [Lanes<f32>; 3]) {
        for (channel, shift) in out.iter_mut().zip(self.shifts) {
            let component = Component::new(self.rows, shift as usize / 8, BYTES);
            let levels: Lanes<u8> = component.run(x, y);
            for i in 0..LANES {
                channel[i] = f32::from(levels[i]);
            }
        }
    }
}
