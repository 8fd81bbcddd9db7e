// SPDX-License-Identifier: MPL-2.0
//! Faces as engines report them.
#![allow(dead_code, reason = "each test program uses its part")]

use std::sync::Arc;

use facetrack::blendshape::{BlendshapeSource, Blendshapes, MEDIAPIPE_CHANNELS};
use facetrack::geometry::{Point, Rect};
use facetrack::observation::{
    Attributes, Features, Gaze, Gender, HeadPose, Landmark, LandmarkScheme, Landmarks, ModelFit,
    MorphableFit, Observation, Pupil,
};
use facetrack::report::TrackedFace;

/// A face with only a box.
pub fn face(id: u32, x: f32) -> TrackedFace {
    TrackedFace {
        id,
        face: Observation::from_bbox(Rect::new(x, 120.5, 80.25, 96.75)),
    }
}

/// A face with all values that engines report. With key points, its centre is the centre of the
/// box.
pub fn full_face(id: u32, x: f32) -> TrackedFace {
    let raw = Blendshapes::new(
        MEDIAPIPE_CHANNELS
            .iter()
            .map(|name| name.to_string())
            .collect(),
        (0..52).map(|i| 0.5 + i as f32 / 128.0).collect(),
    );
    let TrackedFace { id, face } = face(id, x);
    // Every field is named, so that a new one cannot be forgotten.
    let face = Observation {
        bbox: face.bbox,
        origin: face.origin,
        confidence: Some(0.987_65),
        landmarks: Some(Landmarks {
            scheme: LandmarkScheme::MediaPipe478,
            points: (0..478)
                .map(|i| Landmark {
                    x: x + i as f32 / 6.0,
                    y: 120.5 + i as f32 / 5.0,
                    z: i as f32 / 40.0 - 6.0,
                })
                .collect(),
            confidences: (0..478).map(|i| i as f32 / 478.0).collect(),
        }),
        key_points: vec![Point::new(x + 10.5, 150.25); 6],
        blendshapes: Some(raw.corrected((0..52).map(|i| i as f32 / 64.0).collect())),
        pose: Some(HeadPose {
            matrix: [
                [1.0, 0.0, 0.0, 0.5],
                [0.0, 1.0, 0.0, -1.25],
                [0.0, 0.0, 1.0, -40.0],
                [0.0, 0.0, 0.0, 1.0],
            ],
        }),
        gaze: Some(Gaze {
            right: pupil(x + 22.375, 0.75),
            left: pupil(x + 58.125, 0.5),
        }),
        features: Some(Features(std::array::from_fn(|i| i as f32 / 16.0 - 0.25))),
        fit: Some(ModelFit {
            success: true,
            error: 2.5,
            quaternion: [0.5, -0.5, 0.5, 0.5],
            euler: [90.0, 0.25, -90.0],
            rotation: [0.125, -1.5, 2.25],
            translation: [-0.5, 0.25, 8.0],
            points: vec![[0.5, -0.25, 0.125]; 482],
            projected: vec![Point::new(x + 40.25, 160.5); 3],
        }),
        morphable: Some(Ok(morphable(x))),
        secondary_landmarks: Some(contour(x)),
        attributes: Some(Attributes {
            age: 30.25,
            gender: Gender::Female,
        }),
        embedding: Some((0..512).map(|i| (i as f32 - 255.5) / 3344.5).collect()),
    };
    TrackedFace { id, face }
}

/// A face as InsightFace's engine reports it, with a pack that has no points in space, and with its
/// embedding.
pub fn recognised_face(id: u32, x: f32) -> TrackedFace {
    let mut tracked = face(id, x);
    let full = full_face(id, x).face;
    tracked.face = Observation {
        confidence: full.confidence,
        landmarks: full.secondary_landmarks,
        key_points: full.key_points[..5].to_vec(),
        attributes: full.attributes,
        embedding: full.embedding,
        ..tracked.face
    };
    tracked
}

fn contour(x: f32) -> Landmarks {
    let points = (0..106).map(|i| Landmark {
        x: x + i as f32 * 0.75,
        y: 200.25 - i as f32 * 0.5,
        z: 0.0,
    });
    Landmarks::new(LandmarkScheme::InsightFace106, points.collect())
}

/// A face as OpenSeeFace's engine reports it.
pub fn fitted_face(id: u32, x: f32) -> TrackedFace {
    let mut tracked = face(id, x);
    tracked.face = Observation {
        landmarks: Some(Landmarks {
            scheme: LandmarkScheme::OpenSeeFace66,
            points: (0..66)
                .map(|i| Landmark {
                    x: x + i as f32 * 1.25,
                    y: 120.5 + i as f32 * 1.5,
                    z: 0.0,
                })
                .collect(),
            confidences: (0..66).map(|i| 1.0 - i as f32 / 128.0).collect(),
        }),
        fit: Some(ModelFit {
            success: true,
            error: 1.25,
            quaternion: [0.5, -0.25, 0.75, 0.125],
            euler: [-175.5, 3.25, 91.5],
            rotation: [1.5, -2.5, 0.25],
            translation: [0.5, -0.75, -12.5],
            points: (0..70)
                .map(|i| [i as f32, 0.5 + i as f32, -0.25 * i as f32])
                .collect(),
            projected: Vec::new(),
        }),
        key_points: Vec::new(),
        morphable: None,
        secondary_landmarks: None,
        attributes: None,
        embedding: None,
        ..full_face(id, x).face
    };
    tracked
}

/// A face as eos' engine reports it, with its mesh.
pub fn morphable_face(id: u32, x: f32) -> TrackedFace {
    let mut tracked = face(id, x);
    let points = (0..68).map(|i| Landmark {
        x: x + i as f32 * 1.25,
        y: 120.5 + i as f32 * 1.5,
        z: 0.25 * i as f32 - 8.0,
    });
    let jaw_open = Blendshapes::new(Arc::new(["jawOpen".to_owned()]), vec![0.25]);
    let full = full_face(id, x).face;
    tracked.face = Observation {
        confidence: full.confidence,
        landmarks: Some(Landmarks::new(LandmarkScheme::Ibug68, points.collect())),
        key_points: full.key_points[..5].to_vec(),
        blendshapes: Some(jaw_open.from_source(BlendshapeSource::Derived)),
        pose: full.pose,
        morphable: full.morphable,
        ..tracked.face
    };
    tracked
}

/// A fit of the Surrey Face Model.
pub fn morphable(x: f32) -> MorphableFit {
    let names = [
        "anger",
        "disgust",
        "fear",
        "happiness",
        "sadness",
        "surprise",
    ];
    let vertices = (0..3448).map(|i| Landmark {
        x: x + i as f32 / 64.0,
        y: 120.5 + i as f32 / 32.0,
        z: 20.0 - i as f32 / 64.0,
    });
    MorphableFit {
        shape: (0..63).map(|i| 1.0 / (i as f32 - 31.5)).collect(),
        expression: (0..6).map(|i| i as f32 / 7.0).collect(),
        expression_names: names.map(str::to_owned).into(),
        rotation: [0.5, -0.5, 0.5, 0.5],
        origin: Point::new(x + 40.25, 160.5),
        scale: 0.1 + 0.2,
        residual: 1.250_4,
        contour: (0..15)
            .map(|i| Point::new(x + i as f32 * 5.0, 180.25))
            .collect(),
        mesh: Some(vertices.collect()),
    }
}

fn pupil(x: f32, confidence: f32) -> Pupil {
    Pupil {
        position: Point::new(x, 148.5),
        confidence,
    }
}
