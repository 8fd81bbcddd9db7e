// SPDX-License-Identifier: MPL-2.0
//! Whole pipelines against recordings of OpenCV's cascade classifier, where `FACETRACK_REFERENCE_DIR` names a folder with
//! them: `media/` with clips and pictures, and `out/haar` with what was found in them.
//!
//! The recordings were made of frames that OpenCV decoded to BGR; here the decoder's luma is searched. Levels differ by
//! one here and there, and with them windows that lie at the edge of a stage's threshold.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use gst::prelude::*;
use gstfacetrack::face::geometry::Rect;
use gstfacetrack::meta::FaceTrackMeta;
use serde::Deserialize;

/// Bars of the parity.
const LEAST_EQUAL_COUNTS: f64 = 0.98;
const LEAST_MEAN_IOU: f64 = 0.95;

/// Overlap from which on two boxes are of one face.
const LEAST_IOU: f32 = 0.5;

#[derive(Deserialize)]
struct Recording {
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    /// File name of a picture; empty for a frame.
    #[serde(default)]
    image: String,
    faces: Vec<Face>,
}

#[derive(Deserialize)]
struct Face {
    bbox: [f32; 4],
}

fn recording(folder: &Path, name: &str) -> Recording {
    let path = folder.join(format!("out/haar/{name}.json.gz"));
    let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_reader(BufReader::new(GzDecoder::new(file))).expect("a recording")
}

/// The folder of the recordings; `None`, said aloud, where something is missing.
fn folder() -> Option<PathBuf> {
    gst::init().expect("GStreamer");
    gstfacetrack::plugin_register_static().expect("the plugin");
    let Some(folder) = std::env::var_os("FACETRACK_REFERENCE_DIR") else {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
        return None;
    };
    let element = gst::ElementFactory::make("facetrack")
        .property("engine", "opencv-haar")
        .build()
        .expect("the element");
    if element.set_state(gst::State::Ready).is_err() {
        eprintln!("SKIPPED: the engine opencv-haar can't be loaded");
        return None;
    }
    element.set_state(gst::State::Null).expect("it stops");
    Some(folder.into())
}

/// The boxes of each frame of a clip or picture.
fn track(file: &Path) -> Vec<Vec<Rect>> {
    let pipeline = gst::parse::launch(
        "filesrc name=file ! decodebin ! facetrack engine=opencv-haar ! appsink name=out sync=false",
    )
    .expect("a pipeline")
    .downcast::<gst::Pipeline>()
    .expect("of several elements");
    let source = pipeline.by_name("file").expect("the source");
    source.set_property("location", file.to_str().expect("a readable name"));
    let out = pipeline.by_name("out").expect("the sink");
    let out = out.downcast::<gst_app::AppSink>().expect("an appsink");
    pipeline
        .set_state(gst::State::Playing)
        .expect("the pipeline plays");
    let frames = std::iter::from_fn(|| out.pull_sample().ok())
        .map(|sample| {
            let report = sample.buffer().map(FaceTrackMeta::from_buffer);
            let report = report.expect("a frame").expect("meta");
            report.faces.iter().map(|face| face.face.bbox).collect()
        })
        .collect();
    pipeline.set_state(gst::State::Null).expect("it stops");
    frames
}

/// How much of the recordings is found again.
#[derive(Default)]
struct Agreement {
    frames: usize,
    equal_counts: usize,
    ious: Vec<f64>,
}

impl Agreement {
    fn add(&mut self, recorded: &Frame, boxes: &[Rect]) {
        self.frames += 1;
        self.equal_counts += usize::from(recorded.faces.len() == boxes.len());
        for face in &recorded.faces {
            let [x, y, width, height] = face.bbox;
            let iou = |other: &Rect| Rect::new(x, y, width, height).iou(other);
            let best = boxes.iter().map(iou).fold(0.0, f32::max);
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
    let Some(folder) = folder() else {
        return;
    };
    let mut all = Agreement::default();
    for clip in [
        "pyfeat_single_face",
        "pyfeat_WolfgangLanger_Pexels",
        "pyfeat_no_face",
        "synth_two_faces",
    ] {
        let recording = recording(&folder, clip);
        let frames = track(&folder.join(format!("media/{clip}.mp4")));
        // OpenCV's decoder leaves out the first frame of one clip.
        let more = frames.len().checked_sub(recording.frames.len());
        let more = more.unwrap_or_else(|| panic!("{clip}: {} frames", frames.len()));
        assert!(more <= 1, "{clip}: {} frames", frames.len());
        let mut agreement = Agreement::default();
        for (recorded, boxes) in recording.frames.iter().zip(&frames[more..]) {
            agreement.add(recorded, boxes);
            all.add(recorded, boxes);
        }
        agreement.figures(clip);
    }
    let mut pictures = Agreement::default();
    for recorded in &recording(&folder, "IMAGES").frames {
        let frames = track(&folder.join("media").join(&recorded.image));
        pictures.add(recorded, &frames[0]);
        all.add(recorded, &frames[0]);
    }
    pictures.figures("pictures");
    let [counts, iou] = all.figures("all");
    assert!(counts >= LEAST_EQUAL_COUNTS, "{counts}");
    assert!(iou >= LEAST_MEAN_IOU, "{iou}");
}
