// SPDX-License-Identifier: MPL-2.0
//! The fit of a morphable model against recordings of eos-py 1.5.0, where `FACETRACK_REFERENCE_DIR` names a folder with
//! them: `out/eos63/` with the 68 landmarks that the original was given and what it made of them. No network takes part.
//! The model's files are found as the engine finds them.

#[path = "common/recording.rs"]
mod recording;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use gstfacetrack::face::geometry::Point;
use gstfacetrack::face::morphable::{self, Fit, FitSettings, Fitter};
use recording::{Recording, mean};
use serde::Deserialize;

/// What eos made of a face.
#[derive(Deserialize)]
struct Face {
    input_landmarks: Vec<[f32; 2]>,
    /// Where the fitted mesh has the landmarks; those that are not in `lm_used` mean nothing.
    landmarks: Vec<[f32; 2]>,
    lm_used: Vec<usize>,
    quat_xyzw: [f32; 4],
    shape_coeffs: Vec<f32>,
    blendshapes: BTreeMap<String, f32>,
}

const CLIPS: [&str; 4] = [
    "dlib68__IMAGES",
    "dlib68__pyfeat_WolfgangLanger_Pexels",
    "dlib68__pyfeat_single_face",
    "eos_pts_image_0010",
];

fn reference() -> Option<PathBuf> {
    let folder = std::env::var_os("FACETRACK_REFERENCE_DIR").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR names no recordings");
    }
    folder
}

fn fitter() -> Option<Fitter> {
    match morphable::load(None, None) {
        Ok((model, _)) => Some(Fitter::new(Arc::new(model), FitSettings::default())),
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}

impl Face {
    fn points(&self) -> Vec<Point> {
        let points = self.input_landmarks.iter();
        points.map(|[x, y]| Point::new(*x, *y)).collect()
    }
}

fn turn(a: [f32; 4], b: [f32; 4]) -> f32 {
    let dot: f64 = std::iter::zip(a, b)
        .map(|(a, b)| f64::from(a) * f64::from(b))
        .sum();
    let norm = |q: [f32; 4]| {
        q.map(|v| f64::from(v) * f64::from(v))
            .iter()
            .sum::<f64>()
            .sqrt()
    };
    (2.0 * (dot.abs() / norm(a) / norm(b)).min(1.0).acos()).to_degrees() as f32
}

#[test]
fn parity() {
    let (Some(folder), Some(mut fitter)) = (reference(), fitter()) else {
        return;
    };
    let model = fitter.model().clone();
    let mapping: BTreeMap<_, _> = model.mapping().vertices.iter().copied().collect();
    for clip in CLIPS {
        let recording: Recording<Face> = recording::read(&folder, "eos63", clip);
        let (mut px, mut rot, mut exp, mut shp) = (vec![], vec![], vec![], vec![]);
        for (i, frame) in recording.frames.iter().enumerate() {
            for face in &frame.faces {
                let fit: Fit = fitter.fit(&face.points()).expect("a fit");
                let eyes = {
                    let p = face.points();
                    p[36].distance(p[45])
                };
                let errors: Vec<f32> = face
                    .lm_used
                    .iter()
                    .map(|l| {
                        let p = fit.pose.project(fit.vertices[mapping[l]]);
                        p.distance(Point::new(face.landmarks[*l][0], face.landmarks[*l][1])) / eyes
                    })
                    .collect();
                px.push(mean(&errors));
                rot.push(turn(fit.pose.quaternion(), face.quat_xyzw));
                for (e, v) in std::iter::zip(model.expressions(), &fit.expression) {
                    exp.push((face.blendshapes[&e.name] - v).abs());
                }
                let d: Vec<f32> = std::iter::zip(&fit.shape, &face.shape_coeffs)
                    .map(|(a, b)| (a - b).abs())
                    .collect();
                shp.push(d.iter().copied().fold(0.0, f32::max));
                if *shp.last().unwrap() > 0.01 {
                    println!(
                        "{clip} {i} px {} rot {} shape {} yaw {}",
                        px.last().unwrap(),
                        rot.last().unwrap(),
                        shp.last().unwrap(),
                        fit.pose.yaw()
                    );
                }
            }
        }
        let max = |v: &[f32]| v.iter().copied().fold(0.0, f32::max);
        println!(
            "{clip}: {} px {} max {} rot {} max {} exp {} max {} shape {} max {}",
            px.len(),
            mean(&px),
            max(&px),
            mean(&rot),
            max(&rot),
            mean(&exp),
            max(&exp),
            mean(&shp),
            max(&shp)
        );
    }
}
