// SPDX-License-Identifier: MPL-2.0
//! Reports, buffers and pipelines for tests.
#![allow(dead_code, reason = "each test program uses its part")]

use std::sync::{Arc, Once};

use gst::prelude::*;
use gstfacetrack::face::blendshape::{Blendshapes, MEDIAPIPE_CHANNELS};
use gstfacetrack::face::geometry::{Point, Rect};
use gstfacetrack::face::model::ModelFile;
use gstfacetrack::face::observation::{HeadPose, Landmark, LandmarkScheme, Landmarks, Observation};
use gstfacetrack::face::report::{FrameReport, FrameStatus, ReportSource, TrackedFace};
use gstfacetrack::meta::FaceTrackMeta;

/// GStreamer with the plugin of this crate.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        gst::init().expect("GStreamer");
        gstfacetrack::plugin_register_static().expect("the plugin");
    });
}

/// A face of which only the box is known.
pub fn face(id: u32, x: f32) -> TrackedFace {
    TrackedFace {
        id,
        face: Observation::from_bbox(Rect::new(x, 120.5, 80.25, 96.75)),
    }
}

/// A face with everything that MediaPipe's engine reports.
pub fn full_face(id: u32, x: f32) -> TrackedFace {
    let mut tracked = face(id, x);
    let face = &mut tracked.face;
    face.confidence = Some(0.875);
    face.landmarks = Some(Landmarks {
        scheme: LandmarkScheme::MediaPipe478,
        points: (0..478)
            .map(|i| Landmark {
                x: x + i as f32 / 6.0,
                y: 120.5 + i as f32 / 5.0,
                z: i as f32 / 40.0 - 6.0,
            })
            .collect(),
    });
    face.key_points = vec![Point::new(x + 10.5, 150.25); 6];
    face.blendshapes = Some(Blendshapes::new(
        MEDIAPIPE_CHANNELS
            .iter()
            .map(|name| name.to_string())
            .collect(),
        (0..52).map(|i| i as f32 / 64.0).collect(),
    ));
    face.pose = Some(HeadPose {
        matrix: [
            [1.0, 0.0, 0.0, 0.5],
            [0.0, 1.0, 0.0, -1.25],
            [0.0, 0.0, 1.0, -40.0],
            [0.0, 0.0, 0.0, 1.0],
        ],
    });
    tracked
}

/// A report on a frame of 1280×720.
pub fn report(faces: Vec<TrackedFace>) -> FrameReport {
    FrameReport {
        width: 1280,
        height: 720,
        status: match faces.is_empty() {
            true => FrameStatus::NoFace,
            false => FrameStatus::Tracked,
        },
        faces,
        source: Arc::new(ReportSource {
            engine: "handmade".into(),
            device: "cpu".into(),
            generator: "a test".into(),
            models: vec![ModelFile {
                name: "face.task".into(),
                sha256: "ab".repeat(32),
            }],
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

/// Plays a pipeline to its end.
pub fn play_to_end(pipeline: &gst::Element) {
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let message = pipeline.bus().expect("a bus").timed_pop_filtered(
        gst::ClockTime::from_seconds(60),
        &[gst::MessageType::Eos, gst::MessageType::Error],
    );
    let message = message.expect("it ends");
    assert_eq!(message.type_(), gst::MessageType::Eos, "{message:?}");
    pipeline.set_state(gst::State::Null).expect("it stops");
}

/// Memory of this process that is in RAM.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a line");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .expect("a number");
    kib * 1024
}
