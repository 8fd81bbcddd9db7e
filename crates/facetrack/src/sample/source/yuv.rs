// SPDX-License-Identifier: MPL-2.0
//! Frames of luma and subsampled chroma.

mod layouts;

use super::pixels::{Component, Quarters, blend};
use super::{Neighbours, Raster, Source, blend_luma, byte};
use crate::image::{ChromaSite, ImageView, PixelFormat};
use crate::sample::color::{Spread, YuvToRgb, spread};
use crate::sample::grid::{LANES, Lanes, STEP_BITS, STEPS};
use crate::sample::level::{code, round};

/// Upsampling of chroma, for each format like in `videoconvert`.
#[derive(Clone, Copy)]
enum Upsampling {
    /// Interpolation along both axes.
    Both(ChromaSite),
    /// Interpolation along rows; each luma row has its chroma row.
    Columns(ChromaSite),
    /// A sample for each 2×2 pixels.
    Repeat,
}

impl Upsampling {
    fn of(image: &ImageView, format: PixelFormat) -> Self {
        let site = image.colorimetry().chroma_site;
        match format {
            PixelFormat::I420 | PixelFormat::Yv12 => Self::Repeat,
            PixelFormat::Yuy2 | PixelFormat::Uyvy => Self::Columns(site),
            _ => Self::Both(site),
        }
    }

    fn rows(self, height: usize) -> usize {
        match self {
            Self::Columns(_) => height,
            Self::Both(_) | Self::Repeat => height.div_ceil(2),
        }
    }

    /// Along rows of whole pixels.
    fn across(self) -> Quarters {
        match self {
            Self::Both(site) | Self::Columns(site) => {
                Quarters::interpolated(site.horizontally_cosited)
            }
            Self::Repeat => Quarters::REPEATED,
        }
    }

    /// Between rows of whole pixels, unless each has its own chroma.
    fn down(self) -> Option<Quarters> {
        match self {
            Self::Both(site) => Some(Quarters::interpolated(site.vertically_cosited)),
            Self::Columns(_) => None,
            Self::Repeat => Some(Quarters::REPEATED),
        }
    }
}

/// Y′CbCr; `P` reads the samples.
pub struct Yuv<P> {
    size: [usize; 2],
    chroma_size: [usize; 2],
    upsampling: Upsampling,
    planes: P,
    to_rgb: YuvToRgb,
}

/// The samples of a Y′CbCr format.
pub trait Planes {
    /// Bit positions of the four neighbors in a chroma word.
    const CHROMA_SHIFTS: [u32; 4];

    /// Reads the neighbors into words of luma, at [`LUMA_SHIFTS`], and of Cb and Cr, at
    /// [`Self::CHROMA_SHIFTS`].
    fn gather(&self, luma: &Raster, chroma: &Raster, words: &mut [Lanes<u32>; 3]);

    /// Luma, Cb and Cr.
    fn components(&self) -> [Component<'_>; 3];
}

impl<P: Planes> Yuv<P> {
    fn new(image: &ImageView, format: PixelFormat, planes: P) -> Self {
        let [width, height] = image.stored_size();
        let upsampling = Upsampling::of(image, format);
        Self {
            size: [width, height],
            chroma_size: [width.div_ceil(2), upsampling.rows(height)],
            upsampling,
            planes,
            to_rgb: YuvToRgb::new(image.colorimetry()),
        }
    }
}

impl<P: Planes> Source for Yuv<P> {
    #[inline(always)]
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>, out: &mut [Lanes<f32>; 3]) {
        let [columns, rows] = self.chroma_size;
        let luma = Raster::new(x, y, self.size);
        let chroma = match self.upsampling {
            Upsampling::Both(site) => Raster {
                x: Neighbours::interpolated(x, site.horizontally_cosited, columns),
                y: Neighbours::interpolated(y, site.vertically_cosited, rows),
            },
            Upsampling::Columns(site) => Raster {
                x: Neighbours::interpolated(x, site.horizontally_cosited, columns),
                y: Neighbours::new::<STEP_BITS>(y, rows),
            },
            Upsampling::Repeat => Raster {
                x: Neighbours::repeated(x, columns),
                y: Neighbours::repeated(y, rows),
            },
        };
        let mut words = [[0; LANES]; 3];
        self.planes.gather(&luma, &chroma, &mut words);
        let mut codes = [[0; LANES]; 3];
        blend_luma(&words[0], &luma, &mut codes[0]);
        blend_chroma(&words[1], P::CHROMA_SHIFTS, &chroma, &mut codes[1]);
        blend_chroma(&words[2], P::CHROMA_SHIFTS, &chroma, &mut codes[2]);
        self.to_rgb.apply(&codes, out);
    }

