// SPDX-License-Identifier: MPL-2.0
//! Options of the element `trackjsonload`.

use std::path::PathBuf;

use smart_default::SmartDefault;

use super::field::*;
use super::{Defaults, Row, rows};

choice_field! {
    /// Method of finding the recorded frame of a buffer.
    pub(crate) enum MatchBy, "GstTrackJsonLoadMatch" {
        Auto = "auto": "the time; the frame number if the buffer or the file has no times",
        Pts = "pts": "the time, which also works after seeking and with missing frames",
        Frame = "frame": "the frame number, counted as in trackjsonsink; after a seek, counting starts at the target of the seek",
    }
}

choice_field! {
    /// Handling of a record that may be of another video.
    pub(crate) enum OnMismatch, "GstTrackJsonLoadMismatch" {
        Warn = "warn": "post a warning that names the difference, and mark the frames, so that facetrackblur refuses them",
        Ignore = "ignore": "post the warning only",
    }
}

/// Settings of the element.
#[derive(Debug, Clone, SmartDefault)]
pub(crate) struct LoadSettings {
    pub location: Option<PathBuf>,
    pub match_by: MatchBy,
    /// Tolerance, ms.
    #[default(2)]
    pub tolerance: u32,
    /// Time to look ahead, s.
    pub look_ahead: f32,
    pub on_mismatch: OnMismatch,
}

impl Defaults for LoadSettings {
    const ELEMENT: &'static str = "trackjsonload";

    /// Rows in the order of the documentation.
    const ROWS: &'static [Row<Self>] = rows![
        "location": location =>
            "File to read, written by trackjsonsink with format=dense or format=jsonl",
        "match": match_by => "How the recorded frame of a buffer is found",
        "tolerance": tolerance, range(0.0, 60_000.0, "ms") =>
            "Maximum difference between the times of a buffer and of its recorded frame",
        "look-ahead": look_ahead, range(0.0, 60.0, "s") =>
            "Attach each face this long before it appears, as held; at least in the frame before",
        "on-mismatch": on_mismatch =>
            "Handling of a record that may be of another video, or of frames that were turned or cropped",
    ];
}
