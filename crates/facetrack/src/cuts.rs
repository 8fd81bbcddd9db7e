// SPDX-License-Identifier: MPL-2.0
//! Finds hard cuts between shots and repeated pictures, frame by frame, from a few thousand samples of
//! each frame.
//!
//! For cuts, a frame is compared with the last one that shows something. Frames of one color and flashes show
//! nothing, so they are passed over. The comparison ignores brightness and finds the best
//! displacement, so fades and pans do not count as cuts. All thresholds were chosen with one half
//! of a set of clips and checked with the other half: `docs/decisions/cuts.md`.

mod likeness;
mod repeats;
mod sketch;

use std::collections::VecDeque;

use self::likeness::{Changes, is_screen_in_use, similarity};
use self::repeats::Repeats;
use self::sketch::Sketch;
use super::image::ImageView;
use crate::words::choices;

choices! {
    /// Handling of hard cuts.
    pub enum OnCut, words on_cut_words {
        Reset = "reset": "the engine and the tracker start afresh: all ids end, and no face is held or smoothed across the cut",
        Ignore = "ignore": "cuts are not searched for",
    }
}

/// Minimum contrast of a frame that shows something, in levels of 255.
const MIN_CONTRAST: f32 = 1.0;

/// Mean change up to which a frame continues the shot, in levels.
const MIN_CHANGE: f32 = 4.0;

/// Similarity below which a frame may show another scene, if [`DROP`] agrees.
const DIFFERENT: f32 = 0.46;

/// Minimum drop of the similarity below the last frames: an explosion changes every frame.
const DROP: f32 = 0.25;

/// Number of frames whose similarity counts for [`DROP`].
const SIMILARITIES: usize = 4;

/// Similarity below which a sudden change is a cut, such as to another person in the same room.
const PARTLY_DIFFERENT: f32 = 0.8;

/// A change is sudden if the largest change of the last frames is below this part of it.
const SUDDEN: f32 = 0.25;

/// Number of frames whose changes count for [`SUDDEN`].
const CHANGES: usize = 6;

/// Minimum number of changes that are known before a change can be sudden.
const MIN_CHANGES: usize = 3;

/// Minimum part of the picture that a sudden change changes.
const MIN_CHANGED: f32 = 0.25;

/// Minimum change, in levels, from a blank frame to the first frame of the next shot. It is lower at
/// the beginning of a fade.
const MIN_REAPPEARANCE: f32 = 10.0;

/// Part of the recent contrast that is left if a fade has begun.
const FADING: f32 = 0.5;

/// Part of the recent contrast that still counts in the next frame: half of it after 10 frames.
const CONTRAST_DECAY: f32 = 0.93;

/// Maximum number of frames of a flash.
const FLASH_FRAMES: usize = 4;

/// The change from a frame to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Another picture of the shot.
    Picture,
    /// The same picture, which may have been encoded again.
    Repeat,
    /// The first picture of a shot after a hard cut.
    Cut,
}

/// Finds the first frames of shots and repeated pictures.
#[derive(Debug, Default)]
pub struct CutDetector {
    repeats: Repeats,
    /// The last frame that shows something.
    shown: Option<Sketch>,
    /// The frame before, if it shows nothing.
    blank: Option<Sketch>,
    /// Number of flash frames before the next frame.
    flashes: usize,
    /// Latest changes from frame to frame, in levels.
    changes: VecDeque<f32>,
    /// Latest similarities of successive frames.
    similarities: VecDeque<f32>,
    /// Contrast of the shot.
    contrast: f32,
}

/// A frame compared with the frames before.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    /// The frame shows nothing.
    Blank,
    /// The frame is lit by a flash.
    Flash,
    /// The frame continues the shot with this similarity, or begins another one.
    Shown { similarity: f32, cut: bool },
}

impl Verdict {
    const SAME: Self = Self::Shown {
        similarity: 1.0,
        cut: false,
    };
}

