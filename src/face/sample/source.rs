// SPDX-License-Identifier: MPL-2.0
//! Reads the four neighbours of each position from the layouts that frames have, and blends them.
//!
//! Positions arrive inside the image, in 32nds of a pixel from the first to the last pixel's index. The neighbours are
//! pixel `first` and the one after it, `first` at most the last but one: on the last pixel the second neighbour has the
//! whole weight. So nothing outside the image is ever looked at, but where a side has one pixel: there the second
//! neighbour has no weight.

use super::color::{Stretch, YuvToRgb, limit};
use super::grid::{LANES, Lanes, STEPS};
use crate::face::image::{ChromaSite, ImageView, PixelFormat, Plane};

/// Colours at positions.
pub trait Source {
    /// Columns and rows.
    fn size(&self) -> [usize; 2];

    /// Red, green and blue, 0…255 and not rounded, at positions inside the image.
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>) -> [Lanes<f32>; 3];
}

/// The neighbours of positions along one axis.
struct Neighbours {
    first: Lanes<u32>,
    /// Weight of the second neighbour; the first has the rest.
    weight: Lanes<f32>,
}

impl Neighbours {
    /// `positions` are in `1/steps` of the distance between two of `count` samples.
    #[inline(always)]
    fn new(positions: &Lanes<i32>, steps: i32, count: usize) -> Self {
        let last_first = count.saturating_sub(2) as i32;
        let mut out = Self {
            first: [0; LANES],
            weight: [0.0; LANES],
        };
        for i in 0..LANES {
            let first = (positions[i] / steps).min(last_first);
            out.first[i] = first as u32;
            out.weight[i] = (positions[i] - first * steps) as f32 / steps as f32;
        }
        out
    }

    /// Along a chroma axis of half resolution, for luma `positions`.
    #[inline(always)]
    fn subsampled(positions: &Lanes<i32>, cosited: bool, count: usize) -> Self {
        let shift = if cosited { 0 } else { STEPS / 2 };
        let last = (count as i32 - 1) * 2 * STEPS;
        Self::new(
            &positions.map(|p| (p - shift).clamp(0, last)),
            2 * STEPS,
            count,
        )
    }
}

/// A plane from which vertical neighbours are read.
#[derive(Clone, Copy)]
struct Rows<'a> {
    data: &'a [u8],
    stride: usize,
    /// Bytes to the row below; 0 in a plane of one row.
    below: usize,
}

impl<'a> Rows<'a> {
    fn new(plane: Plane<'a>, rows: usize) -> Self {
        Self {
            data: plane.data,
            stride: plane.stride,
            below: if rows > 1 { plane.stride } else { 0 },
        }
    }

    /// `N` bytes of row `row` from byte `offset` on, and those below them.
    #[inline(always)]
    fn pair<const N: usize>(&self, offset: usize, row: u32) -> [[u8; N]; 2] {
        let start = row as usize * self.stride + offset;
        [load(self.data, start), load(self.data, start + self.below)]
    }
}

/// `N` bytes from `start` on. Bytes past the end read as 0; they are padding or meet a weight of 0.
#[inline(always)]
fn load<const N: usize>(data: &[u8], start: usize) -> [u8; N] {
    match data.get(start..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => *bytes,
        None => load_tail(data, start),
    }
}

#[cold]
fn load_tail<const N: usize>(data: &[u8], start: usize) -> [u8; N] {
    std::array::from_fn(|i| data.get(start + i).copied().unwrap_or(0))
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
    stretch: Stretch,
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
            stretch: Stretch::of_luma(image.colorimetry().range),
        }
    }
}

