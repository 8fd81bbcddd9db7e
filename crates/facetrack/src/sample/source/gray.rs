// SPDX-License-Identifier: MPL-2.0
//! Frames of luma alone.

use super::pixels::Component;
use super::{Raster, Rows, Source, blend_luma, join};
use crate::image::ImageView;
use crate::sample::color::{YuvToRgb, spread};
use crate::sample::grid::{LANES, Lanes};

/// GRAY8.
pub struct Gray<'a> {
    size: [usize; 2],
    rows: Rows<'a>,
    to_rgb: YuvToRgb,
}

impl<'a> Gray<'a> {
    pub fn new(image: &ImageView<'a>) -> Self {
        Self {
            size: image.stored_size(),
            rows: Rows::new(image.planes()[0], image.height()),
            to_rgb: YuvToRgb::new(image.colorimetry()),
        }
    }
}

impl Source for Gray<'_> {
    #[inline(always)]
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>, out: &mut [Lanes<f32>; 3]) {
        let raster = Raster::new(x, y, self.size);
        let mut words = [0; LANES];
        let offsets = self.rows.offsets(&raster, 1);
        for i in 0..LANES {
            words[i] = join(self.rows.pair(offsets[i]));
        }
        let mut luma = [0; LANES];
        blend_luma(&words, &raster, &mut luma);
        self.to_rgb.apply_gray(&luma, out);
    }

    #[inline(always)]
    fn pixels(&self, x: usize, y: usize, out: &mut [Lanes<f32>; 3]) {
        let luma: Lanes<u8> = Component::new(self.rows, 0, 1).run(x, y);
        let mut codes = [0; LANES];
        for i in 0..LANES {
            codes[i] = spread(luma[i]);
        }
        self.to_rgb.apply_gray(&codes, out);
    }
}
