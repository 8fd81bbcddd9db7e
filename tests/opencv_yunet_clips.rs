// SPDX-License-Identifier: MPL-2.0
//! Whole pipelines against recordings of OpenCV's `FaceDetectorYN`, where `FACETRACK_REFERENCE_DIR` names a folder with
//! them: `media/` with clips and pictures and `out/` with what was found in them.
//!
//! `yunet_gstdecode` was recorded of frames that GStreamer decoded, the others of what OpenCV decoded.

#[path = "common/recording.rs"]
mod recording;
#[path = "common/yunet.rs"]
mod yunet;

use std::path::{Path, PathBuf};

use gst::prelude::*;
use gstfacetrack::face::report::FrameReport;
use gstfacetrack::meta::FaceTrackMeta;
use recording::{Recording, mean};
use yunet::Found;

/// Bars of the parity.
const LEAST_RECALL_AND_PRECISION: f32 = 0.99;
const LEAST_IOU: f32 = 0.5;
const LEAST_MEAN_IOU: f32 = 0.98;
const KEY_POINTS_MEAN: f32 = 1.0;
const SCORES_MEAN: f32 = 0.01;

/// What the element reports of each frame of a clip or a picture.
fn track(media: &Path, least_score: f32) -> Vec<FrameReport> {
    let pipeline = gst::parse::launch(&format!(
        "filesrc name=file ! decodebin ! facetrack engine=opencv-yunet detect-max-width=0
         detection-confidence={least_score} ! appsink name=out sync=false"
    ))
    .expect("a pipeline")
    .downcast::<gst::Pipeline>()
    .expect("of several elements");
    let file = pipeline.by_name("file").expect("the source");
    file.set_property("location", media.to_str().expect("a readable name"));
    let out = pipeline.by_name("out").expect("the sink");
    let out = out.downcast::<gst_app::AppSink>().expect("an appsink");
    pipeline
        .set_state(gst::State::Playing)
        .expect("the pipeline plays");
    let reports = std::iter::from_fn(|| out.pull_sample().ok())
        .map(|sample| FaceTrackMeta::from_buffer(sample.buffer().expect("a frame")).expect("meta"))
        .collect();
    pipeline.set_state(gst::State::Null).expect("it stops");
    reports
}

/// The folder of the recordings; `None`, said aloud, where something is missing.
fn folder() -> Option<PathBuf> {
    gst::init().expect("GStreamer");
    gstfacetrack::plugin_register_static().expect("the plugin");
    let Some(folder) = std::env::var_os("FACETRACK_REFERENCE_DIR") else {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
        return None;
    };
    let element = gst::ElementFactory::make("facetrack").build();
    let element = element.expect("the element");
    element.set_property("engine", "opencv-yunet");
    if element.set_state(gst::State::Ready).is_err() {
        eprintln!("SKIPPED: the engine opencv-yunet can't be loaded");
        return None;
    }
    element.set_state(gst::State::Null).expect("it stops");
    Some(folder.into())
}

/// Holds what was found to the bars. Frames without a face on either side count as found.
fn compare<'a>(name: &str, frames: impl Iterator<Item = (&'a [Found], FrameReport)>) {
    let (mut ious, mut key_points, mut scores) = (vec![], vec![], vec![]);
    let (mut theirs, mut ours) = (0, 0);
    for (recorded, report) in frames {
        theirs += recorded.len();
        ours += report.faces.len();
        for found in recorded {
            let iou =
                |face: &gstfacetrack::face::observation::Observation| face.bbox.iou(&found.rect());
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
    let Some(folder) = folder() else {
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
    let Some(folder) = folder() else {
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
    let Some(folder) = folder() else {
        return;
    };
    let reports = track(&folder.join("media/pyfeat_no_face.mp4"), 0.7);
    assert!(!reports.is_empty());
    assert!(reports.iter().all(|report| report.faces.is_empty()));
}
