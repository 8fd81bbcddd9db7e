// SPDX-License-Identifier: MPL-2.0
//! Compares the faces that another engine finds in a copy with the faces that were covered.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use facetrack::geometry::Rect;
use facetrack::replay::Replay;
use facetrack::report::FrameReport;
use facetrack_jobs::{Request, Setup};

use super::BlurArguments;
use crate::faces;
use crate::run::worker::{Worker, WorkerSettings};

/// The engines that check copies, the best first. The last one has free models.
const CHECKERS: [&str; 2] = ["insightface", "mediapipe"];

/// Options with which an engine reports all faces that it finds.
const OPTIONS: [(&str, &[(&str, &str)]); 2] = [
    ("mediapipe", &[("max-faces", "100")]),
    ("openseeface", &[("max-faces", "100"), ("scan-every", "1")]),
];

/// Time before and after a frame in which a face of the record is or stays covered: the hold and the
/// look-ahead.
const NEAR: Duration = Duration::from_secs(1);

/// Margin of a covered area on each side, relative to the size of the face: the default.
const MARGIN: f32 = 0.25;

/// Share of a face that is on a covered area, if the engine has found that area and not a face. Our
/// choice.
const COVERED: f32 = 0.5;

/// Maximum difference of the times of a frame: containers round them.
const ROUNDING: Duration = Duration::from_millis(2);

/// Successive frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Frames {
    /// Times of the first and the last one, s.
    pub first: f64,
    pub last: f64,
    pub count: u64,
}

/// What was found in a copy.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Check {
    /// Frames with a face that was not covered.
    pub left: Vec<Frames>,
    /// Faces that were found on covered areas.
    pub on_covers: u64,
}

/// The options of an engine that checks copies.
pub(super) fn options(engine: &str) -> Vec<(String, String)> {
    let found = OPTIONS.iter().find(|(name, _)| *name == engine);
    let options = found.map_or(&[][..], |(_, options)| options);
    let owned = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

/// The engine that checks copies: the one that was asked for, or the first one that can be loaded and is
/// not the one that found the faces.
pub(super) fn engine(arguments: &BlurArguments) -> String {
    if let Some(engine) = &arguments.check_engine {
        return engine.clone();
    }
    let mut others = CHECKERS.iter().filter(|name| **name != arguments.engine);
    let found = others.find(|name| is_loadable(name));
    (*found.unwrap_or(&CHECKERS[1])).to_owned()
}

fn is_loadable(engine: &str) -> bool {
    let setup = Setup {
        engine: Some(engine.to_owned()),
        ..Setup::default()
    };
    let settings = WorkerSettings {
        first: Request::Setup(setup),
        limit: None,
        stop: Arc::default(),
    };
    Worker::start(&settings).is_ok()
}

/// Compares the faces in the copy with those in the record.
///
/// # Errors
/// Returns an error if one of them cannot be read, or the copy has other frames.
pub(super) fn compare(record: &Path, copy: &Path) -> Result<Check, String> {
    let covered = boxes(record)?;
    let found = boxes(copy)?;
    if covered.len() != found.len() {
        let (covered, found) = (covered.len(), found.len());
        return Err(format!("it has {found} frames, but the video {covered}"));
    }
    let mut pairs = std::iter::zip(&covered, &found);
    if let Some(((video, _), (copy, _))) = pairs.find(|(a, b)| a.0.abs_diff(b.0) > ROUNDING) {
        return Err(format!(
            "its frame at {:.3} s should be at {:.3} s",
            copy.as_secs_f64(),
            video.as_secs_f64()
        ));
    }
    let mut check = Check::default();
    let mut follows = false;
    for (time, faces) in &found {
        let first = covered.partition_point(|(it, _)| *it + NEAR < *time);
        let near = covered[first..]
            .iter()
            .take_while(|(it, _)| *it <= *time + NEAR);
        let covers: Vec<_> = near.flat_map(|(_, faces)| faces).map(with_margin).collect();
        let is_covered = |face: &Rect| {
            covers
                .iter()
                .any(|cover| cover.intersection(face).area() >= COVERED * face.area())
        };
        let left = faces.iter().filter(|face| !is_covered(face)).count();
        check.on_covers += (faces.len() - left) as u64;
        if left > 0 {
            check.add(time.as_secs_f64(), follows);
        }
        follows = left > 0;
    }
    Ok(check)
}

impl Check {
    /// Adds a frame with a face, which may follow another one.
    fn add(&mut self, seconds: f64, follows: bool) {
        match self.left.last_mut().filter(|_| follows) {
            Some(last) => (last.last, last.count) = (seconds, last.count + 1),
            None => self.left.push(Frames {
                first: seconds,
                last: seconds,
                count: 1,
            }),
        }
    }
}

/// The boxes of the faces in each frame of a record, by time, as fractions of the frame.
fn boxes(record: &Path) -> Result<Vec<(Duration, Vec<Rect>)>, String> {
    let at = |error: String| format!("{}: {error}", record.display());
    let mut replay = faces::open(record).map_err(at)?;
    let times = times(&replay);
    let mut boxes = Vec::new();
    for (place, time) in times.into_iter().enumerate() {
        let report = replay.report(place, faces::ANY_SIZE);
        let report = report.map_err(|error| at(error.to_string()))?;
        boxes.push((time, report.as_ref().map_or(Vec::new(), fractions)));
    }
    Ok(boxes)
}

/// Times of all frames of a record; those of frames without one follow from their numbers.
pub(super) fn times(replay: &Replay<File>) -> Vec<Duration> {
    let fps = replay.fps().unwrap_or(faces::ANY_FPS);
    let time = |(number, pts): (u64, Option<u64>)| match pts {
        Some(pts) => Duration::from_nanos(pts),
        None => Duration::from_secs_f64(number.saturating_sub(1) as f64 / fps),
    };
    replay.frames().map(time).collect()
}

/// The area that is covered at least: a face with its margin.
fn with_margin(face: &Rect) -> Rect {
    let (width, height) = (face.width * MARGIN, face.height * MARGIN);
    Rect::new(
        face.x - width,
        face.y - height,
        face.width + 2.0 * width,
        face.height + 2.0 * height,
    )
}

fn fractions(report: &FrameReport) -> Vec<Rect> {
    let (width, height) = (report.width.max(1) as f32, report.height.max(1) as f32);
    let boxes = report.faces.iter().map(|it| it.face.bbox);
    let fraction = |it: Rect| {
        Rect::new(
            it.x / width,
            it.y / height,
            it.width / width,
            it.height / height,
        )
    };
    boxes.map(fraction).collect()
}
