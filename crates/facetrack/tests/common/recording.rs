// SPDX-License-Identifier: MPL-2.0
//! Recordings of the originals' results, and the distance of an observation from MediaPipe Tasks'
//! results.
#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use facetrack::geometry::{Point, Rect};
use facetrack::observation::Observation;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Results for the frames of a clip, or for pictures.
#[derive(Deserialize)]
pub struct Recording<F = Face> {
    pub frames: Vec<Frame<F>>,
}

/// Results for a frame or a picture.
#[derive(Deserialize)]
pub struct Frame<F = Face> {
    /// File name of a picture; empty for a frame.
    #[serde(default)]
    pub image: String,
    pub faces: Vec<F>,
}

/// MediaPipe's measurements of a face, px.
#[derive(Deserialize)]
pub struct Face {
    pub landmarks: Vec<[f32; 3]>,
    pub blendshapes: BTreeMap<String, f32>,
    pub matrix: [[f32; 4]; 4],
}

/// Reads `folder/out/<original>/<clip>.json.gz`.
pub fn read<F: DeserializeOwned>(folder: &Path, original: &str, clip: &str) -> Recording<F> {
    let path = folder.join(format!("out/{original}/{clip}.json.gz"));
    let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_reader(BufReader::new(GzDecoder::new(file))).expect("a recording")
}

impl Face {
    /// Overlap with `face`, 0…1.
    pub fn iou(&self, face: &Observation) -> f32 {
        let points = self.landmarks.iter().map(|[x, y, _]| Point::new(*x, *y));
        let extent = Rect::enclosing(points).expect("landmarks");
        extent.iou(&face.bbox)
    }

    /// Distance of each landmark, divided by the distance of the outer eye corners.
    pub fn landmark_errors(&self, face: &Observation) -> Vec<f32> {
        let ([ax, ay, _], [bx, by, _]) = (self.landmarks[33], self.landmarks[263]);
        let eyes = (ax - bx).hypot(ay - by);
        let points = &face.landmarks.as_ref().expect("landmarks").points;
        std::iter::zip(points, &self.landmarks)
            .map(|(p, q)| (p.x - q[0]).hypot(p.y - q[1]) / eyes)
            .collect()
    }

    /// Difference of each blendshape.
    pub fn blendshape_errors(&self, face: &Observation) -> Vec<f32> {
        let blendshapes = face.blendshapes.as_ref().expect("blendshapes");
        assert_eq!(blendshapes.values().len(), self.blendshapes.len());
        blendshapes
            .iter()
            .map(|(name, value)| (value - self.blendshapes[name]).abs())
            .collect()
    }

    /// Angle between the poses, degrees.
    pub fn rotation(&self, face: &Observation) -> f32 {
        let ours = face.pose.expect("a pose").matrix;
        let dot = |a: &[[f32; 4]; 4], b: &[[f32; 4]; 4]| -> f64 {
            (0..9)
                .map(|i| f64::from(a[i / 3][i % 3]) * f64::from(b[i / 3][i % 3]))
                .sum()
        };
        let scale = (dot(&ours, &ours) * dot(&self.matrix, &self.matrix)).sqrt() / 3.0;
        let cosine = (dot(&ours, &self.matrix) / scale - 1.0) / 2.0;
        cosine.clamp(-1.0, 1.0).acos().to_degrees() as f32
    }
}

/// Angle between two rotations as unit quaternions, degrees.
pub fn angle(a: [f32; 4], b: [f32; 4]) -> f32 {
    let distance = |sign: f32| -> f32 {
        let squares = a.iter().zip(b).map(|(a, b)| (a - sign * b).powi(2));
        squares.sum::<f32>().sqrt()
    };
    let chord = distance(1.0).min(distance(-1.0));
    4.0 * (chord / 2.0).min(1.0).asin().to_degrees()
}

/// Pearson's correlation of the pairs that `a` and `b` make.
pub fn correlation(a: &[f32], b: &[f32]) -> f32 {
    let centred = |values: &[f32]| -> Vec<f32> {
        let middle = mean(values);
        values.iter().map(|value| value - middle).collect()
    };
    let (a, b) = (centred(a), centred(b));
    let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len().max(1) as f32
}

/// The 95th percentile; 0 without values.
pub fn p95(values: &mut [f32]) -> f32 {
    values.sort_unstable_by(f32::total_cmp);
    let rank = (values.len() * 95).div_ceil(100);
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}
