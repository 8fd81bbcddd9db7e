// SPDX-License-Identifier: MPL-2.0
//! Reads the four neighbours of each position from the layouts that frames have, and blends them.
//!
//! Positions arrive inside the image, in 32nds of a pixel from the first to the last pixel's index. The neighbours are
//! pixel `first` and the one after it, `first` at most the last but one: on the last pixel the second neighbour has the
//! whole weight. So nothing outside the image is ever looked at, but where a side has one pixel: there the second
//! neighbour has no weight.

use super::color::{Spread, YuvToRgb, spread};
use super::grid::{LANES, Lanes, STEP_BITS, STEPS};
use super::level::{code, round};
use crate::face::image::{ChromaSite, ImageView, PixelFormat, Plane};

/// Colours at positions.
pub trait Source {
    /// Columns and rows.
    fn size(&self) -> [usize; 2];

    /// Writes red, green and blue, 0…255 and not rounded, at positions inside the image.
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>, out: &mut [Lanes<f32>; 3]);
}

/// The neighbours of positions along one axis.
struct Neighbours {
    first: Lanes<u32>,
    /// Weight of the second neighbour; the first has the rest.
    weight: Lanes<f32>,
}

impl Neighbours {
    /// `positions` are in 2^−`BITS` of the distance between two of `count` samples.
    #[inline(always)]
    fn new<const BITS: u32>(positions: &Lanes<i32>, count: usize) -> Self {
        let last_first = count.saturating_sub(2) as i32;
        let mut out = Self {
            first: [0; LANES],
            weight: [0.0; LANES],
        };
        for i in 0..LANES {
            let first = (positions[i] >> BITS).min(last_first);
            out.first[i] = first as u32;
            out.weight[i] = (positions[i] - (first << BITS)) as f32 / (1 << BITS) as f32;
        }
        out
    }

    /// Along a chroma axis of half resolution between whose samples there is interpolation, for luma `positions`.
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

    /// Along a chroma axis of half resolution whose samples hold for two luma samples each, for luma `positions`.
    #[inline(always)]
    fn repeated(positions: &Lanes<i32>, count: usize) -> Self {
        let mut own = [0; LANES];
        for i in 0..LANES {
            let luma = positions[i] >> STEP_BITS;
            // Only after an odd luma sample comes another chroma sample.
            let weight = (positions[i] & (STEPS - 1)) * (luma & 1);
            own[i] = ((luma >> 1) << STEP_BITS) + weight;
        }
        Self::new::<STEP_BITS>(&own, count)
    }
}

/// The neighbours of positions in a plane.
pub struct Raster {
    x: Neighbours,
    y: Neighbours,
}

impl Raster {
    /// In a plane of one sample for each pixel.
    #[inline(always)]
    fn new(x: &Lanes<i32>, y: &Lanes<i32>, size: [usize; 2]) -> Self {
        Self {
            x: Neighbours::new::<STEP_BITS>(x, size[0]),
            y: Neighbours::new::<STEP_BITS>(y, size[1]),
        }
    }
}

/// A plane from which vertical neighbours are read.
#[derive(Clone, Copy)]
struct Rows<'a> {
    /// The plane but for its last row.
    upper: &'a [u8],
    /// The plane but for its first row, and as long as `upper`: one bounds check does for both. A plane of one row is
    /// both.
    lower: &'a [u8],
    stride: u32,
}

impl<'a> Rows<'a> {
    fn new(plane: Plane<'a>, rows: usize) -> Self {
        let below = if rows > 1 { plane.stride } else { 0 };
        let lower = plane.data.get(below..).unwrap_or_default();
        let upper = plane.data.get(..lower.len()).unwrap_or_default();
        Self {
            upper,
            lower,
            stride: plane.stride as u32,
        }
    }

    /// Byte offsets of pixels of `bytes` bytes; an image's planes are known to hold less than 4 GiB.
    #[inline(always)]
    fn offsets(&self, Raster { x, y }: &Raster, bytes: u32) -> Lanes<u32> {
        let mut out = [0; LANES];
        for i in 0..LANES {
            let row = y.first[i].wrapping_mul(self.stride);
            out[i] = row.wrapping_add(x.first[i].wrapping_mul(bytes));
        }
        out
    }

