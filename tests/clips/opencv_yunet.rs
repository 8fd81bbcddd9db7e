// SPDX-License-Identifier: MPL-2.0
//! Whole pipelines against recordings of OpenCV's `FaceDetectorYN`, where `FACETRACK_REFERENCE_DIR`
//! names a folder with them: `media/` with clips and pictures and `out/` with what was found in
//! them.
//!
//! `yunet_gstdecode` was recorded of frames that GStreamer decoded, the others of what OpenCV
//! decoded.

use crate::common::recording;
use crate::common::yunet;

use std::path::Path;

use crate::common::player::{self, folder};
use facetrack::engine::EngineKind;
use facetrack::observation::Observation;
use facetrack::report::FrameReport;
use recording::{Recording, mean};
use yunet::Found;

/// Bars of the parity.
const LEAST_RECALL_AND_PRECISION: f32 = 0.99;
const LEAST_IOU: f32 = 0.5;
const LEAST_MEAN_IOU: f32 = 0.98;
const KEY_POINTS_MEAN: f32 = 1.0;
const SCORES_MEAN: f32 = 0.01;

const KIND: EngineKind = EngineKind::OpenCvYunet;

/// The element's reports for each frame of a clip or a picture.
fn track(media: &Path, least_score: f32) -> Vec<FrameReport> {
    let properties = format!("detect-max-width=0 detection-confidence={least_score}");
    player::track(media, &format!("engine={} {properties}", KIND.name()))
}

/// Holds what was found to the bars. Frames without a face on either side count as found.
fn compare<'a>(name: &str, frames: impl Iterator<Item = (&'a [Found], FrameReport)>) {
    let (mut ious, mut key_points, mut scores) = (vec![], vec![], vec![]);
    let (mut theirs, mut ours) = (0, 0);
    for (recorded, report) in frames {
        theirs += recorded.len();
        ours += report.faces.len();
        for found in recorded {
            let iou = |face: &Observation| face.bbox.iou(&found.rect());
            let faces = report.faces.iter().map(|seen| &seen.face);
            let nearest = faces.max_by(|a, b| iou(a).total_cmp(&iou(b)));
            let Some(face) = nearest.filter(|face| iou(face) >= LEAST_IOU) else {
                continue;
            };
            ious.push(iou(face));
            key_points.extend(found.key_point_errors(face));
            scores.push(found.score_error(face));
        }
    }
    let share = |count: usize| match count {
        0 => 1.0,
        _ => ious.len() as f32 / count as f32,
    };
    let (recall, precision) = (share(theirs), share(ours));
    eprintln!(
        "{name}: {} faces, recall {recall:.4}, precision {precision:.4}, IoU {:.5}, key points {:.4} px, scores {:.5}",
        ious.len(),
        mean(&ious),
        mean(&key_points),
        mean(&scores)
    );
    assert!(
        recall.min(precision) >= LEAST_RECALL_AND_PRECISION,
        "{name}"
    );
    assert!(ious.is_empty() || mean(&ious) >= LEAST_MEAN_IOU, "{name}");
    assert!(mean(&key_points) <= KEY_POINTS_MEAN, "{name}");
    assert!(mean(&scores) <= SCORES_MEAN, "{name}");
}

#[test]
fn faces_in_clips_are_those_that_opencv_finds() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    for (original, clip) in [
        ("yunet_gstdecode", "pyfeat_single_face"),
        ("yunet_gstdecode", "pyfeat_WolfgangLanger_Pexels"),
        ("yunet", "pyfeat_single_face"),
        ("yunet", "synth_gap"),
        ("yunet", "synth_two_faces"),
    ] {
        let recording: Recording<Found> = recording::read(&folder, original, clip);
        let reports = track(&folder.join(format!("media/{clip}.mp4")), 0.9);
        assert_eq!(reports.len(), recording.frames.len(), "{clip}");
        let recorded = recording.frames.iter().map(|frame| frame.faces.as_slice());
        compare(&format!("{original}/{clip}"), recorded.zip(reports));
    }
}

#[test]
fn faces_in_pictures_are_those_that_opencv_finds() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    for (original, least_score) in [("yunet", 0.9), ("yunet_06", 0.6)] {
        let recording: Recording<Found> = recording::read(&folder, original, "IMAGES");
        let frames = recording.frames.iter().map(|picture| {
            let mut reports = track(&folder.join("media").join(&picture.image), least_score);
            assert_eq!(reports.len(), 1, "{}", picture.image);
            (picture.faces.as_slice(), reports.remove(0))
        });
        compare(&format!("{original}/IMAGES"), frames);
    }
}

#[test]
fn no_face_is_seen_where_there_is_none() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    let reports = track(&folder.join("media/pyfeat_no_face.mp4"), 0.7);
    assert!(!reports.is_empty());
    assert!(reports.iter().all(|report| report.faces.is_empty()));
}
