// SPDX-License-Identifier: MPL-2.0
//! Faces as OpenSeeFace's `tracker.py` measured them, and how far an observation is from them.
#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::BTreeMap;

use facetrack::geometry::{Point, Rect};
use facetrack::observation::{Features, LandmarkScheme, Observation};
use serde::Deserialize;

use super::recording::angle;

/// Landmarks of a face; the pupils follow them in recordings.
pub const LANDMARKS: usize = 66;

/// The corners of the right eye and of the left eye.
const EYES: [[usize; 2]; 2] = [[36, 39], [42, 45]];

/// A face, in px.
#[derive(Deserialize)]
pub struct Found {
    /// The mean score of the landmarks.
    pub score: f32,
    /// Left, top, width, height.
    pub bbox: [f32; 4],
    /// The landmarks, then the pupils, right before left.
    pub landmarks: Vec<[f32; 2]>,
    /// Scores of the same.
    pub conf: Vec<f32>,
    /// Rotation of the head.
    pub quaternion: [f32; 4],
    /// By name; empty until they were measured in a frame.
    pub features: BTreeMap<String, f32>,
}

impl Found {
    /// The box.
    pub fn rect(&self) -> Rect {
        let [x, y, width, height] = self.bbox;
        Rect::new(x, y, width, height)
    }

    /// Distance of each landmark, divided by the distance of the outer eye corners.
    pub fn landmark_errors(&self, face: &Observation) -> Vec<f32> {
        let landmarks = face.landmarks.as_ref().expect("landmarks");
        assert_eq!(landmarks.scheme, LandmarkScheme::OpenSeeFace66);
        assert_eq!(landmarks.points.len(), LANDMARKS);
        let eyes = self.distance(36, 45);
        std::iter::zip(&landmarks.points, &self.landmarks)
            .map(|(p, q)| (p.x - q[0]).hypot(p.y - q[1]) / eyes)
            .collect()
    }

    /// Difference of each landmark's score.
    pub fn landmark_score_errors(&self, face: &Observation) -> Vec<f32> {
        let landmarks = face.landmarks.as_ref().expect("landmarks");
        assert_eq!(landmarks.confidences.len(), LANDMARKS);
        std::iter::zip(&landmarks.confidences, &self.conf)
            .map(|(ours, theirs)| (ours - theirs).abs())
            .collect()
    }

    /// Difference of the scores.
    pub fn score_error(&self, face: &Observation) -> f32 {
        (face.confidence.expect("a score") - self.score).abs()
    }

    /// Distance of each pupil, divided by the width of its eye.
    pub fn gaze_errors(&self, face: &Observation) -> [f32; 2] {
        let gaze = face.gaze.expect("a gaze");
        let pupils = [gaze.right.position, gaze.left.position];
        [0, 1].map(|side: usize| {
            let [x, y] = self.landmarks[LANDMARKS + side];
            let [a, b] = EYES[side];
            pupils[side].distance(Point::new(x, y)) / self.distance(a, b)
        })
    }

    /// Angle between the head's rotations, degrees.
    pub fn turn_error(&self, face: &Observation) -> f32 {
        let fit = face.fit.as_ref().expect("a fit");
        angle(self.quaternion, fit.quaternion)
    }

    /// Difference of each feature; none where they were not measured.
    pub fn feature_errors(&self, face: &Observation) -> Vec<f32> {
        let Some(features) = face.features.filter(|_| !self.features.is_empty()) else {
            return Vec::new();
        };
        std::iter::zip(Features::NAMES, features.0)
            .map(|(name, value)| (self.features[name] - value).abs())
            .collect()
    }

    fn distance(&self, a: usize, b: usize) -> f32 {
        let ([ax, ay], [bx, by]) = (self.landmarks[a], self.landmarks[b]);
        (ax - bx).hypot(ay - by)
    }
}
