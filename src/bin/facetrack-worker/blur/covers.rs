// SPDX-License-Identifier: MPL-2.0
//! Notes what is covered in each frame.

use std::fs::File;
use std::io;

use facetrack::redaction::search_of;
use facetrack_jobs::{CoveredFrame, FaceArea, send};
use gst::prelude::*;
use gst_video::VideoInfo;
use gstfacetrack::meta::redaction::{Redacted, redacted};
use gstfacetrack::meta::{FaceTrackMeta, Fit};

/// Writes a line for each frame. After an error, nothing is written any more.
pub(super) struct Covers {
    file: File,
    written: io::Result<()>,
}

impl Covers {
    pub(super) fn new(file: File) -> Self {
        let written = Ok(());
        Self { file, written }
    }

    /// Notes what facetrackblur has covered in a frame that leaves it through `pad`, at `time` ns.
    pub(super) fn add(&mut self, pad: &gst::Pad, buffer: &gst::BufferRef, time: u64) {
        let caps = pad.current_caps();
        let Some(info) = caps.and_then(|caps| VideoInfo::from_caps(&caps).ok()) else {
            return;
        };
        if self.written.is_ok() {
            self.written = send(&self.file, &covered(buffer, &info, time));
        }
    }

    /// Takes the result of all writes.
    ///
    /// # Errors
    /// Returns the error of the first one that failed.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.written, Ok(()))
    }
}

fn covered(buffer: &gst::BufferRef, info: &VideoInfo, time: u64) -> CoveredFrame {
    let report = FaceTrackMeta::in_frame(buffer, info, Fit::Borders).ok();
    let (width, height) = (info.width() as f32, info.height() as f32);
    let area = |id, [x, y, w, h]: [f32; 4]| FaceArea {
        id,
        bounds: [x / width, y / height, w / width, h / height],
    };
    let Redacted { is_whole, regions } = redacted(buffer);
    let covers: Vec<_> = regions
        .into_iter()
        .map(|(id, bounds)| area(id, bounds.map(|it| it as f32)))
        .collect();
    let is_covered = |id| is_whole || covers.iter().any(|it| it.id == id);
    let faces = report.iter().flat_map(|report| &report.faces);
    // Boxes of other faces are larger, or of other frames.
    let measured = faces.filter(|it| it.face.origin.is_measured());
    let kept = measured.filter(|it| !is_covered(it.id)).map(|it| {
        let bbox = it.face.bbox;
        area(it.id, [bbox.x, bbox.y, bbox.width, bbox.height])
    });
    CoveredFrame {
        time,
        search: search_of(report.as_ref()),
        is_black: is_whole,
        kept: kept.collect(),
        covers,
    }
}
