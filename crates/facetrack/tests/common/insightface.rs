// SPDX-License-Identifier: MPL-2.0
//! Faces as InsightFace's classes measured them, and how far an observation is from them.
#![allow(dead_code, reason = "each test program uses its part")]

use facetrack::geometry::{Point, Rect};
use facetrack::observation::{LandmarkScheme, Observation};
use serde::Deserialize;

/// A face, in px.
#[derive(Deserialize)]
pub struct Found {
    /// Left, top, width, height.
    pub bbox: [f32; 4],
    /// 0…1.
    pub score: f32,
    /// The 106 landmarks.
    pub landmarks: Vec<[f32; 2]>,
    /// The five key points.
    pub kps: [[f32; 2]; 5],
    /// Embedding, of unit length or not.
    pub embedding: Option<Vec<f32>>,
    /// Whole years.
    pub age: Option<f32>,
    /// 0 for female, 1 for male.
    pub gender: Option<u8>,
}

impl Found {
    /// The box.
    pub fn rect(&self) -> Rect {
        let [x, y, width, height] = self.bbox;
        Rect::new(x, y, width, height)
    }

    /// Distance of each key point from the same one of `face`, px.
    pub fn key_point_errors(&self, face: &Observation) -> Vec<f32> {
        let ours = face.key_points.iter().copied();
        distances(ours, &self.kps)
    }

    /// Distance of each of the 106 landmarks from the same one of `face`, px.
    pub fn landmark_errors(&self, face: &Observation) -> Vec<f32> {
        let landmarks = face.landmarks.as_ref().expect("landmarks");
        assert_eq!(landmarks.scheme, LandmarkScheme::InsightFace106);
        let ours = landmarks.points.iter().map(|p| Point::new(p.x, p.y));
        distances(ours, &self.landmarks)
    }

    /// Difference of the score from the score of `face`.
    pub fn score_error(&self, face: &Observation) -> f32 {
        (face.confidence.expect("a score") - self.score).abs()
    }

    /// The cosine of the embeddings; `None` where none was recorded.
    pub fn cosine(&self, face: &Observation) -> Option<f32> {
        let theirs = self.embedding.as_ref()?;
        let ours = face.embedding.as_ref().expect("an embedding");
        assert_eq!(ours.len(), theirs.len());
        let length = |values: &[f32]| values.iter().map(|v| v * v).sum::<f32>().sqrt();
        assert!((length(ours) - 1.0).abs() < 1e-5, "{}", length(ours));
        let product: f32 = ours.iter().zip(theirs).map(|(a, b)| a * b).sum();
        Some(product / length(theirs))
    }

    /// Difference of the whole years, which the original reports, and whether the genders agree;
    /// `None` where none were recorded.
    pub fn attributes(&self, face: &Observation) -> Option<(f32, bool)> {
        let (age, gender) = (self.age?, self.gender?);
        let ours = face.attributes.expect("attributes");
        let agree = ours.gender as u8 == gender;
        Some(((ours.age.round() - age).abs(), agree))
    }
}

fn distances(ours: impl ExactSizeIterator<Item = Point>, theirs: &[[f32; 2]]) -> Vec<f32> {
    assert_eq!(ours.len(), theirs.len());
    ours.zip(theirs)
        .map(|(ours, [x, y])| ours.distance(Point::new(*x, *y)))
        .collect()
}
