// SPDX-License-Identifier: MPL-2.0
//! Private readers, for the targets in `fuzz/`. Generic ones are here so that they are compiled with
//! this crate, whose coverage is measured.

use std::io::{self, Cursor};

use crate::engine::mediapipe::geometry::FaceGeometry;
use crate::engine::opencv::haar::detector::Detector;
use crate::engine::opencv::haar::{Search, xml};
use crate::engine::openseeface::faces::calibration;
use crate::observation::{HeadPose, Landmarks};
use crate::record::container::{self, Extent, Movie};
use crate::replay::{Replay, ReplayError};
use crate::report::FrameReport;

/// Reads a calibration of OpenSeeFace, and writes it again.
pub fn calibration(text: &str) -> Result<String, String> {
    let faces = calibration::read(text)?;
    Ok(calibration::write(faces.iter()))
}

/// Reads MediaPipe's canonical face, and fits it to `landmarks` in a frame of this size.
pub fn head_pose(
    metadata: &[u8],
    landmarks: &Landmarks,
    frame_size: (usize, usize),
) -> Result<Option<HeadPose>, String> {
    let geometry = FaceGeometry::from_metadata(metadata)?;
    Ok(geometry.pose(landmarks, frame_size))
}

/// Reads a cascade, and finds faces in a gray frame of this width and height: their left and top
/// edges, widths and heights.
pub fn cascade(xml: &[u8], luma: &[u8], frame: [usize; 2]) -> Result<Vec<[i32; 4]>, String> {
    let mut detector = Detector::new(xml::read(xml)?, Search::default());
    if !detector.prepare(frame).map_err(|error| error.to_string())? {
        return Ok(Vec::new());
    }
    let faces = detector.detect(luma).into_iter();
    Ok(faces.map(|f| [f.x, f.y, f.width, f.height]).collect())
}

/// Reads how long a file with these bytes is.
pub fn extent(bytes: &[u8]) -> io::Result<Extent> {
    container::extent(&mut Cursor::new(bytes))
}

/// Reads which pictures a file with these bytes shows.
pub fn movie(bytes: &[u8]) -> io::Result<Option<Movie>> {
    container::movie(&mut Cursor::new(bytes))
}

/// Number, time and report of each frame of a record; `video` is the size of frames without one.
pub fn replay(bytes: &[u8], video: (u32, u32)) -> Result<Vec<ReplayedFrame>, ReplayError> {
    let mut replay = Replay::open(Cursor::new(bytes))?;
    let frames: Vec<_> = replay.frames().collect();
    let frames = frames.into_iter().enumerate();
    Ok(frames
        .map(|(place, (number, pts))| (number, pts, replay.report(place, video)))
        .collect())
}

/// A frame of [`replay`].
pub type ReplayedFrame = (u64, Option<u64>, Result<Option<FrameReport>, ReplayError>);
