// SPDX-License-Identifier: MPL-2.0
//! A frame that is drawn into, in the format that it has.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use super::blend::{self, Lanes};
use super::color::Rgb;
use super::mask::Mask;
use crate::image::{Colorimetry, Component, Layout};

/// Components of colour, where there is alpha too; alpha is the next one.
const COLORS: usize = 3;

/// One plane of a frame.
#[derive(Debug)]
pub struct PlaneMut<'a> {
    /// The bytes, from the first row on.
    pub data: &'a mut [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// What a frame shows, for a canvas whose planes hold only what is drawn into.
pub trait Source: fmt::Debug {
    /// Brings the pixels of row `y` in `columns` into the planes, unless they are there already.
    fn bring(&mut self, y: usize, columns: Range<usize>, planes: &mut [PlaneMut<'_>]);
}

/// A frame that somebody else owns, to be drawn into.
///
/// Every row of every component is known to lie inside its plane: [`Canvas::new`] checks it.
#[derive(Debug)]
pub struct Canvas<'a> {
    width: usize,
    height: usize,
    colorimetry: Colorimetry,
    layout: &'a Layout,
    planes: Vec<PlaneMut<'a>>,
    source: Option<&'a mut dyn Source>,
}

/// Why bytes do not make a frame.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CanvasError {
    /// A component is not what a component can be.
    #[error("component {0} of the frame's format is laid out in a way that can't be drawn into")]
    Layout(usize),
    /// A plane does not hold its rows.
    #[error("component {component} does not fit into {bytes} bytes with a stride of {stride}")]
    PlaneTooSmall {
        /// Index of the component.
        component: usize,
        /// Bytes of its plane.
        bytes: usize,
        /// From row to row.
        stride: usize,
    },
}

/// A colour and how much of it: 0 nothing, 255 nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ink {
    pub color: Rgb,
    pub opacity: u8,
}

impl<'a> Canvas<'a> {
    /// A frame of `width`×`height` pixels in `planes`.
    ///
    /// # Errors
    /// When the format can't be, or a plane is missing or too small.
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
            source: None,
        })
    }

    /// One whose planes `source` fills where they are drawn into.
    pub fn filled_by(self, source: &'a mut dyn Source) -> Self {
        Self {
            source: Some(source),
            ..self
        }
    }

    /// Pixels a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Paints what `mask` covers; `over` is room for a mask.
    pub(super) fn paint(&mut self, mask: &Mask, over: &mut Mask, ink: Ink) {
        if let Some(source) = &mut self.source {
            for y in mask.rows() {
                source.bring(y, mask.span(y), &mut self.planes);
            }
        }
        let count = self.layout.components.len();
        match self.layout.components.get(COLORS) {
            Some(alpha) if !self.is_opaque(mask, alpha) => {
                self.weigh(over, mask, ink, alpha);
                let opaque = Ink {
                    opacity: 255,
                    ..ink
                };
                self.mix(over, opaque, 0..COLORS);
                self.mix(mask, ink, COLORS..count);
            }
            _ => self.mix(mask, ink, 0..COLORS.min(count)),
        }
    }

    /// Whether all is to be seen of what `mask` covers, and of a little around it.
    fn is_opaque(&self, mask: &Mask, alpha: &Component) -> bool {
        let opaque = Lanes::new(alpha, alpha.max_code());
        let [across, _] = alpha.subsampling;
        mask.rows().all(|y| {
            let line = self.line(alpha, y);
            let samples =
                |pixels: Range<usize>| pixels.start >> across..((pixels.end - 1) >> across) + 1;
            blend::is_filled(line, &opaque, mask.covered(y).map(samples))
        })
    }

    /// What a colour's weight is in each pixel where nothing may have been to be seen before.
    fn weigh(&self, over: &mut Mask, mask: &Mask, ink: Ink, alpha: &Component) {
        let most = alpha.max_code();
        let [across, _] = alpha.subsampling;
        over.follow(mask, |x, y, covered| {
            let before = blend::sample(self.line(alpha, y), alpha, x >> across);
            blend::share(blend::weight(covered, ink.opacity), before, most)
        });
    }

    /// The bytes from the row of a component on that has pixels of row `y`.
    fn line(&self, component: &Component, y: usize) -> &[u8] {
        let [_, down] = component.subsampling;
        let plane = &self.planes[component.plane];
        &plane.data[(y >> down) * plane.stride..]
    }

    /// Mixes a colour into some of the components.
    fn mix(&mut self, mask: &Mask, ink: Ink, which: Range<usize>) {
        let codes = self.codes(ink.color);
        let components = &self.layout.components[which.clone()];
        let lanes = Lanes::of(components.iter().zip(codes[which].iter().copied()));
        let mut reduced = Vec::new();
        let mut subsamplings: Vec<_> = components.iter().map(|c| c.subsampling).collect();
        subsamplings.sort_unstable();
        subsamplings.dedup();
        for subsampling in subsamplings {
            for row in blend::reduced_rows(mask, subsampling) {
                let coverage = blend::reduce(mask, row, subsampling, &mut reduced);
                for lanes in lanes
                    .iter()
                    .filter(|lanes| lanes.subsampling == subsampling)
                {
                    let plane = &mut self.planes[lanes.plane];
                    let line = &mut plane.data[row * plane.stride..];
                    blend::row(line, lanes, coverage, ink.opacity);
                }
            }
        }
    }

    /// What a colour is in each component.
    fn codes(&self, color: Rgb) -> Vec<u32> {
        let components = self.layout.components.iter().enumerate();
        let codes = components.map(|(index, component)| {
            color.code(self.layout.model, self.colorimetry, index, component.depth)
        });
        codes.collect()
    }
}

/// Whether samples of a component can be drawn into.
fn is_drawable(component: &Component) -> bool {
    component.is_sound()
        && component.step <= blend::MAX_LANES * component.word.bytes()
        && component
            .subsampling
            .iter()
            .all(|n| *n <= blend::MAX_SUBSAMPLING)
}

/// Bytes of a component's plane up to the end of the last sample; `None` when there are too many to
/// count.
fn plane_bytes(component: &Component, size: [usize; 2], stride: usize) -> Option<usize> {
    let [columns, rows] = component.samples(size);
    let last_row = stride.checked_mul(rows.checked_sub(1)?)?;
    last_row.checked_add(component.row_bytes(columns)?)
}
