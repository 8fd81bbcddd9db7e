// SPDX-License-Identifier: MPL-2.0
//! A frame to draw into, in its own format.

use std::ops::Range;
use std::sync::LazyLock;

use thiserror::Error;

use super::blend::{self, Lanes};
use super::color::Rgb;
use super::mask::{BLOCK, Mask};
use super::mosaic::{self, Mosaic, Transition};
use crate::image::{ColorRange, Colorimetry, Component, Layout, PixelFormat, Word};

/// Number of color components in a format with alpha, which is the next component.
const COLORS: usize = 3;

/// One plane of a frame.
#[derive(Debug)]
pub struct PlaneMut<'a> {
    /// The bytes, from the first row on.
    pub data: &'a mut [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// A borrowed frame to draw into.
///
/// All rows of all components are inside their planes: [`Canvas::new`] checks it.
#[derive(Debug)]
pub struct Canvas<'a> {
    width: usize,
    height: usize,
    colorimetry: Colorimetry,
    layout: &'a Layout,
    planes: Vec<PlaneMut<'a>>,
}

/// Error in the creation of a canvas.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CanvasError {
    /// A component is not supported.
    #[error("component {0} of the frame's format has a layout that cannot be drawn into")]
    Layout(usize),
    /// A plane is too small for its rows.
    #[error("component {component} does not fit into {bytes} bytes with a stride of {stride}")]
    PlaneTooSmall {
        /// Index of the component.
        component: usize,
        /// Bytes of its plane.
        bytes: usize,
        /// Bytes from row to row.
        stride: usize,
    },
}

impl<'a> Canvas<'a> {
    /// A canvas over a frame of `width`×`height` pixels in `planes`.
    ///
    /// # Errors
    /// Returns an error if the layout is not supported, or a plane is missing or too small.
    pub fn new(
        (width, height): (usize, usize),
        layout: &'a Layout,
        colorimetry: Colorimetry,
        planes: Vec<PlaneMut<'a>>,
    ) -> Result<Self, CanvasError> {
        for (index, component) in layout.components.iter().enumerate() {
            let plane = planes.get(component.plane);
            let plane = plane
                .filter(|_| is_drawable(component))
                .ok_or(CanvasError::Layout(index))?;
            let size = [width, height];
            let needed = plane_bytes(component, size, plane.stride);
            if needed.is_none_or(|needed| needed > plane.data.len()) {
                return Err(CanvasError::PlaneTooSmall {
                    component: index,
                    bytes: plane.data.len(),
                    stride: plane.stride,
                });
            }
        }
        Ok(Self {
            width,
            height,
            colorimetry,
            layout,
            planes,
        })
    }

    /// A canvas over a tightly packed RGB image.
    ///
    /// # Errors
    /// Returns an error if `data` is shorter than `width`·`height`·3 bytes.
    pub fn rgb(width: usize, height: usize, data: &'a mut [u8]) -> Result<Self, CanvasError> {
        static RGB: LazyLock<Layout> = LazyLock::new(|| PixelFormat::Rgb.layout());
        let colorimetry = Colorimetry {
            range: ColorRange::Full,
            ..Colorimetry::default()
        };
        let stride = width * 3;
        let plane = PlaneMut { data, stride };
        Self::new((width, height), &RGB, colorimetry, vec![plane])
    }

    /// Pixels per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Paints the pixels that `mask` covers, with an opacity of 0…255. `over` is working memory.
    pub(super) fn paint(&mut self, mask: &Mask, over: &mut Mask, color: Rgb, opacity: u8) {
        let count = self.layout.components.len();
        match self.layout.components.get(COLORS) {
            Some(alpha) if !self.is_opaque(mask, alpha) => {
                self.weigh(over, mask, opacity, alpha);
                self.mix(over, color, 255, 0..COLORS);
                self.mix(mask, color, opacity, COLORS..count);
            }
            _ => self.mix(mask, color, opacity, 0..COLORS.min(count)),
        }
    }

    /// Returns true if all pixels that `mask` covers are opaque; some pixels around them are also
    /// checked.
    fn is_opaque(&self, mask: &Mask, alpha: &Component) -> bool {
        let [across, _] = alpha.subsampling;
        let bits = pixel_bits(alpha).repeat(BLOCK);
        mask.rows().all(|y| {
            let line = self.line(alpha, y);
            mask.covered(y).all(|columns| {
                let samples = columns.start >> across..columns.end.div_ceil(1 << across);
                let wanted = &bits[..samples.len() * alpha.step];
                let pixels = &line[samples.start * alpha.step..];
                // There is no early exit, so that the loop can be vectorized.
                let missing = |all: u8, (byte, bits): (&u8, &u8)| all | (!byte & bits);
                std::iter::zip(pixels, wanted).fold(0, missing) == 0
            })
        })
    }

