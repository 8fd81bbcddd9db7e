// SPDX-License-Identifier: MPL-2.0
//! Events of a run, from the lanes to the display.

use facetrack_jobs::Progress;

use super::status_file::StatusFile;

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
    Progressed {
        lane: usize,
        index: usize,
        progress: Progress,
    },
    /// A lane has ended a video, finished or not.
    Left { lane: usize },
    /// A video is settled.
    Finished(VideoResult),
    /// A message for the user.
    Noted(String),
}

/// A settled video.
#[derive(Debug, Clone)]
pub struct VideoResult {
    pub index: usize,
    /// Whether this run has settled it.
    pub is_new: bool,
    pub marker: Box<StatusFile>,
}

impl VideoResult {
    /// Whether this run has tried to track the video.
    pub fn is_tracked(&self) -> bool {
        self.is_new && self.marker.attempts > 0
    }
}