    /// `N` bytes from `offset` on, and those below them. Bytes past the end read as 0: they are padding or meet a weight
    /// of 0.
    #[inline(always)]
    fn pair<const N: usize>(&self, offset: u32) -> [[u8; N]; 2] {
        let range = offset as usize..offset as usize + N;
        match (self.upper.get(range.clone()), self.lower.get(range)) {
            (Some(upper), Some(lower)) => [copy(upper), copy(lower)],
            _ => [load_tail(self.upper, offset), load_tail(self.lower, offset)],
        }
    }
}

#[inline(always)]
fn copy<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

#[cold]
fn load_tail<const N: usize>(data: &[u8], offset: u32) -> [u8; N] {
    std::array::from_fn(|i| data.get(offset as usize + i).copied().unwrap_or(0))
}

/// The byte of `word` at bit `shift`.
#[inline(always)]
fn byte(word: u32, shift: u32) -> f32 {
    ((word >> shift) & 0xff) as i32 as f32
}

/// Bilinear interpolation; exact in `f32` for 8-bit samples and weights of up to 6 binary digits.
#[inline(always)]
fn blend(top: [f32; 2], bottom: [f32; 2], wx: f32, wy: f32) -> f32 {
    let top = top[0] + (top[1] - top[0]) * wx;
    let bottom = bottom[0] + (bottom[1] - bottom[0]) * wx;
    top + (bottom - top) * wy
}

/// RGB in pixels of `BYTES` bytes.
pub struct PackedRgb<'a, const BYTES: usize> {
    size: [usize; 2],
    rows: Rows<'a>,
    /// Bit positions of red, green and blue in a little-endian pixel.
    shifts: [u32; 3],
}

impl<'a, const BYTES: usize> PackedRgb<'a, BYTES> {
    pub fn new(image: &ImageView<'a>) -> Self {
        let shifts = match image.format() {
            PixelFormat::Bgr | PixelFormat::Bgrx => [16, 8, 0],
            PixelFormat::Xrgb => [8, 16, 24],
            PixelFormat::Xbgr => [24, 16, 8],
            _ => [0, 8, 16],
        };
        Self {
            size: [image.width(), image.height()],
            rows: Rows::new(image.plane(0), image.height()),
            shifts,
        }
    }
}

impl<const BYTES: usize> Source for PackedRgb<'_, BYTES> {
    fn size(&self) -> [usize; 2] {
        self.size
    }

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
}

/// Luma alone.
pub struct Gray<'a> {
    size: [usize; 2],
    rows: Rows<'a>,
    to_rgb: YuvToRgb,
}

impl<'a> Gray<'a> {
    pub fn new(image: &ImageView<'a>) -> Self {
        Self {
            size: [image.width(), image.height()],
            rows: Rows::new(image.plane(0), image.height()),
            to_rgb: YuvToRgb::new(image.colorimetry()),
        }
    }
}

impl Source for Gray<'_> {
    fn size(&self) -> [usize; 2] {
        self.size
    }

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
}

/// Bit positions of the top left, top right, bottom left and bottom right neighbour in a word made by [`join`].
const LUMA_SHIFTS: [u32; 4] = [0, 8, 16, 24];

/// Bit positions in a word of columns of which each holds its upper, then its lower neighbour.
const COLUMN_SHIFTS: [u32; 4] = [0, 16, 8, 24];

/// Two pairs of bytes in one word.
#[inline(always)]
fn join(pairs: [[u8; 2]; 2]) -> u32 {
    let [low, high] = pairs.map(u16::from_le_bytes);
    u32::from(low) | u32::from(high) << 16
}

/// Interpolates luma held in words.
#[inline(always)]
fn blend_luma(words: &Lanes<u32>, raster: &Raster, out: &mut Lanes<Spread>) {
    for i in 0..LANES {
        let [a, b, c, d] = LUMA_SHIFTS.map(|shift| byte(words[i], shift));
        let luma = blend([a, b], [c, d], raster.x.weight[i], raster.y.weight[i]);
        out[i] = spread(code(luma));
    }
}