impl<const BYTES: usize> Source for PackedRgb<'_, BYTES> {
    fn size(&self) -> [usize; 2] {
        self.size
    }

    #[inline(always)]
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>) -> [Lanes<f32>; 3] {
        let nx = Neighbours::new(x, STEPS, self.size[0]);
        let ny = Neighbours::new(y, STEPS, self.size[1]);
        let mut pixels = [[0u32; LANES]; 4];
        for i in 0..LANES {
            let pair = self
                .rows
                .pair::<8>(nx.first[i] as usize * BYTES, ny.first[i]);
            let [top, bottom] = pair.map(u64::from_le_bytes);
            pixels[0][i] = top as u32;
            pixels[1][i] = (top >> (8 * BYTES)) as u32;
            pixels[2][i] = bottom as u32;
            pixels[3][i] = (bottom >> (8 * BYTES)) as u32;
        }
        self.shifts.map(|shift| {
            let mut out = [0.0; LANES];
            for i in 0..LANES {
                let [a, b, c, d] = [0, 1, 2, 3].map(|tap: usize| byte(pixels[tap][i], shift));
                let level = blend([a, b], [c, d], nx.weight[i], ny.weight[i]);
                out[i] = limit(self.stretch.apply(level));
            }
            out
        })
    }
}

/// Luma alone.
pub struct Gray<'a> {
    size: [usize; 2],
    rows: Rows<'a>,
    stretch: Stretch,
}

impl<'a> Gray<'a> {
    pub fn new(image: &ImageView<'a>) -> Self {
        Self {
            size: [image.width(), image.height()],
            rows: Rows::new(image.plane(0), image.height()),
            stretch: Stretch::of_luma(image.colorimetry().range),
        }
    }
}

impl Source for Gray<'_> {
    fn size(&self) -> [usize; 2] {
        self.size
    }

    #[inline(always)]
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>) -> [Lanes<f32>; 3] {
        let nx = Neighbours::new(x, STEPS, self.size[0]);
        let ny = Neighbours::new(y, STEPS, self.size[1]);
        let mut words = [0; LANES];
        for i in 0..LANES {
            words[i] = join(self.rows.pair(nx.first[i] as usize, ny.first[i]));
        }
        let mut out = blend_words(&words, LUMA_SHIFTS, &nx, &ny);
        for value in &mut out {
            *value = limit(self.stretch.apply(*value));
        }
        [out; 3]
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

/// Blends four neighbours held in one word; `shifts` are their bit positions: top left, top right, bottom left, right.
#[inline(always)]
fn blend_words(
    words: &Lanes<u32>,
    shifts: [u32; 4],
    nx: &Neighbours,
    ny: &Neighbours,
) -> Lanes<f32> {
    let mut out = [0.0; LANES];
    for i in 0..LANES {
        let [a, b, c, d] = shifts.map(|shift| byte(words[i], shift));
        out[i] = blend([a, b], [c, d], nx.weight[i], ny.weight[i]);
    }
    out
}

/// Y′CbCr; `P` knows where the samples are.
pub struct Yuv<P> {
    size: [usize; 2],
    chroma_size: [usize; 2],
    site: ChromaSite,
    planes: P,
    to_rgb: YuvToRgb,
}

/// Where a Y′CbCr layout keeps its samples.
pub trait Planes {
    /// Bit positions of the four neighbours in a chroma word.
    const CHROMA_SHIFTS: [u32; 4];

    /// Luma of columns `x`, `x`+1 in rows `y`, `y`+1, at [`LUMA_SHIFTS`] of a word.
    fn luma(&self, x: u32, y: u32) -> u32;

    /// Cb of columns `x`, `x`+1 in rows `y`, `y`+1 of the chroma raster, at [`Self::CHROMA_SHIFTS`] of a word, and Cr likewise.
    fn chroma(&self, x: u32, y: u32) -> [u32; 2];
}

impl<P: Planes> Yuv<P> {
    fn new(image: &ImageView, planes: P) -> Self {
        let (width, height) = (image.width(), image.height());
        let chroma_height = match image.format() {
            PixelFormat::Yuy2 | PixelFormat::Uyvy => height,
            _ => height.div_ceil(2),
        };
        Self {
            size: [width, height],
            chroma_size: [width.div_ceil(2), chroma_height],
            site: image.colorimetry().chroma_site,
            planes,
            to_rgb: YuvToRgb::new(image.colorimetry()),
        }
    }

    /// Chroma rows are luma rows.
    fn has_full_height_chroma(&self) -> bool {
        self.chroma_size[1] == self.size[1]
    }
}

impl<P: Planes> Source for Yuv<P> {
    fn size(&self) -> [usize; 2] {
        self.size
    }

    #[inline(always)]
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>) -> [Lanes<f32>; 3] {
        let luma_x = Neighbours::new(x, STEPS, self.size[0]);
        let luma_y = Neighbours::new(y, STEPS, self.size[1]);
        let [columns, rows] = self.chroma_size;
        let chroma_x = Neighbours::subsampled(x, self.site.horizontally_cosited, columns);
        let chroma_y = if self.has_full_height_chroma() {
            Neighbours::new(y, STEPS, rows)
        } else {
            Neighbours::subsampled(y, self.site.vertically_cosited, rows)
        };
        let mut words = [[0; LANES]; 3];
        for i in 0..LANES {
            words[0][i] = self.planes.luma(luma_x.first[i], luma_y.first[i]);
            let [u, v] = self.planes.chroma(chroma_x.first[i], chroma_y.first[i]);
            words[1][i] = u;
            words[2][i] = v;
        }
        let luma = blend_words(&words[0], LUMA_SHIFTS, &luma_x, &luma_y);
        let cb = blend_words(&words[1], P::CHROMA_SHIFTS, &chroma_x, &chroma_y);
        let cr = blend_words(&words[2], P::CHROMA_SHIFTS, &chroma_x, &chroma_y);
        let mut out = [[0.0; LANES]; 3];
        for i in 0..LANES {
            let rgb = self.to_rgb.apply(luma[i], cb[i], cr[i]);
            for (channel, value) in out.iter_mut().zip(rgb) {
                channel[i] = value;
            }
        }
        out
    }
}

