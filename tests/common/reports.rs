// SPDX-License-Identifier: MPL-2.0
//! Reports, and buffers with reports on them.

use std::sync::Arc;
use std::time::Duration;

use facetrack::model::ModelFile;
use facetrack::report::{FrameReport, FrameStatus, ReportSource, SearchExtent, TrackedFace};
use gstfacetrack::meta::FaceTrackMeta;

/// A report on a frame of 1280×720.
pub fn report(faces: Vec<TrackedFace>) -> FrameReport {
    report_of((1280, 720), faces)
}

/// A report on a frame of another size.
pub fn report_of((width, height): (u32, u32), faces: Vec<TrackedFace>) -> FrameReport {
    FrameReport {
        width,
        height,
        status: match faces.is_empty() {
            true => FrameStatus::NoFace,
            false => FrameStatus::Tracked,
        },
        cut: false,
        search: SearchExtent::Whole,
        repeated: false,
        faces,
        source: Arc::new(ReportSource {
            engine: "handmade".into(),
            device: "cuda:1".into(),
            execution_provider: "CUDAExecutionProvider".into(),
            device_reason: "made by hand".into(),
            load_time: Duration::from_micros(12_500),
            generator: "a test".into(),
            models: vec![ModelFile {
                name: "face.task".into(),
                sha256: "ab".repeat(32),
            }],
            ..ReportSource::default()
        }),
    }
}

/// `buffer` with `report` on it.
pub fn with_report(mut buffer: gst::Buffer, report: &FrameReport) -> gst::Buffer {
    FaceTrackMeta::attach(buffer.make_mut(), report).expect("the name is free");
    buffer
}

/// `buffer` with something on it that has the metadata's name and nothing else of it.
pub fn with_malformed_meta(mut buffer: gst::Buffer) -> gst::Buffer {
    FaceTrackMeta::register();
    gst::meta::CustomMeta::add(buffer.make_mut(), FaceTrackMeta::NAME).expect("registered");
    buffer
}
