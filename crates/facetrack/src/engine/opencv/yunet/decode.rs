// SPDX-License-Identifier: MPL-2.0
//! Decodes the network's outputs into boxes and key points: `FaceDetectorYNImpl::postProcess` in
//! OpenCV's `face_detect.cpp`.

use super::heads::CHANNELS;
use super::{KEY_POINTS, STRIDES};
use crate::geometry::{Point, Rect};
use crate::nms::{self, Detection, sigmoid};

/// Maximum number of candidates, the best ones: the default of `top_k` in `FaceDetectorYN::create`.
const TOP_K: usize = 5000;

/// First channels of the heads.
const CLASS: usize = 0;
const OBJECT: usize = 1;
const BOX: usize = 2;
const POINTS: usize = 6;

/// The outputs of one stride: channels of `columns` × rows cells.
#[derive(Clone, Copy)]
pub(super) struct Level<'a> {
    /// Pixels of the input from cell to cell.
    pub stride: usize,
    /// Cells in a row.
    pub columns: usize,
    /// [`CHANNELS`] planes one after the other.
    pub values: &'a [f32],
}

/// A cell with a sufficient score.
struct Candidate {
    score: f32,
    level: usize,
    cell: usize,
}

/// Faces with a score of at least `min_score`, best first, in pixels of the network's input. Among
/// faces whose boxes have an IoU above `max_iou`, only the best is kept.
pub(super) fn decode(
    levels: &[Level<'_>; STRIDES.len()],
    min_score: f32,
    max_iou: f32,
) -> Vec<Detection> {
    let mut candidates = Vec::new();
    for (index, level) in levels.iter().enumerate() {
        level.collect(index, min_score, &mut candidates);
    }
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
    candidates.truncate(TOP_K);
    let detections = candidates
        .iter()
        .map(|candidate| levels[candidate.level].detection(candidate))
        .collect();
    nms::hard(detections, max_iou, whole_pixels)
}

impl Level<'_> {
    fn collect(&self, level: usize, min_score: f32, candidates: &mut Vec<Candidate>) {
        let least = least_logit(min_score);
        let cells = self.values.len() / CHANNELS;
        let logits = std::iter::zip(self.channel(CLASS, cells), self.channel(OBJECT, cells));
        for (cell, (class, object)) in logits.enumerate() {
            // Most cells can be rejected without the sigmoid.
            if class.min(*object) < least {
                continue;
            }
            let score = (sigmoid(*class) * sigmoid(*object)).sqrt();
            if score >= min_score {
                candidates.push(Candidate { score, level, cell });
            }
        }
    }

    fn channel(&self, channel: usize, cells: usize) -> &[f32] {
        &self.values[channel * cells..][..cells]
    }

    fn detection(&self, candidate: &Candidate) -> Detection {
        let cells = self.values.len() / CHANNELS;
        let value = |channel: usize| self.values[channel * cells + candidate.cell];
        let stride = self.stride as f32;
        let column = (candidate.cell % self.columns) as f32;
        let row = (candidate.cell / self.columns) as f32;
        let point = |channel: usize| {
            let (x, y) = (column + value(channel), row + value(channel + 1));
            Point::new(x * stride, y * stride)
        };
        let center = point(BOX);
        let side = |channel: usize| libm::expf(value(channel)) * stride;
        Detection {
            bbox: Rect::around(center, side(BOX + 2), side(BOX + 3)),
            score: candidate.score,
            key_points: (0..KEY_POINTS).map(|i| point(POINTS + 2 * i)).collect(),
        }
    }
}

/// Rounds corner and sides of a box down to whole pixels, as the original does for comparisons.
fn whole_pixels(bbox: &Rect) -> Rect {
    let [x, y, width, height] = [bbox.x, bbox.y, bbox.width, bbox.height].map(f32::trunc);
    Rect::new(x, y, width, height)
}