/// Interpolates chroma held in words, rounding along rows and then again between them as `GstVideoChromaResample` does.
#[inline(always)]
fn blend_chroma(words: &Lanes<u32>, shifts: [u32; 4], raster: &Raster, out: &mut Lanes<Spread>) {
    for i in 0..LANES {
        let [a, b, c, d] = shifts.map(|shift| byte(words[i], shift));
        let wx = raster.x.weight[i];
        let (top, bottom) = (round(a + (b - a) * wx), round(c + (d - c) * wx));
        out[i] = spread(code(top + (bottom - top) * raster.y.weight[i]));
    }
}

/// How chroma of half resolution becomes that of pixels, for each format as `videoconvert` does it.
#[derive(Clone, Copy)]
enum Upsampling {
    /// Interpolation along both axes, from where the samples are.
    Both(ChromaSite),
    /// Interpolation along rows; each luma row has its chroma row.
    Columns(ChromaSite),
    /// A sample for each 2×2 pixels.
    Repeat,
}

impl Upsampling {
    fn of(image: &ImageView) -> Self {
        let site = image.colorimetry().chroma_site;
        match image.format() {
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
}

/// Y′CbCr; `P` knows where the samples are.
pub struct Yuv<P> {
    size: [usize; 2],
    chroma_size: [usize; 2],
    upsampling: Upsampling,
    planes: P,
    to_rgb: YuvToRgb,
}

/// Where a Y′CbCr layout keeps its samples.
pub trait Planes {
    /// Bit positions of the four neighbours in a chroma word.
    const CHROMA_SHIFTS: [u32; 4];

    /// Reads the neighbours into words of luma, at [`LUMA_SHIFTS`], and of Cb and Cr, at [`Self::CHROMA_SHIFTS`].
    fn gather(&self, luma: &Raster, chroma: &Raster, words: &mut [Lanes<u32>; 3]);
}

impl<P: Planes> Yuv<P> {
    fn new(image: &ImageView, planes: P) -> Self {
        let (width, height) = (image.width(), image.height());
        let upsampling = Upsampling::of(image);
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
    fn size(&self) -> [usize; 2] {
        self.size
    }

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
}

/// NV12 and NV21.
pub struct SemiPlanar<'a> {
    luma: Rows<'a>,
    chroma: Rows<'a>,
    /// Bit positions of Cb and Cr in a pair.
    shifts: [u32; 2],
}

impl<'a> Yuv<SemiPlanar<'a>> {
    pub fn semi_planar(image: &ImageView<'a>) -> Self {
        let height = image.height();
        let planes = SemiPlanar {
            luma: Rows::new(image.plane(0), height),
            chroma: Rows::new(image.plane(1), height.div_ceil(2)),
            shifts: match image.format() {
                PixelFormat::Nv21 => [8, 0],
                _ => [0, 8],
            },
        };
        Self::new(image, planes)
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
}

/// I420 and YV12.
pub struct Planar<'a> {
    luma: Rows<'a>,
    cb: Rows<'a>,
    cr: Rows<'a>,
}

impl<'a> Yuv<Planar<'a>> {
    pub fn planar(image: &ImageView<'a>) -> Self {
        let height = image.height();
        let [second, third] = [1, 2].map(|i| Rows::new(image.plane(i), height.div_ceil(2)));
        let (cb, cr) = match image.format() {
            PixelFormat::Yv12 => (third, second),
            _ => (second, third),
        };
        let luma = Rows::new(image.plane(0), height);
        Self::new(image, Planar { luma, cb, cr })
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
}

/// YUY2 and UYVY.
pub struct Packed<'a> {
    rows: Rows<'a>,
    /// Bit position of luma in a pair of bytes, 0 or 8; chroma has the other.
    luma_shift: u32,
}

impl<'a> Yuv<Packed<'a>> {
    pub fn packed(image: &ImageView<'a>) -> Self {
        let planes = Packed {
            rows: Rows::new(image.plane(0), image.height()),
            luma_shift: match image.format() {
                PixelFormat::Uyvy => 8,
                _ => 0,
            },
        };
        Self::new(image, planes)
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
}
