// SPDX-License-Identifier: MPL-2.0
//! Converts the detector's outputs to boxes and key points: `forward` in `scrfd.py`.

use ndarray::ArrayD;

use crate::geometry::{Point, Rect};
use crate::nms::Detection;

/// Values of a box, the distances from the anchor to its left, top, right and bottom edges, and those
/// of the five key points.
pub(super) const VALUES: [usize; 2] = [BOX, POINTS];
const BOX: usize = 4;
const POINTS: usize = 10;

/// Layout of a detector's outputs: the scores of every stride, then the boxes of every stride, then
/// the key points of every stride if it has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Pixels of the input from cell to cell.
    strides: &'static [usize],
    /// Boxes in a cell.
    pub anchors: usize,
    /// True if there are key points.
    has_points: bool,
}

/// A box with a high score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Number of its stride.
    pub level: usize,
    /// Column and row of its cell.
    pub cell: [usize; 2],
    /// Number of the box in its cell.
    pub anchor: usize,
    score: f32,
}

impl Heads {
    /// Returns the layout of a network with so many outputs: `_init_vars` in `scrfd.py`.
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
        let boxes = self.sizes(input).into_iter().map(|size| self.boxes(size));
        let shapes = boxes.map(|n| format!("[{n}, 1], [{n}, {BOX}], [{n}, {POINTS}]"));
        format!("SCRFD ({})", shapes.collect::<Vec<_>>().join(", "))
    }

    /// Number of strides.
    pub fn levels(&self) -> usize {
        self.strides.len()
    }

    /// Columns and rows of the cells of each stride, for an input of so many columns and rows.
    pub fn sizes(&self, input: [usize; 2]) -> Vec<[usize; 2]> {
        let strides = self.strides.iter();
        strides
            .map(|stride| input.map(|side| side / stride))
            .collect()
    }

    /// Boxes with a score of at least `least_score`. The first of `outputs` are the scores for an
    /// input of so many columns and rows; `None` when they have other lengths.
    pub fn candidates(
        &self,
        outputs: &[ArrayD<f32>],
        input: [usize; 2],
        least_score: f32,
    ) -> Option<Vec<Candidate>> {
        let mut candidates = Vec::new();
        for (level, size) in self.sizes(input).into_iter().enumerate() {
            let scores = outputs.get(level)?.as_slice()?;
            if scores.len() != self.boxes(size) {
                return None;
            }
            let scores = scores.iter().enumerate();
            let best = scores.filter(|(_, score)| **score >= least_score);
            candidates.extend(best.map(|(index, score)| {
                let cell = index / self.anchors;
                let columns = size[0];
                Candidate {
                    level,
                    cell: [cell % columns, cell / columns],
                    anchor: index % self.anchors,
                    score: *score,
                }
            }));
        }
        Some(candidates)
    }

    /// Elements of the outputs after the scores, for cells of these sizes.
    pub fn lengths(&self, sizes: &[[usize; 2]]) -> Vec<usize> {
        let of_size = |width| sizes.iter().map(move |size| self.boxes(*size) * width);
        self.widths().flat_map(of_size).collect()
    }

    /// Box and key points of a candidate in the outputs after the scores, which have these lengths.
    pub fn values(&self, own: &Candidate, outputs: &[&[f32]], sizes: &[[usize; 2]]) -> Vec<f32> {
        let [column, row] = own.cell;
        let index = (row * sizes[own.level][0] + column) * self.anchors + own.anchor;
        let of_level = outputs.iter().skip(own.level).step_by(self.levels());
        let values = of_level.zip(self.widths());
        let values = values.flat_map(|(output, width)| &output[index * width..][..width]);
        values.copied().collect()
    }

    /// The face of `candidate`, in pixels of the input, with its box and key points: `distance2bbox`
    /// and `distance2kps`.
    pub fn face(&self, candidate: &Candidate, values: &[f32]) -> Option<Detection> {
        let stride = self.strides[candidate.level] as f32;
        let [x, y] = candidate.cell.map(|place| place as f32 * stride);
        let (bbox, points) = values.split_first_chunk::<BOX>()?;
        let [left, top, right, bottom] = bbox.map(|way| way * stride);
        let (points, _) = points.as_chunks();
        let point = |[dx, dy]: &[f32; 2]| Point::new(x + dx * stride, y + dy * stride);
        Some(Detection {
            bbox: Rect::new(x - left, y - top, left + right, top + bottom),
            score: candidate.score,
            key_points: points.iter().map(point).collect(),
        })
    }

    /// Values of a box, and of its key points if it has any.
    fn widths(&self) -> impl Iterator<Item = usize> {
        VALUES.into_iter().take(1 + usize::from(self.has_points))
    }

    /// Boxes in so many columns and rows of cells.
    fn boxes(&self, [columns, rows]: [usize; 2]) -> usize {
        columns * rows * self.anchors
    }
}

#[cfg(test)]
mod tests {
    use ndarray::IxDyn;

    use super::*;

    /// Outputs without a face for an input of 256×128, with or without a batch axis.
    fn nothing(heads: &Heads, is_batched: bool) -> Vec<ArrayD<f32>> {
        [1].into_iter()
            .chain(heads.widths())
            .flat_map(|width| heads.strides.iter().map(move |stride| (width, *stride)))
            .map(|(width, stride)| {
                let boxes = (256 / stride) * (128 / stride) * heads.anchors;
                let shape: &[usize] = if is_batched {
                    &[1, boxes, width]
                } else {
                    &[boxes, width]
                };
                ArrayD::zeros(IxDyn(shape))
            })
            .collect()
    }

    fn decode(
        heads: &Heads,
        outputs: &[ArrayD<f32>],
        input: [usize; 2],
        least_score: f32,
    ) -> Option<Vec<Detection>> {
        let candidates = heads.candidates(outputs, input, least_score)?;
        let sizes = heads.sizes(input);
        let others = outputs[heads.levels()..].iter();
        let others: Vec<_> = others.map(|own| own.as_slice().unwrap()).collect();
        let lengths = others.iter().map(|own| own.len());
        let face = |own: &Candidate| {
            heads
                .face(own, &heads.values(own, &others, &sizes))
                .unwrap()
        };
        lengths
            .eq(heads.lengths(&sizes))
            .then(|| candidates.iter().map(face).collect())
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
                let found = decode(&heads, &values, [256, 128], 0.5).unwrap();
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
                let better = decode(&heads, &values, [256, 128], 0.76).unwrap();
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
        assert_eq!(decode(&heads, &values, [256, 128], 0.5).unwrap().len(), 1);
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
        assert!(decode(&heads, &whole, [256, 128], 0.5).is_some());
        assert!(decode(&heads, &whole, [256, 160], 0.5).is_none());
        assert!(decode(&heads, &whole[..8], [256, 128], 0.5).is_none());
        for (index, shape) in [(0, [1024 - 1, 1]), (4, [256, 3]), (8, [64, 11])] {
            let mut values = whole.clone();
            values[index] = ArrayD::zeros(IxDyn(&shape));
            assert!(
                decode(&heads, &values, [256, 128], 0.5).is_none(),
                "{index}"
            );
        }
    }
}