impl CutDetector {
    /// The change to the next frame.
    pub fn change(&mut self, image: &ImageView<'_>, on_cut: OnCut) -> Change {
        // Without memory for the frame, its analysis fails.
        let Ok(sketch) = Sketch::of(image) else {
            return Change::Picture;
        };
        let is_repeat = self.repeats.is_repeat(&sketch);
        if on_cut == OnCut::Reset && self.is_cut(sketch) {
            self.repeats.begin_shot();
            return Change::Cut;
        }
        if is_repeat {
            return Change::Repeat;
        }
        Change::Picture
    }

    /// Returns true if the next frame is the first one of a shot after a hard cut.
    fn is_cut(&mut self, sketch: Sketch) -> bool {
        let changes_from = |before| Changes::between(before, &sketch);
        let changes = self.shown.as_ref().map(changes_from);
        let step = self.blank.as_ref().map(changes_from).or(changes);
        let step = step.map_or(0.0, |step| step.mean);
        let verdict = match (&self.shown, changes) {
            _ if sketch.contrast < MIN_CONTRAST => Verdict::Blank,
            (Some(shown), Some(changes)) if changes.mean >= MIN_CHANGE => {
                self.compare(shown, &sketch, &changes, step)
            }
            _ => Verdict::SAME,
        };
        push(&mut self.changes, step, CHANGES);
        self.update(sketch, verdict);
        matches!(verdict, Verdict::Shown { cut: true, .. })
    }

    /// Forgets all frames: the next one does not continue them.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Compares a frame with the last one that shows something. `step` is the change from the frame
    /// before.
    fn compare(&self, shown: &Sketch, sketch: &Sketch, changes: &Changes, step: f32) -> Verdict {
        let similarity = similarity(&shown.detail, &sketch.detail);
        if self.is_flash(sketch, changes, similarity) {
            return Verdict::Flash;
        }
        let cut = if similarity < self.least_similarity() {
            self.has_reappeared(shown, step) && !is_screen_in_use(shown, sketch, changes)
        } else {
            similarity < PARTLY_DIFFERENT
                && self.is_sudden(changes)
                && !sketch.is_of_screen()
                && !shown.is_of_screen()
        };
        Verdict::Shown { similarity, cut }
    }

    fn is_flash(&self, sketch: &Sketch, changes: &Changes, similarity: f32) -> bool {
        let is_lit = changes.is_brighter() && (sketch.is_overexposed() || similarity > DIFFERENT);
        is_lit && self.flashes < FLASH_FRAMES
    }

    fn least_similarity(&self) -> f32 {
        let usual = self.similarities.iter().copied().fold(1.0, f32::min);
        DIFFERENT.min(usual - DROP)
    }

    /// Returns true if the picture reappears at once. A fade has frames between that show little.
    fn has_reappeared(&self, shown: &Sketch, step: f32) -> bool {
        let is_faded = shown.contrast < FADING * self.contrast;
        self.blank.is_none() || (step >= MIN_REAPPEARANCE && !is_faded)
    }

    fn is_sudden(&self, changes: &Changes) -> bool {
        let usual = self.changes.iter().copied().fold(0.0, f32::max);
        self.blank.is_none()
            && self.changes.len() >= MIN_CHANGES
            && usual < SUDDEN * changes.mean
            && changes.changed > MIN_CHANGED
    }

    fn update(&mut self, sketch: Sketch, verdict: Verdict) {
        match verdict {
            Verdict::Shown { similarity, cut } => {
                let before = if cut {
                    0.0
                } else {
                    CONTRAST_DECAY * self.contrast
                };
                self.contrast = sketch.contrast.max(before);
                push(&mut self.similarities, similarity, SIMILARITIES);
                (self.shown, self.blank, self.flashes) = (Some(sketch), None, 0);
            }
            Verdict::Flash => (self.blank, self.flashes) = (Some(sketch), self.flashes + 1),
            Verdict::Blank => self.blank = Some(sketch),
        }
    }
}

/// Adds a value to the latest `count`.
fn push(latest: &mut VecDeque<f32>, value: f32, count: usize) {
    if latest.len() == count {
        latest.pop_front();
    }
    latest.push_back(value);
}

#[cfg(test)]
mod tests;