    /// Fills `over` with the weights of a color over pixels that may be transparent.
    fn weigh(&self, over: &mut Mask, mask: &Mask, opacity: u8, alpha: &Component) {
        let max = alpha.max_code();
        let [across, _] = alpha.subsampling;
        over.follow(mask, |x, y, covered| {
            let before = alpha.code(self.line(alpha, y), x >> across);
            blend::share(blend::weight(covered, opacity), before, max)
        });
    }

    /// The bytes of a component from its row with pixels of row `y` on.
    fn line(&self, component: &Component, y: usize) -> &[u8] {
        let [_, down] = component.subsampling;
        let plane = &self.planes[component.plane];
        &plane.data[(y >> down) * plane.stride..]
    }

    /// Replaces the pixels that `mask` covers with a mosaic. Its cells have sides of at least `side`
    /// px. Alpha stays unchanged.
    pub(super) fn coarsen(&mut self, mask: &Mask, side: f32, transition: Transition) {
        let colors = self.layout.colors().iter().map(|component| (component, 0));
        let cells = [mask.columns(), mask.rows()].map(|pixels| mosaic::edges(pixels, side));
        let mut lanes = Lanes::of(colors);
        lanes.sort_by_key(|lanes| lanes.component.subsampling);
        let mut reduced = Vec::new();
        for lanes in lanes.chunk_by(|a, b| a.component.subsampling == b.component.subsampling) {
            let mosaic = |lanes: &Lanes| {
                let PlaneMut { data, stride } = &self.planes[lanes.component.plane];
                Mosaic::of(data, *stride, lanes, &cells, transition)
            };
            let mosaics: Vec<_> = lanes.iter().map(mosaic).collect();
            let mut last: Vec<_> = lanes.iter().map(|_| mosaic::Row::default()).collect();
            let subsampling = lanes[0].component.subsampling;
            for row in blend::reduced_rows(mask, subsampling) {
                let (first, coverage) = blend::reduce(mask, row, subsampling, &mut reduced);
                if coverage.is_empty() {
                    continue;
                }
                let parts = lanes.iter().zip(&mosaics).zip(&mut last);
                for ((lanes, mosaic), last) in parts {
                    let plane = &mut self.planes[lanes.component.plane];
                    let line = &mut plane.data[row * plane.stride..];
                    let colors = mosaic.colors(row, first, last);
                    blend::row_of(line, lanes, (first, coverage), colors);
                }
            }
        }
    }

    /// Mixes a color into the components in `which`.
    fn mix(&mut self, mask: &Mask, color: Rgb, opacity: u8, which: Range<usize>) {
        let components = which.map(|index| {
            let component = &self.layout.components[index];
            let (model, depth) = (self.layout.model, component.depth);
            (component, color.code(model, self.colorimetry, index, depth))
        });
        let mut lanes = Lanes::of(components);
        lanes.sort_by_key(|lanes| lanes.component.subsampling);
        let mut reduced = Vec::new();
        for lanes in lanes.chunk_by(|a, b| a.component.subsampling == b.component.subsampling) {
            let subsampling = lanes[0].component.subsampling;
            for row in blend::reduced_rows(mask, subsampling) {
                let coverage = blend::reduce(mask, row, subsampling, &mut reduced);
                for lanes in lanes {
                    let plane = &mut self.planes[lanes.component.plane];
                    let line = &mut plane.data[row * plane.stride..];
                    blend::row(line, lanes, coverage, opacity);
                }
            }
        }
    }
}

/// The bytes of a pixel with every bit of a component set and all other bits clear.
fn pixel_bits(component: &Component) -> Vec<u8> {
    let word = (component.max_code() << component.shift) as u16;
    let word = match component.word {
        Word::Byte | Word::Le16 => word.to_le_bytes(),
        Word::Be16 => word.to_be_bytes(),
    };
    let length = component.word.bytes();
    let mut pixel = vec![0; component.step];
    pixel[component.offset..][..length].copy_from_slice(&word[..length]);
    pixel
}

/// Returns true if a component can be drawn into.
fn is_drawable(component: &Component) -> bool {
    component.is_sound() && component.step <= blend::MAX_LANES * component.word.bytes()
}

/// Bytes of a component's plane up to the end of the last sample; `None` on overflow.
fn plane_bytes(component: &Component, size: [usize; 2], stride: usize) -> Option<usize> {
    let [columns, rows] = component.samples(size);
    let last_row = stride.checked_mul(rows.checked_sub(1)?)?;
    last_row.checked_add(component.row_bytes(columns)?)
}
