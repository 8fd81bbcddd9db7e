// SPDX-License-Identifier: MPL-2.0
//! Frames in any format whose samples are at regular distances, with 5 to 16 bits.

use super::channel::{Channel, Located, WORD, Words};
use super::{blend, blend_rows};
use crate::image::{Arithmetic, ColorModel, Component, ImageView, Layout, Plane};
use crate::sample::color::{Spread, ToRgb, spread};
use crate::sample::grid::{LANES, Lanes};

/// A frame in the format that a [`Layout`] describes.
pub(crate) struct Samples<'a> {
    /// Red, green and blue, or Y′, Cb and Cr; gray is repeated.
    channels: [Channel<'a>; 3],
    model: ColorModel,
    to_rgb: ToRgb,
}

/// Positions of the three components of `layout`; gray is repeated.
fn located(layout: &Layout) -> [Located; 3] {
    let colors = layout.colors();
    let components = [0, 1, 2].map(|index: usize| &colors[index.min(colors.len() - 1)]);
    let is_together = |a: &Component, b: &Component| {
        let place = |c: &Component| (c.plane, c.step, c.subsampling, c.word);
        place(a) == place(b)
    };
    [0, 1, 2].map(|index: usize| {
        let own = components[index];
        let group = components.iter().filter(|other| is_together(own, other));
        let offsets = || group.clone().map(|other| other.offset);
        let first = offsets().min().unwrap_or(own.offset);
        let bytes = offsets().max().unwrap_or(own.offset) - first + own.word.bytes();
        let fits = bytes <= WORD;
        let (offset, bytes) = if fits {
            (first, bytes)
        } else {
            (own.offset, own.word.bytes())
        };
        Located {
            offset,
            bytes,
            step: own.step,
            bit: 8 * (own.offset - offset) as u32 + own.shift,
            is_shared: fits && index > 0 && is_together(components[index - 1], own),
        }
    })
}

impl<'a> Samples<'a> {
    /// `planes` hold an image with the stored size of `image`, in the format of `layout`.
    pub(crate) fn new(
        layout: &Layout,
        arithmetic: Arithmetic,
        image: &ImageView<'_>,
        planes: &[Plane<'a>],
    ) -> Self {
        let colors = layout.colors();
        let located = located(layout);
        // GStreamer's `videoconvert` repeats the chroma of I420 and YV12.
        let is_repeated = arithmetic == Arithmetic::Bytes && colors.iter().any(|c| c.plane > 1);
        let channels = [0, 1, 2].map(|index: usize| {
            let component = &colors[index.min(colors.len() - 1)];
            let site = image.colorimetry().chroma_site;
            let site = (index == 0 || !is_repeated).then_some(site);
            let plane = planes[component.plane];
            Channel::new(component, located[index], image.stored_size(), site, plane)
        });
        Self {
            channels,
            model: layout.model,
            to_rgb: ToRgb::new(layout, arithmetic, image.colorimetry()),
        }
    }

    /// Writes red, green and blue, 0…255, at positions inside the image. They are rounded to whole
    /// levels, unless the image is 8-bit RGB.
    #[inline(always)]
    pub(crate) fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>, out: &mut [Lanes<f32>; 3]) {
        let [first, second, _] = &self.channels;
        let raster = first.raster(x, y);
        let mut words = Words::default();
        first.gather(&raster, &mut words);
        first.interpolate(&words, &raster, &mut out[0], blend);
        let raster = match self.model {
            ColorModel::Gray => return self.to_rgb.apply_gray(out),
            ColorModel::Rgb => raster,
            ColorModel::Yuv => second.raster(x, y),
        };
        for (channel, out) in self.channels[1..].iter().zip(&mut out[1..]) {
            if !channel.is_shared {
                channel.gather(&raster, &mut words);
            }
            if let ToRgb::YuvBytes(_) = self.to_rgb {
                channel.interpolate(&words, &raster, out, blend_rows);
            } else {
                channel.interpolate(&words, &raster, out, blend);
            }
        }
        self.to_rgb.apply(out);
    }

    /// True if samples are bytes, and levels are computed in whole numbers.
    pub(crate) fn are_bytes(&self) -> bool {
        matches!(self.to_rgb, ToRgb::RgbBytes | ToRgb::YuvBytes(_))
    }

    /// Writes red, green and blue, whole numbers of 0…255, of [`LANES`] pixels of row `y` from the
    /// even column `x` on. The samples are bytes. The result equals [`Samples::colors`], but is
    /// computed faster.
    #[inline(always)]
    pub(crate) fn pixels(&self, x: usize, y: usize, out: &mut [Lanes<f32>; 3]) {
        let [first, second, _] = &self.channels;
        let ToRgb::YuvBytes(to_rgb) = &self.to_rgb else {
            return match first.step {
                3 => self.all_levels::<3>(x, y, out),
                _ => self.all_levels::<4>(x, y, out),
            };
        };
        match (first.step, second.step) {
            _ if self.model == ColorModel::Gray => {
                levels::<1>(first, x, y, &mut out[0]);
                self.to_rgb.apply_gray(out);
            }
            (1, 1) => to_rgb.apply(&self.codes::<1, 1>(x, y), out),
            (1, _) => to_rgb.apply(&self.codes::<1, 2>(x, y), out),
            _ => to_rgb.apply(&self.codes::<2, 4>(x, y), out),
        }
    }

    /// The codes of [`LANES`] pixels of a format of bytes, `STEP` bytes apart.
    #[inline(always)]
    fn all_levels<const STEP: usize>(&self, x: usize, y: usize, out: &mut [Lanes<f32>; 3]) {
        for (channel, out) in self.channels.iter().zip(out) {
            levels::<STEP>(channel, x, y, out);
        }
    }

    /// The codes of [`LANES`] pixels of Y′CbCr of bytes: `LUMA` bytes from one luma sample to the
    /// next, and `CHROMA` bytes from one chroma sample to the next.
    #[inline(always)]
    fn codes<const LUMA: usize, const CHROMA: usize>(
        &self,
        x: usize,
        y: usize,
    ) -> [Lanes<Spread>; 3] {
        let [luma, cb, cr] = &self.channels;
        let (cb, cr) = (cb.chroma::<CHROMA>(x, y), cr.chroma::<CHROMA>(x, y));
        let luma = luma.run::<LUMA, LANES>(x, y);
        let mut codes = [[0; LANES]; 3];
        for i in 0..LANES {
            codes[0][i] = spread(luma[i]);
            codes[1][i] = spread(cb[i]);
            codes[2][i] = spread(cr[i]);
        }
        codes
    }
}

/// The codes of one component of [`LANES`] pixels.
#[inline(always)]
fn levels<const STEP: usize>(channel: &Channel<'_>, x: usize, y: usize, out: &mut Lanes<f32>) {
    let levels: Lanes<u8> = channel.run::<STEP, LANES>(x, y);
    for i in 0..LANES {
        out[i] = f32::from(levels[i]);
    }
}
