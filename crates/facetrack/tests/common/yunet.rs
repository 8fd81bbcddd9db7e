// SPDX-License-Identifier: MPL-2.0
//! Faces as OpenCV's `FaceDetectorYN` found them, and how far an observation is from them.
#![allow(dead_code, reason = "each test program uses its part")]

use facetrack::geometry::{Point, Rect};
use facetrack::observation::Observation;
use serde::Deserialize;

/// A face, in px.
#[derive(Deserialize)]
pub struct Found {
    /// Left, top, width, height.
    pub bbox: [f32; 4],
    /// The five key points.
    pub landmarks: [[f32; 2]; 5],
    /// 0…1.
    pub score: f32,
}

impl Found {
    /// The box.
    pub fn rect(&self) -> Rect {
        let [x, y, width, height] = self.bbox;
        Rect::new(x, y, width, height)
    }

    /// Distance of each key point from the same one of `face`, px.
    pub fn key_point_errors(&self, face: &Observation) -> Vec<f32> {
        assert_eq!(face.key_points.len(), self.landmarks.len());
        let pairs = face.key_points.iter().zip(&self.landmarks);
        pairs
            .map(|(ours, [x, y])| ours.distance(Point::new(*x, *y)))
            .collect()
    }

    /// Distance of a corner of the box or a key point from the same one of `face`, px.
    pub fn largest_distance(&self, face: &Observation) -> f32 {
        let corners = |b: Rect| [Point::new(b.x, b.y), Point::new(b.right(), b.bottom())];
        let pairs = corners(face.bbox).into_iter().zip(corners(self.rect()));
        let key_points = self.key_point_errors(face);
        pairs
            .map(|(ours, theirs)| ours.distance(theirs))
            .chain(key_points)
            .fold(0.0, f32::max)
    }

    /// Difference of the score from the score of `face`.
    pub fn score_error(&self, face: &Observation) -> f32 {
        face.confidence
            .map_or(1.0, |score| (score - self.score).abs())
    }
}
