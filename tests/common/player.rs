// SPDX-License-Identifier: MPL-2.0
//! Clips and pictures with recordings, played through `facetrack`.

use std::path::{Path, PathBuf};

use facetrack::engine::{EngineConfig, EngineKind};
use facetrack::report::FrameReport;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

/// The folder of the recordings; `None`, said aloud, where it is not named or the engine's files
/// are not installed.
pub fn folder(engine: EngineKind) -> Option<PathBuf> {
    super::init();
    let Some(folder) = std::env::var_os("FACETRACK_REFERENCE_DIR") else {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
        return None;
    };
    super::engine::engine(engine, &EngineConfig::default())?;
    Some(folder.into())
}

/// The reports of `facetrack` with these properties for each frame of a clip or picture.
pub fn track(media: &Path, properties: &str) -> Vec<FrameReport> {
    Player::new(media, properties).reports(usize::MAX)
}

/// A pipeline that plays `media` through `elements`, and its end.
pub fn open(media: &Path, elements: &str) -> (gst::Pipeline, gst_app::AppSink) {
    let pipeline = gst::parse::launch(&format!(
        "filesrc name=file ! {elements} ! appsink name=out sync=false max-buffers=1"
    ))
    .expect("a pipeline")
    .downcast::<gst::Pipeline>()
    .expect("of several elements");
    pipeline.connect_deep_element_added(|_, _, element| {
        // Without it, avdec_h264 can abort the process; see `restrict` in the worker.
        if element.has_property("direct-rendering") {
            element.set_property("direct-rendering", false);
        }
    });
    let source = pipeline.by_name("file").expect("the source");
    source.set_property("location", media.to_str().expect("a readable name"));
    let out = pipeline.by_name("out").expect("the sink");
    let out = out.downcast().expect("an appsink");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    (pipeline, out)
}

/// A pipeline that tracks a clip or picture.
pub struct Player {
    pipeline: gst::Pipeline,
    out: gst_app::AppSink,
}

impl Player {
    /// Creates a player of `media`, with these properties of `facetrack`.
    pub fn new(media: &Path, properties: &str) -> Self {
        let (pipeline, out) = open(media, &format!("decodebin ! facetrack {properties}"));
        Self { pipeline, out }
    }

    /// The next frames, at most `count`.
    pub fn reports(&self, count: usize) -> Vec<FrameReport> {
        std::iter::from_fn(|| self.out.pull_sample().ok())
            .take(count)
            .map(|sample| sample.buffer().map(FaceTrackMeta::from_buffer))
            .map(|report| report.expect("a frame").expect("meta"))
            .collect()
    }

    /// Plays from the start again.
    pub fn rewind(&self) {
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
        self.pipeline
            .seek_simple(flags, gst::ClockTime::ZERO)
            .expect("the clip can be played again");
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.pipeline.set_state(gst::State::Null).expect("it stops");
    }
}
