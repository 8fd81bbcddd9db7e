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

/// A box with a high score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Number of its stride.
    level: usize,
    /// Column and row of its cell.
    cell: [usize; 2],
    /// Number of the box in its cell.
    anchor: usize,
    score: f32,
}

/// Cells of a stride, in a rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Column and row of the first cell.
    pub first: [usize; 2],
    /// Columns and rows.
    pub size: [usize; 2],
}

/// Boxes and key points of an area.
struct Level<'a> {
    stride: usize,
    area: Area,
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
        let areas = self.areas(input);
        let boxes = areas.iter().map(|area| self.boxes(area));
        let shapes = boxes.map(|n| format!("[{n}, 1], [{n}, {BOX}], [{n}, {POINTS}]"));
        format!("SCRFD ({})", shapes.collect::<Vec<_>>().join(", "))
    }

    /// Number of strides.
    pub fn levels(&self) -> usize {
        self.strides.len()
    }

    /// All cells of each stride of an input of so many columns and rows.
    pub fn areas(&self, input: [usize; 2]) -> Vec<Area> {
        let area = |stride: &usize| Area {
            first: [0; 2],
            size: input.map(|side| side / stride),
        };
        self.strides.iter().map(area).collect()
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
        for (level, area) in self.areas(input).iter().enumerate() {
            let scores = outputs.get(level)?.as_slice()?;
            if scores.len() != self.boxes(area) {
                return None;
            }
            let scores = scores.iter().enumerate();
            let best = scores.filter(|(_, score)| **score >= least_score);
            candidates.extend(best.map(|(index, score)| {
                let cell = index / self.anchors;
                let columns = area.size[0];
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

    /// The smallest area of each stride with the cells of `candidates` and `reach` more to each
    /// side, as far as an input of so many columns and rows has them; one cell without candidates.
    pub fn areas_around(
        &self,
        candidates: &[Candidate],
        input: [usize; 2],
        reach: usize,
    ) -> Vec<Area> {
        let mut areas = self.areas(input);
        for (level, area) in areas.iter_mut().enumerate() {
            let of_level = candidates.iter().filter(|own| own.level == level);
            for axis in 0..2 {
                let places = of_level.clone().map(|own| own.cell[axis]);
                let first = places.clone().min().unwrap_or(0).saturating_sub(reach);
                let end = places.max().map_or(1, |last| last + reach + 1);
                area.size[axis] = end.min(area.size[axis]) - first;
                area.first[axis] = first;
            }
        }
        areas
    }

    /// The faces of `candidates`, in pixels of the input. `outputs` are the boxes and key points of
    /// `areas`, which have the cells of the candidates; `None` when they have other lengths.
    pub fn faces(
        &self,
        candidates: &[Candidate],
        outputs: &[ArrayD<f32>],
        areas: &[Area],
    ) -> Option<Vec<Detection>> {
        let levels = areas.iter().enumerate();
        let levels = levels.map(|(index, area)| self.level(outputs, index, *area));
        let levels = levels.collect::<Option<Vec<_>>>()?;
        let face = |own: &Candidate| levels[own.level].face(own, self.anchors);
        Some(candidates.iter().map(face).collect())
    }

    /// Boxes in an area.
    fn boxes(&self, area: &Area) -> usize {
        area.size[0] * area.size[1] * self.anchors
    }

    fn level<'a>(&self, outputs: &'a [ArrayD<f32>], index: usize, area: Area) -> Option<Level<'a>> {
        let boxes = self.boxes(&area);
        let values = |kind: usize| outputs.get(kind * self.levels() + index)?.as_slice();
        let points = if self.has_points {
            rows(values(1)?, boxes)?
        } else {
            &[]
        };
        Some(Level {
            stride: self.strides[index],
            area,
            boxes: rows(values(0)?, boxes)?,
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
    /// The face of `candidate`, with `anchors` boxes per cell: `distance2bbox` and `distance2kps`.
    fn face(&self, candidate: &Candidate, anchors: usize) -> Detection {
        let [column, row] = [0, 1].map(|axis| candidate.cell[axis] - self.area.first[axis]);
        let index = (row * self.area.size[0] + column) * anchors + candidate.anchor;
        let stride = self.stride as f32;
        let [x, y] = candidate.cell.map(|place| place as f32 * stride);
        let [left, top, right, bottom] = self.boxes[index].map(|way| way * stride);
        let points = self
            .points
            .get(index)
            .map_or(&[][..], |row| row.as_chunks::<2>().0);
        Detection {
            bbox: Rect::new(x - left, y - top, left + right, top + bottom),
            score: candidate.score,
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
        heads.faces(&candidates, &outputs[heads.levels()..], &heads.areas(input))
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
    fn areas_have_the_candidates_and_their_neighbours() {
        let heads = Heads::of(9).unwrap();
        let candidate = |level, cell| Candidate {
            level,
            cell,
            anchor: 0,
            score: 0.75,
        };
        let area = |first, size| Area { first, size };
        let candidates = [
            candidate(0, [5, 9]),
            candidate(0, [8, 9]),
            candidate(2, [7, 0]),
        ];
        let areas = heads.areas_around(&candidates, [256, 128], 2);
        let expected = [
            area([3, 7], [8, 5]),
            area([0; 2], [1; 2]),
            area([5, 0], [3, 3]),
        ];
        assert_eq!(areas, expected);
        let all = heads.areas_around(&candidates, [256, 128], 100);
        let whole = heads.areas([256, 128]);
        assert_eq!([all[0], all[2]], [whole[0], whole[2]]);
    }

    #[test]
    fn faces_of_an_area_are_where_they_are_in_the_whole() {
        let heads = Heads::of(9).unwrap();
        let mut whole = nothing(&heads, true);
        let (columns, cell) = (32, [5, 3]);
        let row = 2 * (columns * cell[1] + cell[0]) + 1;
        set(&mut whole, 0, row, &[0.75]);
        set(&mut whole, 3, row, &[1.0, 0.5, 2.0, 3.0]);
        let candidates = heads.candidates(&whole, [256, 128], 0.5).unwrap();
        let areas = heads.areas_around(&candidates, [256, 128], 1);
        let mut parts: Vec<ArrayD<f32>> = Vec::new();
        for width in [BOX, POINTS] {
            let boxes = areas.iter().map(|area| heads.boxes(area));
            parts.extend(boxes.map(|boxes| ArrayD::zeros(IxDyn(&[1, boxes, width]))));
        }
        set(&mut parts, 0, 2 * (3 + 1) + 1, &[1.0, 0.5, 2.0, 3.0]);
        assert_eq!(
            heads.faces(&candidates, &parts, &areas),
            decode(&heads, &whole, [256, 128], 0.5)
        );
        parts[1] = ArrayD::zeros(IxDyn(&[1, 4, BOX]));
        assert_eq!(heads.faces(&candidates, &parts, &areas), None);
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
