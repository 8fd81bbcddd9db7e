// SPDX-License-Identifier: MPL-2.0
//! Places a frame in the detector's input: `_detect_candidates` in `scrfd.py`.

use crate::geometry::{Point, RotatedRect};
use crate::nms::Detection;

/// A frame at the input's top left, with black to the right or below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Letterbox {
    /// Columns and rows of the input, or of its part at the top left that is filled.
    pub input: [usize; 2],
    /// Columns and rows of the frame in the input.
    pub frame: [usize; 2],
    /// Frame pixels per input pixel, along each axis.
    frame_per_input: [f32; 2],
    /// Input pixels per frame pixel. Detections are divided by it.
    scale: f32,
}

impl Letterbox {
    /// Places a frame of `size` in an input of `input`, width before height.
    pub(super) fn new(size: [usize; 2], input: [usize; 2]) -> Self {
        let ratio = size[1] as f64 / size[0] as f64;
        let model_ratio = input[1] as f64 / input[0] as f64;
        let frame = if ratio > model_ratio {
            [(input[1] as f64 / ratio) as usize, input[1]]
        } else {
            [input[0], (input[0] as f64 * ratio) as usize]
        };
        let frame = frame.map(|side| side.max(1));
        Self {
            input,
            frame,
            frame_per_input: [0, 1].map(|axis| size[axis] as f32 / frame[axis] as f32),
            scale: (frame[1] as f64 / size[1] as f64) as f32,
        }
    }

    /// Region of the frame's plane that the input shows. It reaches beyond the frame.
    pub(super) fn region(&self) -> RotatedRect {
        RotatedRect::of_resized(self.input, self.frame_per_input)
    }

    /// Fills the part of an input's planes that is outside the frame with black, which is `value`.
    pub(super) fn blacken(&self, tensor: &mut [f32], value: f32) {
        let ([columns, rows], [width, height]) = (self.input, self.frame);
        for plane in tensor.chunks_exact_mut(columns * rows) {
            let (frame, below) = plane.split_at_mut(columns * height);
            below.fill(value);
            for row in frame.chunks_exact_mut(columns) {
                row[width..].fill(value);
            }
        }
    }

    /// Converts a detection from pixels of the input to pixels of the frame.
    pub(super) fn to_frame(self, detection: Detection) -> Detection {
        detection.scaled(|p| Point::new(p.x / self.scale, p.y / self.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;

    #[test]
    fn frames_are_fitted_as_the_original_does() {
        for (size, input, frame, scale) in [
            ([640, 360], [640, 640], [640, 360], 1.0),
            ([1280, 720], [640, 640], [640, 360], 0.5),
            ([1986, 1545], [640, 640], [640, 497], 497.0 / 1545.0),
            ([958, 1358], [640, 640], [451, 640], 640.0 / 1358.0),
            ([320, 240], [640, 640], [640, 480], 2.0),
            ([640, 640], [640, 480], [480, 480], 0.75),
            ([16384, 2], [640, 640], [640, 1], 0.5),
            ([2, 16384], [640, 640], [1, 640], 640.0 / 16384.0),
        ] {
            let letterbox = Letterbox::new(size, input);
            assert_eq!(letterbox.frame, frame, "{size:?}");
            assert_eq!(letterbox.scale, scale, "{size:?}");
        }
    }

    #[test]
    fn pixel_centres_of_a_frame_and_its_copy_agree() {
        for size in [
            [640, 360],
            [1280, 720],
            [1986, 1545],
            [958, 1358],
            [320, 240],
        ] {
            let letterbox = Letterbox::new(size, [640; 2]);
            let [columns, rows] = letterbox.input.map(|side| side as f32);
            let frame_from_unit = letterbox.region().outer_from_unit();
            for (column, row) in [(0.0, 0.0), (300.0, 10.0), (7.0, 100.0)] {
                let got = frame_from_unit.apply(Point::new(column / columns, row / rows));
                // cv::resize: (i + 0.5) · scale − 0.5.
                let [x, y] = letterbox.frame_per_input;
                let want = Point::new((column + 0.5) * x - 0.5, (row + 0.5) * y - 0.5);
                assert!(got.distance(want) < 1e-2, "{got:?} is not {want:?}");
            }
        }
    }

    #[test]
    fn what_is_not_the_frame_is_black() {
        for (size, lit) in [([64, 32], [64, 32]), ([32, 64], [32, 64])] {
            let letterbox = Letterbox::new(size, [64; 2]);
            let mut tensor = vec![1.0; 3 * 64 * 64];
            letterbox.blacken(&mut tensor, -1.0);
            for (i, value) in tensor.into_iter().enumerate() {
                let (column, row) = (i % 64, i / 64 % 64);
                let is_lit = column < lit[0] && row < lit[1];
                assert_eq!(value, if is_lit { 1.0 } else { -1.0 }, "{column} {row}");
            }
        }
    }

    #[test]
    fn detections_are_scaled_back_by_the_height() {
        let detection = Detection {
            bbox: Rect::new(-2.0, 10.0, 30.0, 40.0),
            score: 0.5,
            key_points: vec![Point::new(1.5, 2.5)],
        };
        let scaled = Letterbox::new([1280, 720], [640; 2]).to_frame(detection);
        assert_eq!(scaled.bbox, Rect::new(-4.0, 20.0, 60.0, 80.0));
        assert_eq!(scaled.key_points, [Point::new(3.0, 5.0)]);
    }
}
