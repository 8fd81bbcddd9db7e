// SPDX-License-Identifier: MPL-2.0
//! Compares the faces that another engine finds in a copy with the areas that are covered.

use std::path::Path;
use std::time::Duration;

use facetrack::engine::EngineKind;
use facetrack::geometry::Rect;
use facetrack::redaction::search_of;
use facetrack::report::{FrameReport, SearchExtent};
use facetrack_jobs::{CoveredFrame, FaceArea, Status};

use super::copies::covered_frames;
use super::{FINDER, FINDER_OPTIONS, report};
use crate::run::TrackedVideo;
use crate::{faces, places};

/// The engines that check copies, the best first, with the options with which they report all faces. Only
/// the first one has models that are not free.
const CHECKERS: [(&str, &[(&str, &str)]); 4] = [
    ("insightface", &[]),
    ("mediapipe", &[("max-faces", "100")]),
    (FINDER, &FINDER_OPTIONS),
    ("openseeface", &[("max-faces", "100"), ("scan-every", "1")]),
];

/// Minimum share of a face that is on a covered area, if the engine has found that area. Our choice.
const MOSTLY: f32 = 0.5;

/// Minimum intersection over union of the boxes that two engines find for the same face. Our choice.
const SAME_FACE: f32 = 0.3;

/// Option with which no face is left out of a record.
const ALL_FACES: (&str, &str) = ("tracker", "centroid");

/// Maximum difference of the times of a frame: containers round them.
const ROUNDING: Duration = Duration::from_millis(2);

/// In fractions of the frame.
const WHOLE_FRAME: Rect = Rect {
    x: 0.0,
    y: 0.0,
    width: 1.0,
    height: 1.0,
};

/// A face that was found in a frame of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Found {
    /// It is on a covered area: the cover is too weak, or looks like a face.
    OnCover,
    /// It is not covered.
    Uncovered,
}

/// The covered areas of a copy, and the faces that were found in it.
#[derive(Debug, Default)]
pub(super) struct Check {
    pub frames: Vec<CoveredFrame>,
    /// Frames with a face, by the worst one.
    pub found: report::Ranges<Found>,
}

