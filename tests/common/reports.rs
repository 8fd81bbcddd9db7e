// SPDX-License-Identifier: MPL-2.0
//! Reports, and buffers with reports on them.

use std::sync::Arc;

use gstfacetrack::face::blendshape::{Blendshapes, MEDIAPIPE_CHANNELS};
use gstfacetrack::face::geometry::{Point, Rect};
use gstfacetrack::face::model::ModelFile;
use gstfacetrack::face::observation::{
    Features, Gaze, HeadPose, Landmark, LandmarkScheme, Landmarks, ModelFit, Observation, Pupil,
};
use gstfacetrack::face::report::{FrameReport, FrameStatus, ReportSource, TrackedFace};
use gstfacetrack::meta::FaceTrackMeta;

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
    face.landmarks = Some(Landmarks::new(
        LandmarkScheme::MediaPipe478,
        (0..478)
            .map(|i| Landmark {
                x: x + i as f32 / 6.0,
                y: 120.5 + i as f32 / 5.0,
                z: i as f32 / 40.0 - 6.0,
            })
            .collect(),
    ));
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

/// A face with everything that OpenSeeFace's engine reports, most numbers of it another one.
pub fn fitted_face(id: u32, x: f32) -> TrackedFace {
    let mut tracked = face(id, x);
    let face = &mut tracked.face;
    face.confidence = Some(0.875);
    face.landmarks = Some(Landmarks {
        confidences: (0..66).map(|i| 1.0 - i as f32 / 128.0).collect(),
        ..Landmarks::new(
            LandmarkScheme::OpenSeeFace66,
            (0..66)
                .map(|i| Landmark {
                    x: x + i as f32 * 1.25,
                    y: 120.5 + i as f32 * 1.5,
                    z: 0.0,
                })
                .collect(),
        )
    });
    face.gaze = Some(Gaze {
        right: Pupil {
            position: Point::new(x + 20.25, 150.5),
            confidence: 0.75,
        },
        left: Pupil {
            position: Point::new(x + 60.75, 151.5),
            confidence: 0.625,
        },
    });
    face.fit = Some(ModelFit {
        success: true,
        error: 1.25,
        quaternion: [0.5, -0.25, 0.75, 0.125],
        euler: [-175.5, 3.25, 91.5],
        rotation: [1.5, -2.5, 0.25],
        translation: [0.5, -0.75, -12.5],
        points: (0..70)
            .map(|i| {
                [
                    i as f32 / 64.0 - 0.5,
                    0.25 + i as f32 / 32.0,
                    i as f32 / 128.0,
                ]
            })
            .collect(),
        projected: Vec::new(),
    });
    face.features = Some(Features(std::array::from_fn(|i| 0.5 - i as f32 / 8.0)));
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
