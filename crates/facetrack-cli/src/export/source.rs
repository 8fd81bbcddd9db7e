// SPDX-License-Identifier: MPL-2.0
//! The frames of a record.

use std::io::{Read, Seek};

use facetrack::replay::Replay;
use facetrack::report::FrameStatus;

use super::contents::Contents;
use super::frame::{Face, Frame};
use super::selection::Selection;

/// Size of the video for records without one: it changes no value that is exported.
const ANY_SIZE: (u32, u32) = (1, 1);

/// Reads a record frame by frame.
pub struct Source<'a, S> {
    replay: &'a mut Replay<S>,
    contents: Contents,
    selection: Selection,
    /// Number and time of each frame.
    frames: Vec<(u64, Option<u64>)>,
    next: usize,
}

impl<'a, S: Read + Seek> Source<'a, S> {
    /// The selected faces of `replay`, whose contents are these.
    pub fn new(replay: &'a mut Replay<S>, contents: Contents, selection: Selection) -> Self {
        Self {
            frames: replay.frames().collect(),
            replay,
            contents,
            selection,
            next: 0,
        }
    }

    fn frame(&mut self, place: usize) -> Result<Frame, String> {
        let (number, pts) = self.frames[place];
        let report = self.replay.report(place, ANY_SIZE);
        let report = report.map_err(|error| error.to_string())?;
        let status = report.as_ref().map(|report| report.status);
        let faces = report.map_or(Vec::new(), |report| report.faces);
        let is_skipped = matches!(status, None | Some(FrameStatus::Skipped));
        let is_analysed = !(is_skipped && faces.is_empty());
        let faces = self.selection.of(faces, &self.contents);
        let faces = faces.iter().map(|face| Face::new(face, &self.contents));
        Ok(Frame {
            number,
            pts,
            time: pts.or_else(|| self.time_by_rate(number)),
            is_analysed,
            faces: faces.collect(),
        })
    }

    fn time_by_rate(&self, number: u64) -> Option<u64> {
        let seconds = number.saturating_sub(1) as f64 / self.replay.fps()?;
        Some((seconds * 1e9).round() as u64)
    }
}

impl<S: Read + Seek> Iterator for Source<'_, S> {
    type Item = Result<Frame, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let place = self.next;
        self.next += 1;
        (place < self.frames.len()).then(|| self.frame(place))
    }
}