/// The options of an engine that checks copies.
pub(super) fn options(engine: &str) -> Vec<(String, String)> {
    let found = CHECKERS.iter().find(|(name, _)| *name == engine);
    let options = found.map_or(&[][..], |(_, options)| options);
    let owned = options
        .iter()
        .chain([&ALL_FACES])
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

/// The name of an engine, which users may write in other ways.
fn name_of(engine: &str) -> String {
    let kind = engine.parse::<EngineKind>();
    kind.map_or_else(|_| engine.to_owned(), |kind| kind.name().to_owned())
}

/// The engine whose detector finds the faces of an engine.
fn detector(engine: &str) -> String {
    let name = name_of(engine);
    match name.as_str() {
        "opencv-yunet-pyfeat" | "eos" => FINDER.to_owned(),
        _ => name,
    }
}

/// The engine that checks copies: the one that was asked for, or the best one that is there and has
/// another detector than `finder`, which found the faces.
///
/// # Errors
/// Returns an error if one with the detector of `finder` was asked for.
pub(super) fn engine(wanted: Option<&str>, finder: &str) -> Result<String, String> {
    if let Some(engine) = wanted {
        return match detector(engine) == detector(finder) {
            true => Err(format!(
                "{engine} looks for faces as {finder} does, which has found them. Name another engine with --check-engine"
            )),
            false => Ok(name_of(engine)),
        };
    }
    let has_best = places::search_paths().pack(None).is_ok();
    let there = CHECKERS[usize::from(!has_best)..].iter();
    let mut others = there.map(|(name, _)| *name);
    let found = others.find(|name| *name != detector(finder));
    Ok(found.unwrap_or(FINDER).to_owned())
}

/// Compares the faces that were found in a copy with the areas that are covered by its note. `record` is
/// the record of the video.
///
/// # Errors
/// Returns an error if the copy was not searched to its end and in whole frames, one of the files cannot be
/// read, or the copy has other frames than the video.
pub(super) fn compare(copy: &TrackedVideo, record: &Path, note: &Path) -> Result<Check, String> {
    let result = copy.result.as_ref().map_err(Clone::clone)?;
    if result.outcome.status != Status::Complete {
        let reason = result.outcome.message.as_deref();
        return Err(reason.unwrap_or("it is damaged").to_owned());
    }
    let frames = covered_frames(note, &copy.path)?;
    let found = boxes(&copy.record)?;
    let times = times(record)?;
    if times.len() != found.len() {
        let (video, copy) = (times.len(), found.len());
        return Err(format!("it has {copy} frames, but the video {video}"));
    }
    let mut pairs = std::iter::zip(&times, &found);
    if let Some((video, (copy, _))) = pairs.find(|(a, (b, _))| a.abs_diff(*b) > ROUNDING) {
        return Err(format!(
            "its frame at {:.3} s should be at {:.3} s",
            copy.as_secs_f64(),
            video.as_secs_f64()
        ));
    }
    let mut check = Check::default();
    for (time, faces) in &found {
        let frame = frame_at(&frames, *time);
        let kept = frame.map_or(&[][..], |frame| &frame.kept);
        let others = without_kept(faces, kept).into_iter();
        let worst = others.map(|face| judge(&face, frame)).max();
        check.found.add(time.as_secs_f64(), worst);
    }
    check.frames = frames;
    Ok(check)
}

/// The frame at a time.
fn frame_at(frames: &[CoveredFrame], time: Duration) -> Option<&CoveredFrame> {
    let distance = |frame: &CoveredFrame| Duration::from_nanos(frame.time).abs_diff(time);
    let next = frames.partition_point(|it| Duration::from_nanos(it.time) < time);
    let near = frames[next.saturating_sub(1)..].iter().take(2);
    near.min_by_key(|it| distance(it))
        .filter(|it| distance(it) <= ROUNDING)
}

/// The faces without those that stay visible on purpose. Each of these accounts for one face.
fn without_kept(faces: &[Rect], kept: &[FaceArea]) -> Vec<Rect> {
    let mut faces = faces.to_vec();
    for area in kept {
        let area = bounds(area);
        let overlap = |face: &Rect| area.iou(face);
        let numbered = faces.iter().enumerate();
        let best = numbered.max_by(|a, b| overlap(a.1).total_cmp(&overlap(b.1)));
        if let Some((place, _)) = best.filter(|(_, face)| overlap(face) >= SAME_FACE) {
            faces.remove(place);
        }
    }
    faces
}

/// How a face is covered that was found in a frame.
fn judge(face: &Rect, frame: Option<&CoveredFrame>) -> Found {
    let face = &face.intersection(&WHOLE_FRAME);
    let is_on = |area: &FaceArea| bounds(area).intersection(face).area() >= MOSTLY * face.area();
    match frame {
        Some(frame) if frame.is_black => Found::OnCover,
        Some(frame) if face.has_extent() && frame.covers.iter().any(is_on) => Found::OnCover,
        _ => Found::Uncovered,
    }
}

fn bounds(area: &FaceArea) -> Rect {
    let [x, y, width, height] = area.bounds;
    Rect::new(x, y, width, height)
}

/// The times of all frames of a record.
fn times(record: &Path) -> Result<Vec<Duration>, String> {
    let replay = faces::open(record);
    let replay = replay.map_err(|error| format!("{}: {error}", record.display()))?;
    Ok(replay.frame_times())
}

/// The boxes of the faces in each frame of the record of a copy, by time, as fractions of the frame.
fn boxes(record: &Path) -> Result<Vec<(Duration, Vec<Rect>)>, String> {
    let at = |error: String| format!("{}: {error}", record.display());
    let mut replay = faces::open(record).map_err(at)?;
    let times = replay.frame_times();
    let mut boxes = Vec::new();
    for (place, time) in times.into_iter().enumerate() {
        let report = replay.report(place, faces::ANY_SIZE);
        let report = report.map_err(|error| at(error.to_string()))?;
        let search = search_of(report.as_ref());
        if search != SearchExtent::Whole {
            let seconds = time.as_secs_f64();
            return Err(format!(
                "its frame at {seconds:.3} s was not searched as a whole ({search}). Name another engine with --check-engine"
            ));
        }
        boxes.push((time, report.as_ref().map_or(Vec::new(), fractions)));
    }
    Ok(boxes)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_does_not_check_its_own_detector() {
        for (wanted, finder, want) in [
            ("opencv-yunet", "opencv-yunet", None),
            ("OpenCV_YuNet", "opencv-yunet", None),
            ("eos", "opencv-yunet", None),
            ("opencv-yunet", "opencv-yunet-pyfeat", None),
            ("MediaPipe", "opencv-yunet", Some("mediapipe")),
            ("opencv-haar", "scripted", Some("opencv-haar")),
        ] {
            let found = engine(Some(wanted), finder).ok();
            assert_eq!(found.as_deref(), want, "{wanted} {finder}");
        }
        assert_ne!(engine(None, "opencv-yunet-pyfeat").as_deref(), Ok(FINDER));
    }

    #[test]
    fn faces_are_judged_by_what_is_covered_in_their_frame() {
        let area = |id, x| FaceArea {
            id,
            bounds: [x, 0.4, 0.2, 0.2],
        };
        let frame = CoveredFrame {
            time: 40_000_000,
            covers: vec![area(1, 0.1)],
            kept: vec![area(2, 0.6)],
            ..CoveredFrame::default()
        };
        let black = CoveredFrame {
            is_black: true,
            ..CoveredFrame::default()
        };
        let face = |x| Rect::new(x, 0.45, 0.1, 0.1);
        for (face, frame, want) in [
            (face(0.15), Some(&frame), Found::OnCover),
            // Less than half of it is covered.
            (face(0.26), Some(&frame), Found::Uncovered),
            (face(0.65), Some(&black), Found::OnCover),
            (face(0.65), None, Found::Uncovered),
            (Rect::default(), Some(&frame), Found::Uncovered),
        ] {
            assert_eq!(judge(&face, frame), want, "{face:?}");
        }
        // The kept face, another one in its box, and the same one twice.
        let kept = Rect::new(0.62, 0.41, 0.18, 0.18);
        for (faces, count) in [
            (vec![kept], 0),
            (vec![face(0.65), kept], 1),
            (vec![kept, kept], 1),
            (vec![face(0.65)], 1),
        ] {
            assert_eq!(without_kept(&faces, &frame.kept).len(), count, "{faces:?}");
        }
        let frames = [frame];
        for (ms, is_there) in [(38, true), (42, true), (37, false), (43, false)] {
            let found = frame_at(&frames, Duration::from_millis(ms));
            assert_eq!(found.is_some(), is_there, "{ms}");
        }
        assert!(frame_at(&[], Duration::ZERO).is_none());
    }
}
