// SPDX-License-Identifier: MPL-2.0
//! Faces as eos-py 1.5.0 fitted them to 68 landmarks, and how far an observation is from them.
#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::BTreeMap;

use facetrack::geometry::{Point, Rect};
use facetrack::observation::{MorphableFit, Observation};
use serde::Deserialize;

use super::recording::angle;

/// A face, in px.
#[derive(Deserialize)]
pub struct Found {
    /// The 68 landmarks that the model was fitted to.
    pub input_landmarks: Vec<[f32; 2]>,
    /// Landmarks of the fitted mesh; those that are not in `lm_used` have no meaning.
    pub landmarks: Vec<[f32; 2]>,
    /// The landmarks that have a vertex of their own.
    pub lm_used: Vec<usize>,
    /// Rotation of the head.
    pub quat_xyzw: [f32; 4],
    /// Coefficients of the shape.
    pub shape_coeffs: Vec<f32>,
    /// Coefficients of the expressions, by name.
    pub blendshapes: BTreeMap<String, f32>,
    /// Distances of the fitted mesh from the landmarks that have their own vertex.
    pub reproj_px: Distances,
}

/// Distances, px.
#[derive(Deserialize)]
pub struct Distances {
    pub mean: f32,
}

impl Found {
    /// The landmarks that the model was fitted to.
    pub fn points(&self) -> Vec<Point> {
        let points = self.input_landmarks.iter();
        points.map(|[x, y]| Point::new(*x, *y)).collect()
    }

    /// Extent of the landmarks.
    pub fn extent(&self) -> Rect {
        Rect::enclosing(self.points()).expect("landmarks")
    }

    /// Between the outer eye corners.
    pub fn eyes(&self) -> f32 {
        let points = self.points();
        points[36].distance(points[45])
    }

    /// Distance of each landmark of the fitted mesh, divided by the distance of the outer eye
    /// corners.
    pub fn landmark_errors(&self, face: &Observation) -> Vec<f32> {
        let ours = &face.landmarks.as_ref().expect("landmarks").points;
        let eyes = self.eyes();
        let used = self.lm_used.iter();
        used.map(|i| (ours[*i].x - self.landmarks[*i][0]).hypot(ours[*i].y - self.landmarks[*i][1]))
            .map(|distance| distance / eyes)
            .collect()
    }

    /// Angle between the head's rotations, degrees.
    pub fn turn_error(&self, fit: &MorphableFit) -> f32 {
        angle(self.quat_xyzw, fit.rotation)
    }
}