/// Lower bound of both logits of a cell whose score, the root of a product of two numbers up to 1,
/// is at least `min_score`.
fn least_logit(min_score: f32) -> f32 {
    /// Margin for rounding: more than the rounding error of a logit of `MAX_PROBABILITY` in `f32`.
    const SLACK: f32 = 0.01;
    const MAX_PROBABILITY: f32 = 0.99;
    let probability = (min_score.max(0.0) * min_score).min(MAX_PROBABILITY);
    libm::logf(probability / (1.0 - probability)) - SLACK
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A logit for a score of `p`, when both have it.
    fn logit(p: f32) -> f32 {
        (p / (1.0 - p)).ln()
    }

    /// Outputs without a face for an input of 64×64.
    fn nothing() -> [Vec<f32>; 3] {
        STRIDES.map(|stride| {
            let cells = (64 / stride) * (64 / stride);
            let mut values = vec![0.0; CHANNELS * cells];
            values[..2 * cells].fill(-20.0);
            values
        })
    }

    fn levels(values: &[Vec<f32>; 3]) -> [Level<'_>; 3] {
        std::array::from_fn(|i| Level {
            stride: STRIDES[i],
            columns: 64 / STRIDES[i],
            values: &values[i],
        })
    }

    fn set(values: &mut [Vec<f32>; 3], level: usize, cell: usize, numbers: [f32; CHANNELS]) {
        let cells = values[level].len() / CHANNELS;
        for (channel, number) in numbers.into_iter().enumerate() {
            values[level][channel * cells + cell] = number;
        }
    }

    /// A face with these logits and this box in the cell's units.
    fn face(class: f32, object: f32, [x, y, width, height]: [f32; 4]) -> [f32; CHANNELS] {
        let mut numbers = [0.0; CHANNELS];
        numbers[..6].copy_from_slice(&[class, object, x, y, width.ln(), height.ln()]);
        for (i, number) in numbers[6..].iter_mut().enumerate() {
            *number = i as f32 / 4.0;
        }
        numbers
    }

    #[test]
    fn a_cell_is_decoded_at_its_place() {
        for (level, cell, column, row) in [
            (0, 0, 0., 0.),
            (0, 63, 7., 7.),
            (1, 6, 2., 1.),
            (2, 3, 1., 1.),
        ] {
            let mut values = nothing();
            set(
                &mut values,
                level,
                cell,
                face(logit(0.9), logit(0.4), [0.5, 0.25, 2.0, 3.0]),
            );
            let got = decode(&levels(&values), 0.5, 0.3);
            let [got] = &got[..] else {
                panic!("{got:?}");
            };
            let stride = STRIDES[level] as f32;
            let want = Rect::new(
                (column + 0.5 - 1.0) * stride,
                (row + 0.25 - 1.5) * stride,
                2.0 * stride,
                3.0 * stride,
            );
            assert!(
                got.bbox.iou(&want) > 0.9999,
                "{:?} is not {want:?}",
                got.bbox
            );
            assert!((got.score - 0.6).abs() < 1e-6, "{}", got.score);
            assert_eq!(got.key_points.len(), KEY_POINTS);
            for (i, point) in got.key_points.iter().enumerate() {
                let (x, y) = (2.0 * i as f32 / 4.0, (2.0 * i as f32 + 1.0) / 4.0);
                let want = Point::new((column + x) * stride, (row + y) * stride);
                assert!(point.distance(want) < 1e-4, "{point:?} is not {want:?}");
            }
        }
    }

    #[test]
    fn scores_below_the_threshold_are_no_faces() {
        let face = face(1.25, 0.5, [0.0, 0.0, 4.0, 4.0]);
        let score = (sigmoid(1.25) * sigmoid(0.5)).sqrt();
        let mut values = nothing();
        set(&mut values, 0, 20, face);
        for (min_score, count) in [
            (0.0, 1),
            (-1.0, 1),
            (score, 1),
            (score + 1e-6, 0),
            (1.0, 0),
            (2.0, 0),
            (f32::NAN, 0),
        ] {
            let got = decode(&levels(&values), min_score, 0.0);
            let kept = got.iter().filter(|d| d.score == score).count();
            assert_eq!(kept, count, "{min_score}");
        }
        set(
            &mut values,
            0,
            20,
            super::tests::face(90.0, 90.0, [0.0, 0.0, 4.0, 4.0]),
        );
        assert_eq!(
            decode(&levels(&values), 1.0, 0.3).len(),
            1,
            "certainty is enough"
        );
    }

    #[test]
    fn numbers_from_nowhere_are_no_faces() {
        const NAN: f32 = f32::NAN;
        const INFINITE: f32 = f32::INFINITY;
        for number in [NAN, INFINITE, -INFINITE, f32::MAX, 1e30] {
            for channel in 0..CHANNELS {
                let mut numbers = face(3.0, 3.0, [0.5, 0.5, 4.0, 4.0]);
                numbers[channel] = number;
                let mut values = nothing();
                set(&mut values, 1, 5, numbers);
                for face in decode(&levels(&values), 0.5, 0.3) {
                    let Rect {
                        x,
                        y,
                        width,
                        height,
                    } = face.bbox;
                    assert!((x + y + width + height).is_finite(), "{face:?}");
                    assert!(width > 0.0 && height > 0.0, "{face:?}");
                    assert!((0.0..=1.0).contains(&face.score), "{face:?}");
                }
            }
        }
    }

    #[test]
    fn the_best_candidates_are_looked_at() {
        let cells = 2 * TOP_K;
        let mut values = vec![0.0; CHANNELS * cells];
        // Better and better, each apart from the others.
        for cell in 0..cells {
            values[cell] = cell as f32 * 1e-4;
            values[cells + cell] = 9.0;
            values[(BOX + 2) * cells + cell] = -1.0;
            values[(BOX + 3) * cells + cell] = -1.0;
        }
        let wide = Level {
            stride: 8,
            columns: cells,
            values: &values,
        };
        let none = Level {
            stride: 8,
            columns: 1,
            values: &[],
        };
        let got = decode(&[none, wide, none], 0.0, 0.3);
        assert_eq!(got.len(), TOP_K);
        assert!(got.is_sorted_by(|a, b| a.score >= b.score));
        assert!(got[TOP_K - 1].bbox.x > (cells - TOP_K - 1) as f32 * 8.0);
    }
}
