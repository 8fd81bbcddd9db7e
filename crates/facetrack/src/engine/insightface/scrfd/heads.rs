// SPDX-License-Identifier: MPL-2.0
//! From the detector's outputs to boxes and key points: `forward` in `scrfd.py`.

use ndarray::ArrayD;

use crate::geometry::{Point, Rect};
use crate::nms::Detection;

/// Values of a box: the distances from the anchor to its left, top, right and bottom edges.
const BOX: usize = 4;

/// Values of the five key points.
const POINTS: usize = 10;

/// Layout of a detector's outputs: the scores of every stride, then the boxes of every stride, then
/// the key points of every stride if it has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Pixels of the input from cell to cell.
    strides: &'static [usize],
    /// Boxes in a cell.
    anchors: usize,
    /// Whether there are key points.
    has_points: bool,
}

/// Outputs of one stride.
struct Level<'a> {
    stride: usize,
    columns: usize,
    scores: &'a [[f32; 1]],
    boxes: &'a [[f32; BOX]],
    points: &'a [[f32; POINTS]],
}

impl Heads {
    /// Those of a network with so many outputs: `_init_vars` in `scrfd.py`.
    pub fn of(outputs: usize) -> Option<Self> {
        let (strides, anchors): (&[usize], _) = match outputs {
            6 | 9 => (&[8, 16, 32], 2),
            10 | 15 => (&[8, 16, 32, 64, 128], 1),
            _ => return None,
        };
        Some(Self {
            strides,
            anchors,
            has_points: outputs == 3 * strides.len(),
        })
    }

    /// The sides of an input are multiples of this.
    pub fn multiple(&self) -> usize {
        self.strides.last().copied().unwrap_or(1)
    }

    /// Key points of a face.
    pub fn key_points(&self) -> usize {
        if self.has_points { POINTS / 2 } else { 0 }
    }

    /// The shapes of the outputs for an input of so many columns and rows, for messages.
    pub fn expected(&self, input: [usize; 2]) -> String {
        let boxes = self.strides.iter().map(|stride| self.boxes(*stride, input));
        let shapes = boxes.map(|n| format!("[{n}, 1], [{n}, {BOX}], [{n}, {POINTS}]"));
        format!("SCRFD ({})", shapes.collect::<Vec<_>>().join(", "))
    }

    /// Faces with a score of at least `least_score` in an input of so many columns and rows, in its
    /// pixels; `None` when the outputs have other lengths.
    pub fn decode(
        &self,
        outputs: &[ArrayD<f32>],
        input: [usize; 2],
        least_score: f32,
    ) -> Option<Vec<Detection>> {
        let mut found = Vec::new();
        for index in 0..self.strides.len() {
            let level = self.level(outputs, index, input)?;
            let scores = level.scores.iter().enumerate();
            let best = scores.filter(|(_, [score])| *score >= least_score);
            found.extend(best.map(|(i, [score])| level.detection(i, *score, self.anchors)));
        }
        Some(found)
    }

    /// Boxes at a stride.
    fn boxes(&self, stride: usize, [width, height]: [usize; 2]) -> usize {
        (width / stride) * (height / stride) * self.anchors
    }

    fn level<'a>(
        &self,
        outputs: &'a [ArrayD<f32>],
        index: usize,
        input: [usize; 2],
    ) -> Option<Level<'a>> {
        let stride = self.strides[index];
        let boxes = self.boxes(stride, input);
        let values = |kind: usize| outputs.get(kind * self.strides.len() + index)?.as_slice();
        let points = if self.has_points {
            rows(values(2)?, boxes)?
        } else {
            &[]
        };
        Some(Level {
            stride,
            columns: input[0] / stride,
            scores: rows(values(0)?, boxes)?,
            boxes: rows(values(1)?, boxes)?,
            points,
        })
    }
}

/// Values as `count` rows; `None` if there are more or fewer.
fn rows<const N: usize>(values: &[f32], count: usize) -> Option<&[[f32; N]]> {
    let (rows, rest) = values.as_chunks();
    (rest.is_empty() && rows.len() == count).then_some(rows)
}

