// SPDX-License-Identifier: MPL-2.0
//! Draws what is known of a frame into that frame.
//!
//! A frame is drawn into in the format that it has: shapes become coverage, 0…255 for each pixel (`mask`), and that is
//! mixed into the samples of each component, for those of lower resolution the mean of the pixels that a sample stands for
//! (`blend`). Nothing outside of the shapes is read or written.
//!
//! Coordinates of the report are scaled to the frame's size. Nothing of a report makes a drawing fail: what is not finite is
//! left out, what lies outside of the frame is cut.

mod blend;
mod brush;
mod canvas;
mod color;
mod face;
mod layers;
mod mask;
mod panel;
mod scheme;
mod text;

use std::time::Duration;

use self::brush::Brush;
pub use self::canvas::{Canvas, CanvasError, PlaneMut};
pub use self::color::Rgb;
pub use self::layers::Layers;
use self::mask::Mask;
use self::text::Letters;
use super::report::FrameReport;

/// How things are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    /// What is drawn.
    pub layers: Layers,
    /// The colour of every face; `None` for one of its own for each.
    pub color: Option<Rgb>,
    /// Width of lines, as a part of the frame's shorter side.
    pub line_width: f32,
    /// Height of text, as a part of the frame's shorter side; less where a panel would be wider than the frame.
    pub text_size: f32,
    /// Most blendshapes of a face.
    pub blendshapes: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            layers: Layers::BOXES
                | Layers::LABELS
                | Layers::CONTOURS
                | Layers::KEY_POINTS
                | Layers::POSE
                | Layers::GAZE
                | Layers::BLENDSHAPES
                | Layers::INFO,
            color: None,
            line_width: 0.0025,
            text_size: 0.022,
            blendshapes: 8,
        }
    }
}

/// What is known of a stream besides its faces.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pace {
    /// Frames a second.
    pub fps: Option<f32>,
    /// How long ago the frame was taken.
    pub latency: Option<Duration>,
}

/// The means for drawing, which are kept from frame to frame.
#[derive(Debug)]
pub struct Overlay {
    masks: [Mask; 2],
    letters: Letters,
}

impl Default for Overlay {
    fn default() -> Self {
        Self {
            masks: Default::default(),
            letters: Letters::new(),
        }
    }
}

impl Overlay {
    /// Whether there is anything to draw.
    pub fn is_empty(report: &FrameReport, style: &Style) -> bool {
        let faceless = report.faces.is_empty() && !style.layers.contains(Layers::INFO);
        faceless || style.layers == Layers::NONE
    }

    /// Draws `report` into a frame.
    pub fn draw(
        &mut self,
        canvas: &mut Canvas<'_>,
        report: &FrameReport,
        pace: &Pace,
        style: &Style,
    ) {
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
        if style.layers.contains(Layers::INFO) {
            panel::info(&mut brush, report, pace);
        }
    }
}

#[cfg(test)]
mod tests;