/// NV12 and NV21.
pub struct SemiPlanar<'a> {
    luma: Rows<'a>,
    chroma: Rows<'a>,
    /// Bit position of Cb in a chroma pair, 0 or 8; Cr has the other.
    cb_shift: u32,
}

impl<'a> Yuv<SemiPlanar<'a>> {
    pub fn semi_planar(image: &ImageView<'a>) -> Self {
        let height = image.height();
        let planes = SemiPlanar {
            luma: Rows::new(image.plane(0), height),
            chroma: Rows::new(image.plane(1), height.div_ceil(2)),
            cb_shift: if image.format() == PixelFormat::Nv21 {
                8
            } else {
                0
            },
        };
        Self::new(image, planes)
    }
}

impl Planes for SemiPlanar<'_> {
    const CHROMA_SHIFTS: [u32; 4] = COLUMN_SHIFTS;

    #[inline(always)]
    fn luma(&self, x: u32, y: u32) -> u32 {
        join(self.luma.pair(x as usize, y))
    }

    #[inline(always)]
    fn chroma(&self, x: u32, y: u32) -> [u32; 2] {
        const EVEN: u32 = 0x00ff_00ff;
        let [top, bottom] = self.chroma.pair(x as usize * 2, y).map(u32::from_le_bytes);
        [self.cb_shift, 8 - self.cb_shift]
            .map(|shift| ((top >> shift) & EVEN) | ((bottom >> shift) & EVEN) << 8)
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
    fn luma(&self, x: u32, y: u32) -> u32 {
        join(self.luma.pair(x as usize, y))
    }

    #[inline(always)]
    fn chroma(&self, x: u32, y: u32) -> [u32; 2] {
        [self.cb, self.cr].map(|plane| join(plane.pair(x as usize, y)))
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
    fn luma(&self, x: u32, y: u32) -> u32 {
        const LUMA: u32 = 0x00ff_00ff;
        let pair = self.rows.pair(x as usize * 2, y).map(u32::from_le_bytes);
        let [top, bottom] = pair.map(|word| (word >> self.luma_shift) & LUMA);
        (top | top >> 8) & 0xffff | (bottom | bottom >> 8) << 16
    }

    #[inline(always)]
    fn chroma(&self, x: u32, y: u32) -> [u32; 2] {
        const FIRST_OF_FOUR: u64 = 0x0000_00ff_0000_00ff;
        let pair = self.rows.pair(x as usize * 4, y).map(u64::from_le_bytes);
        let [top, bottom] = pair.map(|word| word >> (8 - self.luma_shift));
        [0, 16].map(|shift| {
            let columns =
                ((top >> shift) & FIRST_OF_FOUR) | ((bottom >> shift) & FIRST_OF_FOUR) << 8;
            columns as u32 | (columns >> 16) as u32
        })
    }
}
