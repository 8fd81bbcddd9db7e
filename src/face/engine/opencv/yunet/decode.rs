// SPDX-License-Identifier: MPL-2.0
//! From the network's outputs to boxes and key points: `FaceDetectorYNImpl::postProcess` in OpenCV's `face_detect.cpp`.

use super::heads::CHANNELS;
use super::{KEY_POINTS, STRIDES};
use crate::face::geometry::{Point, Rect};
use crate::face::nms::{self, Detection};

/// Candidates that are looked at, the best: the default of `top_k` in `FaceDetectorYN::create`.
const TOP_K: usize = 5000;

/// Where a head's channels start.
const CLASS: usize = 0;
const OBJECT: usize = 1;
const BOX: usize = 2;
const POINTS: usize = 6;

/// The outputs of one stride: channels of `columns` × rows cells.
#[derive(Clone, Copy)]
pub struct Level<'a> {
    /// Pixels of the input from cell to cell.
    pub stride: usize,
    /// Cells in a row.
    pub columns: usize,
    /// [`CHANNELS`] planes one after the other.
    pub values: &'a [f32],
}

/// A cell whose score is high enough.
struct Candidate {
    score: f32,
    level: usize,
    cell: usize,
}

/// Faces with a score of at least `min_score`, best first, in pixels of the network's input. Of those whose boxes have
/// an IoU above `max_iou` the best is left.
pub fn decode(levels: &[Level<'_>; STRIDES.len()], min_score: f32, max_iou: f32) -> Vec<Detection> {
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
        let cells = self.values.len() / CHANNELS;
        let scores = self
            .channel(CLASS, cells)
            .iter()
            .zip(self.channel(OBJECT, cells));
        for (cell, (class, object)) in scores.enumerate() {
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
            Point::new(
                (column + value(channel)) * stride,
                (row + value(channel + 1)) * stride,
            )
        };
        let center = point(BOX);
        let (width, height) = (value(BOX + 2).exp() * stride, value(BOX + 3).exp() * stride);
        Detection {
            bbox: Rect::new(
                center.x - width / 2.0,
                center.y - height / 2.0,
                width,
                height,
            ),
            score: candidate.score,
            key_points: (0..KEY_POINTS).map(|i| point(POINTS + 2 * i)).collect(),
        }
    }
}

/// The original compares boxes whose corner and sides are cut to whole pixels.
fn whole_pixels(bbox: &Rect) -> Rect {
    Rect::new(
        bbox.x.trunc(),
        bbox.y.trunc(),
        bbox.width.trunc(),
        bbox.height.trunc(),
    )
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}
