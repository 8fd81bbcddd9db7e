// SPDX-License-Identifier: MPL-2.0
//! The face-tracking domain without GStreamer: raw RGB frames in, one JSON line a frame out.
//!
//! ```sh
//! ffmpeg -i clip.mp4 -f rawvideo -pix_fmt rgb24 - | cargo run --release --example raw_frames -- 640 360 30 > clip.jsonl
//! ```
//!
//! Arguments: width, height, frames a second, greatest number of faces (1), running mode (`video` or `image`). A single
//! face in a video is smoothed, as MediaPipe's own tasks do it.

use std::error::Error;
use std::io::{ErrorKind, Read, Write, stdin, stdout};
use std::time::{Duration, Instant};

use gstfacetrack::face::engine::{Engine, EngineConfig, Frame, RunningMode, Wanted, mediapipe};
use gstfacetrack::face::image::ImageView;
use gstfacetrack::face::observation::Observation;
use gstfacetrack::face::smoothing::{LandmarkSmoother, OneEuro};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, name: &str| {
        arguments
            .get(index)
            .ok_or_else(|| format!("argument {}: {name} is missing", index + 1))
    };
    let width: usize = argument(0, "width")?.parse()?;
    let height: usize = argument(1, "height")?.parse()?;
    let fps: f64 = argument(2, "frames a second")?.parse()?;
    let max_faces: usize = arguments.get(3).map_or(Ok(1), |n| n.parse())?;
    let running_mode = match arguments.get(4).map(String::as_str) {
        None | Some("video") => RunningMode::Video,
        Some("image") => RunningMode::Image,
        Some(other) => return Err(format!("{other:?} is neither video nor image").into()),
    };

    let loading = Instant::now();
    let mut engine = mediapipe::load(&EngineConfig {
        running_mode,
        max_faces: Some(max_faces),
        ..EngineConfig::default()
    })?;
    eprintln!("loaded in {:.0?}", loading.elapsed());

    let mut smoother = (max_faces == 1 && running_mode == RunningMode::Video).then(new_smoother);
    let mut pixels = vec![0; width * height * 3];
    let mut spent = Vec::new();
    for index in 0.. {
        if !read_frame(&mut pixels)? {
            break;
        }
        let start = Instant::now();
        let time = Duration::from_millis((1000.0 * f64::from(index) / fps).round() as u64);
        let image = ImageView::rgb(width, height, &pixels)?;
        let faces = track(&mut engine, &mut smoother, &Frame { image, time })?;
        spent.push(start.elapsed());
        let faces: Vec<_> = faces.iter().map(face_json).collect();
        let line = json!({"i": index, "t_ms": time.as_millis() as u64, "faces": faces});
        writeln!(stdout().lock(), "{line}")?;
    }
    report(&mut spent);
    Ok(())
}

fn new_smoother() -> LandmarkSmoother {
    LandmarkSmoother::new(OneEuro::MEDIAPIPE)
}

/// Faces of a frame with everything that the engine measures.
fn track(
    engine: &mut impl Engine,
    smoother: &mut Option<LandmarkSmoother>,
    frame: &Frame<'_>,
) -> Result<Vec<Observation>, Box<dyn Error>> {
    let frame_size = (frame.image.width(), frame.image.height());
    let mut faces = engine.process(frame)?;
    if let Some(smoother) = smoother {
        match faces.first_mut().and_then(|face| face.landmarks.as_mut()) {
            Some(landmarks) => smoother.smooth(landmarks, frame.time),
            None => *smoother = new_smoother(),
        }
    }
    for face in &mut faces {
        engine.complete(face, frame_size, Wanted::Everything)?;
    }
    Ok(faces)
}

fn face_json(face: &Observation) -> Value {
    let landmarks = face
        .landmarks
        .iter()
        .flat_map(|landmarks| landmarks.points.iter().map(|p| [p.x, p.y, p.z]));
    let blendshapes: serde_json::Map<_, _> = face
        .blendshapes
        .iter()
        .flat_map(|blendshapes| blendshapes.iter())
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let bbox = face.bbox;
    json!({
        "bbox": [bbox.x, bbox.y, bbox.width, bbox.height],
        "score": face.confidence,
        "origin": face.origin.name(),
        "landmarks": landmarks.collect::<Vec<_>>(),
        "blendshapes": blendshapes,
        "matrix": face.pose.map(|pose| pose.matrix),
    })
}

/// Whether there was another frame; a cut one counts as none.
fn read_frame(pixels: &mut [u8]) -> std::io::Result<bool> {
    match stdin().lock().read_exact(pixels) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

fn report(spent: &mut [Duration]) {
    spent.sort();
    if let Some(median) = spent.get(spent.len() / 2) {
        eprintln!("{} frames, median {median:.2?} a frame", spent.len());
    }
}
