// SPDX-License-Identifier: MPL-2.0
//! Whole pipelines against recordings of OpenCV's cascade classifier, where
//! `FACETRACK_REFERENCE_DIR` names a folder with them: `media/` with clips and pictures, and
//! `out/haar` with what was found in them.
//!
//! The recordings were made of frames that OpenCV decoded to BGR; here the decoder's luma is
//! searched. Levels differ by one here and there, and with them windows that lie at the edge of a
//! stage's threshold.

use crate::common::recording;

use crate::common::player::{folder, track};
use facetrack::engine::EngineKind;
use facetrack::geometry::Rect;
use facetrack::report::FrameReport;
use recording::{Frame, Recording};
use serde::Deserialize;

/// Bars of the parity.
const LEAST_EQUAL_COUNTS: f64 = 0.98;
const LEAST_MEAN_IOU: f64 = 0.95;

/// Minimum overlap of two boxes of one face.
const LEAST_IOU: f32 = 0.5;

/// The element's properties. The engine looks at each frame by itself, so some frames stand for all.
const ENGINE: &str = "engine=opencv-haar inference-interval=3";
const INTERVAL: usize = 3;

/// OpenCV's results.
#[derive(Deserialize)]
struct Found {
    bbox: [f32; 4],
}

/// Agreement with the recordings.
#[derive(Default)]
struct Agreement {
    frames: usize,
    equal_counts: usize,
    ious: Vec<f64>,
}

impl Agreement {
    fn add(&mut self, recorded: &Frame<Found>, report: &FrameReport) {
        self.frames += 1;
        self.equal_counts += usize::from(recorded.faces.len() == report.faces.len());
        for found in &recorded.faces {
            let [x, y, width, height] = found.bbox;
            let found = Rect::new(x, y, width, height);
            let ious = report.faces.iter().map(|it| found.iou(&it.face.bbox));
            let best = ious.fold(0.0, f32::max);
            self.ious
                .extend((best >= LEAST_IOU).then_some(f64::from(best)));
        }
    }

    /// Share of frames with as many faces, and mean overlap of those that are matched; said aloud.
    fn figures(&self, name: &str) -> [f64; 2] {
        let counts = self.equal_counts as f64 / self.frames as f64;
        let iou = self.ious.iter().sum::<f64>() / self.ious.len().max(1) as f64;
        let matched = self.ious.len();
        eprintln!(
            "{name}: as many faces in {counts:.4} of {} frames; {matched} matched, mean IoU {iou:.4}",
            self.frames
        );
        [counts, iou]
    }
}

#[test]
fn faces_are_found_where_opencv_finds_them() {
    let Some(folder) = folder(EngineKind::OpenCvHaar) else {
        return;
    };
    let mut all = Agreement::default();
    for clip in [
        "pyfeat_single_face",
        "pyfeat_WolfgangLanger_Pexels",
        "pyfeat_no_face",
        "synth_two_faces",
    ] {
        let recording: Recording<Found> = recording::read(&folder, "haar", clip);
        let frames = track(&folder.join(format!("media/{clip}.mp4")), ENGINE);
        // OpenCV's decoder leaves out the first frame of one clip.
        let more = frames.len().checked_sub(recording.frames.len());
        let more = more.unwrap_or_else(|| panic!("{clip}: {} frames", frames.len()));
        assert!(more <= 1, "{clip}: {} frames", frames.len());
        let mut agreement = Agreement::default();
        for (index, report) in frames.iter().enumerate().step_by(INTERVAL) {
            if let Some(recorded) = index
                .checked_sub(more)
                .and_then(|i| recording.frames.get(i))
            {
                agreement.add(recorded, report);
                all.add(recorded, report);
            }
        }
        agreement.figures(clip);
    }
    let mut pictures = Agreement::default();
    let recording: Recording<Found> = recording::read(&folder, "haar", "IMAGES");
    for recorded in &recording.frames {
        let frames = track(&folder.join("media").join(&recorded.image), ENGINE);
        pictures.add(recorded, &frames[0]);
        all.add(recorded, &frames[0]);
    }
    pictures.figures("pictures");
    let [counts, iou] = all.figures("all");
    assert!(counts >= LEAST_EQUAL_COUNTS, "{counts}");
    assert!(iou >= LEAST_MEAN_IOU, "{iou}");
}