    #[inline(always)]
    fn pixels(&self, x: usize, y: usize, out: &mut [Lanes<f32>; 3]) {
        let [luma, cb, cr] = self.planes.components();
        let luma: Lanes<u8> = luma.run(x, y);
        let (cb, cr) = (self.chroma(&cb, x, y), self.chroma(&cr, x, y));
        let mut codes = [[0; LANES]; 3];
        for i in 0..LANES {
            codes[0][i] = spread(luma[i]);
            codes[1][i] = spread(cb[i]);
            codes[2][i] = spread(cr[i]);
        }
        self.to_rgb.apply(&codes, out);
    }
}

impl<P: Planes> Yuv<P> {
    /// Chroma of whole pixels.
    #[inline(always)]
    fn chroma(&self, component: &Component<'_>, x: usize, y: usize) -> Lanes<u8> {
        let [columns, rows] = self.chroma_size;
        let across = self.upsampling.across();
        let (own, other, quarters) = match self.upsampling.down() {
            None => (y, y, 0),
            Some(Quarters([before, _])) if y.is_multiple_of(2) => {
                (y / 2, (y / 2).saturating_sub(1), before)
            }
            Some(Quarters([_, after])) => (y / 2, (y / 2 + 1).min(rows - 1), after),
        };
        let mut codes = component.columns(x, own, columns, across);
        if quarters > 0 {
            let other = component.columns(x, other, columns, across);
            for i in 0..LANES {
                codes[i] = blend(codes[i], other[i], quarters);
            }
        }
        codes
    }
}

impl Neighbours {
    /// Along a chroma axis of half resolution, with interpolation, for luma `positions`.
    #[inline(always)]
    fn interpolated(positions: &Lanes<i32>, cosited: bool, count: usize) -> Self {
        const CHROMA_BITS: u32 = STEP_BITS + 1;
        let shift = if cosited { 0 } else { STEPS / 2 };
        let last = (count as i32 - 1) << CHROMA_BITS;
        let mut own = [0; LANES];
        for i in 0..LANES {
            own[i] = (positions[i] - shift).clamp(0, last);
        }
        Self::new::<CHROMA_BITS>(&own, count)
    }

    /// Along a chroma axis of half resolution, with repeated samples, for luma `positions`.
    #[inline(always)]
    fn repeated(positions: &Lanes<i32>, count: usize) -> Self {
        let mut own = [0; LANES];
        for i in 0..LANES {
            let luma = positions[i] >> STEP_BITS;
            // Only after an odd luma sample the chroma sample changes.
            let weight = (positions[i] & (STEPS - 1)) * (luma & 1);
            own[i] = ((luma >> 1) << STEP_BITS) + weight;
        }
        Self::new::<STEP_BITS>(&own, count)
    }
}

/// Interpolates chroma stored in words. Rounds along rows and then again between rows, like
/// `GstVideoChromaResample`.
#[inline(always)]
fn blend_chroma(words: &Lanes<u32>, shifts: [u32; 4], raster: &Raster, out: &mut Lanes<Spread>) {
    for i in 0..LANES {
        let [a, b, c, d] = shifts.map(|shift| byte(words[i], shift));
        let wx = raster.x.weight[i];
        let (top, bottom) = (round(a + (b - a) * wx), round(c + (d - c) * wx));
        out[i] = spread(code(top + (bottom - top) * raster.y.weight[i]));
    }
}
