// SPDX-License-Identifier: MPL-2.0
//! Places a frame in the network's input.

use super::STRIDES;
use crate::geometry::{Point, RotatedRect};
use crate::nms::Detection;

/// Sides of the input are multiples of this: `divisor` in OpenCV's `face_detect.cpp`, and the
/// largest stride.
const MULTIPLE: usize = STRIDES[STRIDES.len() - 1];

/// A frame at the input's top left, with black to the right and below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fit {
    /// Columns and rows of the input.
    pub input: [usize; 2],
    /// Frame pixels per input pixel, along each axis.
    frame_per_input: [f32; 2],
}

impl Fit {
    /// A frame of `width`×`height`, reduced to `max_width` if it is wider; its sides keep their
    /// ratio up to whole pixels.
    pub(super) fn new(width: usize, height: usize, max_width: Option<usize>) -> Self {
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

    /// Region of the frame's plane that the input shows. It reaches beyond the frame.
    pub(super) fn region(&self) -> RotatedRect {
        RotatedRect::of_resized(self.input, self.frame_per_input)
    }

    /// Converts a detection from pixels of the input to pixels of the frame.
    pub(super) fn to_frame(self, detection: Detection) -> Detection {
        let [x, y] = self.frame_per_input;
        detection.scaled(|p| Point::new(p.x * x, p.y * y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;

    #[test]
    fn inputs_are_padded_to_multiples_and_never_wider_than_the_limit() {
        for (frame, max_width, input) in [
            ((640, 360), None, [640, 384]),
            ((640, 360), Some(640), [640, 384]),
            ((640, 352), Some(9000), [640, 352]),
            ((1, 1), Some(640), [32, 32]),
            ((33, 64), None, [64, 64]),
            ((1280, 720), Some(640), [640, 384]),
            ((1920, 1080), Some(640), [640, 384]),
            ((1000, 1000), Some(100), [128, 128]),
            ((16384, 2), Some(640), [640, 32]),
            ((2, 16384), Some(640), [32, 16384]),
        ] {
            let fit = Fit::new(frame.0, frame.1, max_width);
            assert_eq!(fit.input, input, "{frame:?} {max_width:?}");
        }
    }

    #[test]
    fn pixel_centres_of_a_reduced_frame_lie_on_those_of_the_frame() {
        for (width, height, max_width) in [(640, 360, 640), (1280, 720, 640), (801, 457, 320)] {
            let fit = Fit::new(width, height, Some(max_width));
            let image_from_unit = fit.region().outer_from_unit();
            let rows = (height as f64 * max_width as f64 / width as f64).round() as f32;
            let scale = (width as f32 / max_width as f32, height as f32 / rows);
            for (column, row) in [
                (0.0, 0.0),
                (max_width as f32 - 1.0, rows - 1.0),
                (7.0, 100.0),
            ] {
                let unit = Point::new(column / fit.input[0] as f32, row / fit.input[1] as f32);
                // cv::resize: (i + 0.5) · scale − 0.5.
                let want = Point::new((column + 0.5) * scale.0 - 0.5, (row + 0.5) * scale.1 - 0.5);
                let got = image_from_unit.apply(unit);
                assert!(got.distance(want) < 1e-3, "{got:?} is not {want:?}");
            }
        }
    }

    #[test]
    fn detections_are_scaled_back_along_each_axis() {
        let detection = Detection {
            bbox: Rect::new(-2.0, 10.0, 30.0, 40.0),
            score: 0.5,
            key_points: vec![Point::new(1.5, 2.5)],
        };
        let same = Fit::new(33, 17, None).to_frame(detection.clone());
        assert_eq!(same, detection);
        let scaled = Fit::new(1000, 250, Some(100)).to_frame(detection);
        assert_eq!(scaled.bbox, Rect::new(-20.0, 100.0, 300.0, 400.0));
        assert_eq!(scaled.key_points, [Point::new(15.0, 25.0)]);
    }
}
