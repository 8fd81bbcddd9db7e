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

/// The selected faces of `replay`, whose contents are these, frame by frame.
pub fn frames<S: Read + Seek>(
    replay: &mut Replay<S>,
    contents: Contents,
    selection: Selection,
) -> impl Iterator<Item = Result<Frame, String>> {
    let frames: Vec<_> = replay.frames().collect();
    let fps = replay.fps();
    let time_by_rate = move |number: u64| {
        let seconds = number.saturating_sub(1) as f64 / fps?;
        Some((seconds * 1e9).round() as u64)
    };
    let places = frames.into_iter().enumerate();
    places.map(move |(place, (number, pts))| {
        let report = replay.report(place, ANY_SIZE);
        let report = report.map_err(|error| error.to_string())?;
        let status = report.as_ref().map(|report| report.status);
        let faces = report.map_or(Vec::new(), |report| report.faces);
        let is_skipped = matches!(status, None | Some(FrameStatus::Skipped));
        let is_analysed = !(is_skipped && faces.is_empty());
        let faces = selection.of(faces, &contents);
        let faces = faces.iter().map(|face| Face::new(face, &contents));
        Ok(Frame {
            number,
            pts,
            time: pts.or_else(|| time_by_rate(number)),
            is_analysed,
            faces: faces.collect(),
        })
    })
}
