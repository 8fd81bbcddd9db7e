// SPDX-License-Identifier: MPL-2.0
//! How a frame lies in the network's input.

use super::STRIDES;
use crate::face::geometry::{Point, Rect, RotatedRect, Size};
use crate::face::nms::Detection;

/// What sides of the input are multiples of: `divisor` in OpenCV's `face_detect.cpp`, and the largest stride.
const MULTIPLE: usize = STRIDES[STRIDES.len() - 1];

/// A frame at the input's top left, with black to the right and below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Columns and rows of the input.
    pub input: [usize; 2],
    /// Pixels of the frame in one of the input, along each axis.
    frame_per_input: [f32; 2],
}

impl Fit {
    /// A frame of `width`×`height`, reduced to `max_width` if it is wider; its sides keep their ratio up to whole
    /// pixels.
    pub fn new(width: usize, height: usize, max_width: Option<usize>) -> Self {
        let reduced = match max_width {
            Some(max) if max < width => {
                let rows = height as f64 * max as f64 / width as f64;
                [max, (rows.round() as usize).max(1)]
            }
            _ => [width, height],
        };
        let ratio = |frame: usize, reduced: usize| frame as f32 / reduced as f32;
        Self {
            input: reduced.map(|side| side.next_multiple_of(MULTIPLE)),
            frame_per_input: [ratio(width, reduced[0]), ratio(height, reduced[1])],
        }
    }

    /// What of the frame, and of the plane around it, the input shows. The resampler puts the first pixel's index on the
    /// corner; between a frame and its reduced copy, pixel *centres* agree, as in OpenCV's `resize`.
    pub fn region(&self) -> RotatedRect {
        let [x, y] = self.frame_per_input;
        let (width, height) = (self.input[0] as f32 * x, self.input[1] as f32 * y);
        RotatedRect {
            center: Point::new((x - 1.0 + width) / 2.0, (y - 1.0 + height) / 2.0),
            size: Size::new(width, height),
            rotation: 0.0,
        }
    }

    /// A detection in pixels of the input, in pixels of the frame.
    pub fn to_frame(self, detection: Detection) -> Detection {
        let [x, y] = self.frame_per_input;
        let Rect {
            x: left,
            y: top,
            width,
            height,
        } = detection.bbox;
        Detection {
            bbox: Rect::new(left * x, top * y, width * x, height * y),
            score: detection.score,
            key_points: detection
                .key_points
                .into_iter()
                .map(|p| Point::new(p.x * x, p.y * y))
                .collect(),
        }
    }
}
