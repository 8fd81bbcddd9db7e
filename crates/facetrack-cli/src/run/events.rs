// SPDX-License-Identifier: MPL-2.0
//! Events of a run, from the dispatchers to the display.

use facetrack_jobs::Progress;

use super::status_file::StatusFile;

/// An event of a run. Videos are named by their index.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// A dispatcher has begun a video, or a segment of it: its number, from 0, and their count.
    Started {
        dispatcher: usize,
        index: usize,
        segment: Option<(usize, usize)>,
    },
    /// A video is being tracked.
    Progressed {
        dispatcher: usize,
        index: usize,
        progress: Progress,
    },
    /// A dispatcher has ended a video, finished or not.
    Left { dispatcher: usize },
    /// A video is settled.
    Finished(VideoResult),
    /// A message for the user.
    Noted(String),
}

/// A settled video.
#[derive(Debug, Clone)]
pub(super) struct VideoResult {
    pub index: usize,
    /// True if this run has settled the video.
    pub is_new: bool,
    pub status: Box<StatusFile>,
}

impl VideoResult {
    /// Returns true if this run has tried to track the video.
    pub(super) fn is_tracked(&self) -> bool {
        self.is_new && self.status.attempts > 0
    }
}
