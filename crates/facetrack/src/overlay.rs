// SPDX-License-Identifier: MPL-2.0
//! Draws reports into frames.
//!
//! A frame keeps its own format. Shapes become a coverage of 0…255 for each pixel (`mask`), with
//! which colors are mixed into the samples of each component (`blend`); subsampled components use
//! the mean coverage of the pixels that share a sample. Nothing outside the shapes is read or
//! written.
//!
//! Coordinates of the report are scaled to the size of the frame. No report makes drawing fail:
//! shapes with coordinates that are not finite are skipped, and shapes are clipped to the frame.

mod blend;
mod brush;
mod canvas;
mod color;
mod face;
mod layers;
mod look;
mod mask;
mod mosaic;
mod panel;
mod scheme;
mod text;

use std::time::Duration;

use smart_default::SmartDefault;

use self::brush::Brush;
pub use self::canvas::{Canvas, CanvasError, PlaneMut};
pub use self::color::Rgb;
pub use self::layers::Layers;
use self::mask::Mask;
use self::mosaic::Transition;
use self::text::Letters;
use super::redaction::{Cover, Mode, Region};
use super::report::FrameReport;
use crate::geometry::Rect;
use crate::memory::OutOfMemory;

/// Settings of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
#[non_exhaustive]
pub struct Style {
    /// Layers to draw.
    #[default(Layers::BOXES | Layers::LABELS | Layers::CONTOURS | Layers::KEY_POINTS | Layers::POSE | Layers::GAZE | Layers::BLENDSHAPES | Layers::INFO)]
    pub layers: Layers,
    /// Color of all faces; `None` for a different color for each face.
    pub color: Option<Rgb>,
    /// Line width, relative to the shorter side of the frame.
    #[default(0.0025)]
    pub line_width: f32,
    /// Text height, relative to the shorter side of the frame; smaller if a panel would be wider
    /// than the frame.
    #[default(0.022)]
    pub text_size: f32,
    /// Maximum number of blendshapes of a face.
    #[default(8)]
    pub blendshapes: usize,
}

/// Timing of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pace {
    /// Frames per second.
    pub fps: Option<f32>,
    /// Time since the frame was due.
    pub latency: Option<Duration>,
    /// Mean time of the last analyses.
    pub analysis: Option<Duration>,
    /// GPU memory that the process uses, MiB.
    pub gpu_memory: Option<u64>,
}

/// Draws reports. It keeps its working memory from frame to frame.
#[derive(Debug, SmartDefault)]
pub struct Overlay {
    masks: [Mask; 2],
    #[default(Letters::new())]
    letters: Letters,
}

impl Overlay {
    /// Returns true if there is nothing to draw.
    pub fn is_empty(report: &FrameReport, style: &Style) -> bool {
        let faceless = report.faces.is_empty() && !style.layers.contains(Layers::INFO);
        faceless || style.layers.is_empty()
    }

    /// Draws `report` into a frame.
    ///
    /// # Errors
    /// Returns an error if there is too little memory. The frame is unchanged.
    pub fn draw(
        &mut self,
        canvas: &mut Canvas<'_>,
        report: &FrameReport,
        pace: &Pace,
        style: &Style,
    ) -> Result<(), OutOfMemory> {
        self.resize(canvas)?;
        let [width, height] = [canvas.width(), canvas.height()].map(|side| side as f32);
        let side = width.min(height);
        self.letters
            .set_size(style.text_size * side, panel::widest_letter(width));
        let mut brush = Brush::new(
            canvas,
            &mut self.masks,
            &mut self.letters,
            style.line_width * side,
        );
        let scale = face::Scale::new(report, brush.size());
        for tracked in &report.faces {
            face::draw(&mut brush, tracked, scale, style);
        }
        let shows_info = style.layers.contains(Layers::INFO);
        let info = shows_info.then(|| panel::info(&mut brush, report, pace));
        let mut taken: Vec<_> = info.flatten().into_iter().collect();
        for tracked in &report.faces {
            face::write(&mut brush, tracked, scale, style, &mut taken);
        }
        Ok(())
    }

    /// Covers a part of a frame. A whole frame becomes black.
    ///
    /// # Errors
    /// Returns an error if there is too little memory. The frame is unchanged.
    pub fn redact(
        &mut self,
        canvas: &mut Canvas<'_>,
        cover: &Cover,
        mode: Mode,
    ) -> Result<(), OutOfMemory> {
        self.resize(canvas)?;
        let [mask, _] = &mut self.masks;
        match cover {
            Cover::Frame => {
                let [width, height] = [canvas.width(), canvas.height()].map(|side| side as f32);
                mask.fill(Rect::new(0.0, 0.0, width, height));
                self.blacken(canvas);
            }
            Cover::Regions(regions) => {
                for region in regions {
                    self.redact_region(canvas, region, mode);
                }
            }
        }
        Ok(())
    }

    /// Clears the masks and gives them the size of `canvas`.
    fn resize(&mut self, canvas: &Canvas<'_>) -> Result<(), OutOfMemory> {
        let [width, height] = [canvas.width(), canvas.height()];
        let mut masks = self.masks.iter_mut();
        masks.try_for_each(|mask| mask.resize(width, height))
    }

    fn redact_region(&mut self, canvas: &mut Canvas<'_>, region: &Region, mode: Mode) {
        let [mask, _] = &mut self.masks;
        mask.polygon(&region.outline);
        let transition = match mode {
            Mode::Pixelate => Transition::Hard,
            Mode::Blur => Transition::Smooth,
            Mode::Fill => return self.blacken(canvas),
        };
        canvas.coarsen(mask, region.cell, transition);
        mask.clear();
    }

    fn blacken(&mut self, canvas: &mut Canvas<'_>) {
        let [mask, over] = &mut self.masks;
        canvas.paint(mask, over, Rgb::BLACK, u8::MAX);
        mask.clear();
    }
}

#[cfg(test)]
mod tests;