impl Level<'_> {
    /// The box number `index`, with `anchors` boxes per cell: `distance2bbox` and `distance2kps`.
    fn detection(&self, index: usize, score: f32, anchors: usize) -> Detection {
        let cell = index / anchors;
        let stride = self.stride as f32;
        let x = (cell % self.columns) as f32 * stride;
        let y = (cell / self.columns) as f32 * stride;
        let [left, top, right, bottom] = self.boxes[index].map(|way| way * stride);
        let points = self
            .points
            .get(index)
            .map_or(&[][..], |row| row.as_chunks::<2>().0);
        Detection {
            bbox: Rect::new(x - left, y - top, left + right, top + bottom),
            score,
            key_points: points
                .iter()
                .map(|[dx, dy]| Point::new(x + dx * stride, y + dy * stride))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::IxDyn;

    use super::*;

    /// Outputs without a face for an input of 256×128, with or without a batch axis.
    fn nothing(heads: &Heads, is_batched: bool) -> Vec<ArrayD<f32>> {
        let kinds = if heads.has_points { 3 } else { 2 };
        let widths = [1, BOX, POINTS].into_iter().take(kinds);
        widths
            .flat_map(|width| heads.strides.iter().map(move |stride| (width, *stride)))
            .map(|(width, stride)| {
                let boxes = heads.boxes(stride, [256, 128]);
                let shape: &[usize] = if is_batched {
                    &[1, boxes, width]
                } else {
                    &[boxes, width]
                };
                ArrayD::zeros(IxDyn(shape))
            })
            .collect()
    }

    fn set(outputs: &mut [ArrayD<f32>], output: usize, row: usize, values: &[f32]) {
        let slots = outputs[output].as_slice_mut().unwrap();
        slots[row * values.len()..][..values.len()].copy_from_slice(values);
    }

    #[test]
    fn every_variant_is_decoded() {
        // Outputs, stride, box at that stride, and where its anchor is.
        for (outputs, level, row, x, y) in [
            (6, 0, 2 * (32 * 3 + 5) + 1, 40.0, 24.0),
            (9, 0, 2 * (32 * 3 + 5), 40.0, 24.0),
            (9, 2, 2 * (8 * 3 + 7) + 1, 224.0, 96.0),
            (10, 0, 32 * 3 + 5, 40.0, 24.0),
            (10, 4, 1, 128.0, 0.0),
            (15, 3, 4 + 2, 128.0, 64.0),
        ] {
            for is_batched in [false, true] {
                let heads = Heads::of(outputs).unwrap();
                let mut values = nothing(&heads, is_batched);
                assert_eq!(values.len(), outputs);
                let levels = heads.strides.len();
                set(&mut values, level, row, &[0.75]);
                set(&mut values, levels + level, row, &[1.0, 0.5, 2.0, 3.0]);
                if heads.has_points {
                    let ways: Vec<f32> = (0..10).map(|i| i as f32 / 4.0 - 1.0).collect();
                    set(&mut values, 2 * levels + level, row, &ways);
                }
                let found = heads.decode(&values, [256, 128], 0.5).unwrap();
                let stride = heads.strides[level] as f32;
                assert_eq!(found.len(), 1, "{outputs}");
                assert_eq!(found[0].score, 0.75);
                let (left, top) = (x - stride, y - 0.5 * stride);
                let bbox = Rect::new(left, top, 3.0 * stride, 3.5 * stride);
                assert_eq!(found[0].bbox, bbox, "{outputs}");
                let points: Vec<Point> = (0..5)
                    .map(|i| i as f32 / 2.0 - 1.0)
                    .map(|way| Point::new(x + way * stride, y + (way + 0.25) * stride))
                    .collect();
                let points = if heads.has_points { points } else { Vec::new() };
                assert_eq!(found[0].key_points, points, "{outputs}");
                let better = heads.decode(&values, [256, 128], 0.76).unwrap();
                assert!(better.is_empty());
            }
        }
    }

    #[test]
    fn a_score_of_just_the_threshold_is_a_face() {
        let heads = Heads::of(9).unwrap();
        let mut values = nothing(&heads, true);
        set(&mut values, 0, 3, &[0.5]);
        set(&mut values, 1, 4, &[f32::NAN]);
        assert_eq!(heads.decode(&values, [256, 128], 0.5).unwrap().len(), 1);
    }

    #[test]
    fn other_numbers_of_outputs_are_no_detector() {
        for outputs in [0, 5, 7, 8, 11, 12, 14, 16] {
            assert_eq!(Heads::of(outputs), None, "{outputs}");
        }
    }

    #[test]
    fn outputs_of_other_lengths_are_refused() {
        let heads = Heads::of(9).unwrap();
        let whole = nothing(&heads, true);
        assert!(heads.decode(&whole, [256, 128], 0.5).is_some());
        assert!(heads.decode(&whole, [256, 160], 0.5).is_none());
        assert!(heads.decode(&whole[..8], [256, 128], 0.5).is_none());
        for (index, shape) in [(0, [1024 - 1, 1]), (4, [256, 3]), (8, [64, 11])] {
            let mut values = whole.clone();
            values[index] = ArrayD::zeros(IxDyn(&shape));
            assert!(heads.decode(&values, [256, 128], 0.5).is_none(), "{index}");
        }
    }
}
