// SPDX-License-Identifier: MPL-2.0
//! Faces as engines report them.

use gstfacetrack::face::blendshape::{Blendshapes, MEDIAPIPE_CHANNELS};
use gstfacetrack::face::geometry::{Point, Rect};
use gstfacetrack::face::observation::{
    Features, Gaze, HeadPose, Landmark, LandmarkScheme, Landmarks, ModelFit, Observation, Pupil,
};
use gstfacetrack::face::report::TrackedFace;

/// A face of which only the box is known.
pub fn face(id: u32, x: f32) -> TrackedFace {
    TrackedFace {
        id,
        face: Observation::from_bbox(Rect::new(x, 120.5, 80.25, 96.75)),
    }
}

/// A face with all that engines report; with key points, its centre is that of the box.
pub fn full_face(id: u32, x: f32) -> TrackedFace {
    let mut tracked = face(id, x);
    let face = &mut tracked.face;
    face.confidence = Some(0.987_65);
    face.landmarks = Some(Landmarks {
        scheme: LandmarkScheme::MediaPipe478,
        points: (0..478)
            .map(|i| Landmark {
                x: x + i as f32 / 6.0,
                y: 120.5 + i as f32 / 5.0,
                z: i as f32 / 40.0 - 6.0,
            })
            .collect(),
        confidences: (0..478).map(|i| i as f32 / 478.0).collect(),
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
    face.gaze = Some(Gaze {
        right: pupil(x + 22.375, 0.75),
        left: pupil(x + 58.125, 0.5),
    });
    face.features = Some(Features(std::array::from_fn(|i| i as f32 / 16.0 - 0.25)));
    face.fit = Some(ModelFit {
        success: true,
        error: 2.5,
        quaternion: [0.5, -0.5, 0.5, 0.5],
        euler: [90.0, 0.25, -90.0],
        rotation: [0.125, -1.5, 2.25],
        translation: [-0.5, 0.25, 8.0],
        points: vec![[0.5, -0.25, 0.125]; 482],
        projected: vec![Point::new(x + 40.25, 160.5); 3],
    });
    tracked
}

fn pupil(x: f32, confidence: f32) -> Pupil {
    Pupil {
        position: Point::new(x, 148.5),
        confidence,
    }
}
