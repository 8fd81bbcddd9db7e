// SPDX-License-Identifier: MPL-2.0
//! Where the Y′CbCr formats keep their samples.

use super::super::pixels::Component;
use super::super::{LUMA_SHIFTS, Raster, Rows, join};
use super::{Planes, Yuv};
use crate::image::{ImageView, PixelFormat};
use crate::sample::grid::{LANES, Lanes};

/// Bit positions in a word of columns of which each holds its upper, then its lower neighbour.
const COLUMN_SHIFTS: [u32; 4] = [0, 16, 8, 24];

/// NV12 and NV21.
pub struct SemiPlanar<'a> {
    luma: Rows<'a>,
    chroma: Rows<'a>,
    /// Bit positions of Cb and Cr in a pair.
    shifts: [u32; 2],
}

impl<'a> Yuv<SemiPlanar<'a>> {
    pub fn semi_planar(image: &ImageView<'a>, format: PixelFormat) -> Self {
        let height = image.height();
        let planes = SemiPlanar {
            luma: Rows::new(image.planes()[0], height),
            chroma: Rows::new(image.planes()[1], height.div_ceil(2)),
            shifts: match format {
                PixelFormat::Nv21 => [8, 0],
                _ => [0, 8],
            },
        };
        Self::new(image, format, planes)
    }
}

impl Planes for SemiPlanar<'_> {
    const CHROMA_SHIFTS: [u32; 4] = COLUMN_SHIFTS;

    #[inline(always)]
    fn gather(&self, luma: &Raster, chroma: &Raster, words: &mut [Lanes<u32>; 3]) {
        const EVEN: u32 = 0x00ff_00ff;
        let luma_offsets = self.luma.offsets(luma, 1);
        let chroma_offsets = self.chroma.offsets(chroma, 2);
        for i in 0..LANES {
            words[0][i] = join(self.luma.pair(luma_offsets[i]));
            let pair = self.chroma.pair(chroma_offsets[i]);
            let [top, bottom] = pair.map(u32::from_le_bytes);
            for (words, shift) in words[1..].iter_mut().zip(self.shifts) {
                words[i] = ((top >> shift) & EVEN) | ((bottom >> shift) & EVEN) << 8;
            }
        }
    }

    #[inline(always)]
    fn components(&self) -> [Component<'_>; 3] {
        let [cb, cr] = self
            .shifts
            .map(|shift| Component::new(self.chroma, shift as usize / 8, 2));
        [Component::new(self.luma, 0, 1), cb, cr]
    }
}

/// I420 and YV12.
pub struct Planar<'a> {
    luma: Rows<'a>,
    cb: Rows<'a>,
    cr: Rows<'a>,
}

impl<'a> Yuv<Planar<'a>> {
    pub fn planar(image: &ImageView<'a>, format: PixelFormat) -> Self {
        let height = image.height();
        let [second, third] = [1, 2].map(|i| Rows::new(image.planes()[i], height.div_ceil(2)));
        let (cb, cr) = match format {
            PixelFormat::Yv12 => (third, second),
            _ => (second, third),
        };
        let luma = Rows::new(image.planes()[0], height);
        Self::new(image, format, Planar { luma, cb, cr })
    }
}

impl Planes for Planar<'_> {
    const CHROMA_SHIFTS: [u32; 4] = LUMA_SHIFTS;

    #[inline(always)]
    fn gather(&self, luma: &Raster, chroma: &Raster, words: &mut [Lanes<u32>; 3]) {
        let luma_offsets = self.luma.offsets(luma, 1);
        let cb_offsets = self.cb.offsets(chroma, 1);
        let cr_offsets = self.cr.offsets(chroma, 1);
        for i in 0..LANES {
            words[0][i] = join(self.luma.pair(luma_offsets[i]));
            words[1][i] = join(self.cb.pair(cb_offsets[i]));
            words[2][i] = join(self.cr.pair(cr_offsets[i]));
        }
    }

    #[inline(always)]
    fn components(&self) -> [Component<'_>; 3] {
        [self.luma, self.cb, self.cr].map(|rows| Component::new(rows, 0, 1))
    }
}

/// YUY2 and UYVY.
pub struct Packed<'a> {
    rows: Rows<'a>,
    /// Bit position of luma in a pair of bytes, 0 or 8; chroma has the other.
    luma_shift: u32,
}

impl<'a> Yuv<Packed<'a>> {
    pub fn packed(image: &ImageView<'a>, format: PixelFormat) -> Self {
        let planes = Packed {
            rows: Rows::new(image.planes()[0], image.height()),
            luma_shift: match format {
                PixelFormat::Uyvy => 8,
                _ => 0,
            },
        };
        Self::new(image, format, planes)
    }
}

impl Planes for Packed<'_> {
    const CHROMA_SHIFTS: [u32; 4] = COLUMN_SHIFTS;

    #[inline(always)]
    fn gather(&self, luma: &Raster, chroma: &Raster, words: &mut [Lanes<u32>; 3]) {
        const EVEN: u32 = 0x00ff_00ff;
        const FIRST_OF_FOUR: u64 = 0x0000_00ff_0000_00ff;
        let luma_offsets = self.rows.offsets(luma, 2);
        let chroma_offsets = self.rows.offsets(chroma, 4);
        for i in 0..LANES {
            let pair = self.rows.pair(luma_offsets[i]).map(u32::from_le_bytes);
            let [top, bottom] = pair.map(|bytes| (bytes >> self.luma_shift) & EVEN);
            words[0][i] = ((top | top >> 8) & 0xffff) | (bottom | bottom >> 8) << 16;
            let pair = self.rows.pair(chroma_offsets[i]).map(u64::from_le_bytes);
            let [top, bottom] = pair.map(|bytes| bytes >> (8 - self.luma_shift));
            for (words, shift) in words[1..].iter_mut().zip([0, 16]) {
                let both =
                    ((top >> shift) & FIRST_OF_FOUR) | ((bottom >> shift) & FIRST_OF_FOUR) << 8;
                words[i] = both as u32 | (both >> 16) as u32;
            }
        }
    }

    #[inline(always)]
    fn components(&self) -> [Component<'_>; 3] {
        let luma = self.luma_shift as usize / 8;
        let chroma = 1 - luma;
        [
            Component::new(self.rows, luma, 2),
            Component::new(self.rows, chroma, 4),
            Component::new(self.rows, chroma + 2, 4),
        ]
    }
}
