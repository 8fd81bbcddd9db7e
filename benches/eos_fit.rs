// SPDX-License-Identifier: MPL-2.0
//! The fit of eos' morphable model without detector and networks, for `benches/against_eos.py`.
//!
//! `cargo bench --bench eos_fit -- landmarks FILE` measures the 68 landmarks of the sample clip's
//! face and writes them. `cargo bench --bench eos_fit -- fit FILE` fits each frame as a single
//! picture, and prints the number of frames and the mean time per frame, ms. `… follow FILE` fits
//! them as frames of a video.

mod common;
#[path = "common/sample.rs"]
mod sample;

use std::env;
use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use facetrack::engine::{self, EngineConfig, EngineKind, Frame};
use facetrack::geometry::Point;
use facetrack::image::ImageView;
use facetrack::instructions;
use facetrack::morphable::{self, FitSettings, Fitter, Past};
use facetrack_assets::locate::SearchPaths;

type Faces = Vec<Vec<[f32; 2]>>;

fn main() -> Result<(), Box<dyn Error>> {
    instructions::set_from_vars(env::var_os)?;
    // Cargo adds an argument of its own.
    let arguments: Vec<_> = env::args().skip(1).filter(|it| it != "--bench").collect();
    let [mode, file] = &arguments[..] else {
        println!("usage: cargo bench --bench eos_fit -- landmarks|fit|follow FILE");
        return Ok(());
    };
    match mode.as_str() {
        "landmarks" => Ok(fs::write(file, serde_json::to_vec(&measured()?)?)?),
        "fit" => time(file, |fitter, face, _| fitter.fit(face).is_ok()),
        "follow" => time(file, |fitter, face, past| fitter.follow(face, past).is_ok()),
        other => Err(format!("unknown mode {other}").into()),
    }
}

/// The landmarks in every frame of the sample clip that has one face.
fn measured() -> Result<Faces, Box<dyn Error>> {
    gst::init()?;
    let mut engine = engine::load(
        EngineKind::Eos,
        &EngineConfig {
            paths: SearchPaths::from_vars(env::var_os),
            ..EngineConfig::default()
        },
    )?;
    let mut faces = Faces::new();
    let clip = sample::clip()?;
    for frame in common::frames(&clip, "format=RGB,width=640,height=360", usize::MAX)? {
        let buffer = frame.buffer().ok_or("no frame")?;
        let pixels = buffer.map_readable()?;
        let frame = Frame {
            image: ImageView::rgb(640, 360, &pixels)?,
            time: Duration::from_nanos(buffer.pts().ok_or("no time")?.nseconds()),
        };
        let thresholds = EngineKind::Eos.thresholds();
        if let [face] = &engine.finder.find(&frame, &thresholds)?.faces[..]
            && let Some(landmarks) = &face.landmarks
        {
            faces.push(landmarks.points.iter().map(|p| [p.x, p.y]).collect());
        }
    }
    Ok(faces)
}

/// Fits every face of `file` with `fit`, and prints how many there were and the mean time of one.
fn time(
    file: &str,
    fit: impl Fn(&mut Fitter, &[Point], &mut Past) -> bool,
) -> Result<(), Box<dyn Error>> {
    let faces: Faces = serde_json::from_slice(&fs::read(file)?)?;
    let faces: Vec<Vec<_>> = faces
        .iter()
        .map(|face| face.iter().map(|[x, y]| Point::new(*x, *y)).collect())
        .collect();
    let (model, _) = morphable::load(None, &SearchPaths::from_vars(env::var_os))?;
    let mut fitter = Fitter::new(Arc::new(model), FitSettings::default());
    let mut past = Past::default();
    let start = Instant::now();
    let fitted = faces
        .iter()
        .filter(|face| fit(&mut fitter, face, &mut past))
        .count();
    let milliseconds = 1000.0 * start.elapsed().as_secs_f64();
    println!("{fitted} {}", milliseconds / faces.len() as f64);
    Ok(())
}
