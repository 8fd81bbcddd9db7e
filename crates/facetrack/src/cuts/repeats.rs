// SPDX-License-Identifier: MPL-2.0
//! Finds frames that repeat the picture of the frame before.
//!
//! A repeated picture that was encoded again differs a little. A frame is compared with the first
//! one of the picture, so that a slow change does not count as a repetition for long. The thresholds
//! separate the repeated frames of clips that x264, libvpx and FFmpeg's MPEG-4 and MJPEG encoders
//! had encoded from the frames of moving people.

use std::collections::VecDeque;

use super::likeness::Changes;
use super::sketch::Sketch;
use super::{MIN_CONTRAST, push};

/// Maximum change of a cell of a repeated picture, in levels.
const SAME: f32 = 4.0;

/// Maximum mean change of a repeated picture, as a part of the usual one between pictures.
const PART: f32 = 0.2;

/// Maximum mean change of a repeated picture if [`PART`] counts, in levels.
const MAX_MEAN: f32 = 1.0;

/// Number of changes that tell the usual one, which is the second largest.
const CHANGES: usize = 4;

/// Finds repeated pictures.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// The first frame of the last picture.
    first: Option<Sketch>,
    /// Mean changes of the last pictures, in levels.
    changes: VecDeque<f32>,
}

impl Repeats {
    /// Returns true if the next frame repeats the picture of the frame before. Returns
    /// false for frames without content, because they cannot be distinguished.
    pub(super) fn is_repeat(&mut self, sketch: &Sketch) -> bool {
        let first = self.first.as_ref();
        if let Some(changes) = first.map(|first| Changes::between(first, sketch)) {
            if sketch.contrast >= MIN_CONTRAST && self.are_slight(&changes) {
                return true;
            }
            push(&mut self.changes, changes.mean, CHANGES);
        }
        self.first = Some(sketch.clone());
        false
    }

    /// Begins a shot with the last frame. Pictures of other shots change in another way.
    pub(super) fn begin_shot(&mut self) {
        self.changes.clear();
    }

    fn are_slight(&self, changes: &Changes) -> bool {
        changes.largest <= SAME || changes.mean <= MAX_MEAN.min(PART * self.usual())
    }

    /// The usual change between pictures; 0 if it is not known yet.
    fn usual(&self) -> f32 {
        let mut changes: Vec<_> = self.changes.iter().copied().collect();
        changes.sort_unstable_by(f32::total_cmp);
        changes.get(CHANGES - 2).copied().unwrap_or(0.0)
    }
}
