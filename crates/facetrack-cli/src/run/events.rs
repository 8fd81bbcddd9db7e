// SPDX-License-Identifier: MPL-2.0
//! Events of a run, from the lanes to the display.

use facetrack_jobs::Progress;

use super::marker::Marker;

/// Something that happened. Videos are named by their index.
#[derive(Debug, Clone)]
pub enum Event {
    /// A lane has begun a video, or one of its parts: the number of the part, from 0, and their
    /// count.
    Started {
        lane: usize,
        index: usize,
        part: Option<(usize, usize)>,
    },
    /// A video is under way.
    Progressed { lane: usize, progress: Progress },
    /// A lane has ended a video, finished or not.
    Left { lane: usize },
    /// A video is settled.
    Finished(Box<Report>),
    /// A message for the user.
    Noted(String),
}

/// A settled video.
#[derive(Debug, Clone)]
pub struct Report {
    pub index: usize,
    /// Whether this run has settled it.
    pub is_new: bool,
    pub marker: Marker,
}

impl Report {
    pub fn new(index: usize, is_new: bool, marker: Marker) -> Self {
        Self {
            index,
            is_new,
            marker,
        }
    }
}
