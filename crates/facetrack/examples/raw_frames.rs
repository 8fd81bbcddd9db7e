// SPDX-License-Identifier: MPL-2.0
//! The face-tracking domain without GStreamer: raw RGB frames in, one JSON line a frame out.
//!
//! ```sh
//! ffmpeg -i clip.mp4 -f rawvideo -pix_fmt rgb24 - |
//!     cargo run --release --example raw_frames -- mediapipe 640 360 30 max-faces=1 > clip.jsonl
//! ```
//!
//! Arguments: engine, width, height, frames a second, then any of `max-faces`, `running-mode`,
//! `detection-confidence`, `detect-max-width`, `nms-threshold`, `threads`, `model`, with the
//! meaning that these properties of the element have. Landmarks are smoothed where the engine's
//! original does it.

use std::error::Error;
use std::io::{ErrorKind, Read, Write, stdin, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use facetrack::engine::{
    Context, Engine, EngineConfig, EngineKind, Frame, RunningMode, Thresholds, load,
};
use facetrack::image::ImageView;
use facetrack::locate::SearchPaths;
use facetrack::observation::Observation;
use facetrack::smoothing::{LandmarkSmoother, OneEuro};
use serde_json::{Value, json};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engine, width, height, fps, options @ ..] = &arguments[..] else {
        return Err("usage: raw_frames ENGINE WIDTH HEIGHT FPS [OPTION=VALUE …]".into());
    };
    let kind: EngineKind = engine.parse()?;
    let (width, height): (usize, usize) = (width.parse()?, height.parse()?);
    let fps: f64 = fps.parse()?;
    let mut config = EngineConfig {
        paths: SearchPaths::from_vars(std::env::var_os),
        ..EngineConfig::default()
    };
    let mut thresholds = kind.thresholds();
    for option in options {
        set(&mut config, &mut thresholds, option)?;
    }

    let loading = Instant::now();
    let mut engine = load(kind, &config)?;
    engine.finder.set_thresholds(thresholds);
    eprintln!("loaded in {:.0?}", loading.elapsed());

    let mut smoother = kind.smooths_natively(&config).then(new_smoother);
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

/// Applies `option`, a name, an equals sign and a value.
fn set(
    config: &mut EngineConfig,
    thresholds: &mut Thresholds,
    option: &str,
) -> Result<(), Box<dyn Error>> {
    match option.split_once('=') {
        Some(("max-faces", value)) => config.max_faces = Some(value.parse()?),
        Some(("running-mode", "video")) => config.running_mode = RunningMode::Video,
        Some(("running-mode", "image")) => config.running_mode = RunningMode::Image,
        Some(("detection-confidence", value)) => thresholds.detection = value.parse()?,
        Some(("detect-max-width", value)) => config.detect_max_width = Some(value.parse()?),
        Some(("nms-threshold", value)) => config.nms_threshold = value.parse()?,
        Some(("threads", value)) => config.threads = value.parse()?,
        Some(("model", value)) => config.model = Some(value.into()),
        _ => return Err(format!("unknown option {option:?}").into()),
    }
    Ok(())
}

fn new_smoother() -> LandmarkSmoother {
    LandmarkSmoother::new(OneEuro::MEDIAPIPE)
}

/// Faces of a frame with everything that the engine measures.
fn track(
    engine: &mut Engine,
    smoother: &mut Option<LandmarkSmoother>,
    frame: &Frame<'_>,
) -> Result<Vec<Observation>, Box<dyn Error>> {
    let mut faces = engine.finder.find(frame)?;
    engine.completer.begin_frame(&faces);
    if let Some(smoother) = smoother {
        match faces.first_mut().and_then(|face| face.landmarks.as_mut()) {
            Some(landmarks) => smoother.smooth(landmarks, frame.time),
            None => *smoother = new_smoother(),
        }
    }
    let frame = frame.outline();
    for (id, face) in (1..).zip(&mut faces) {
        engine.completer.complete(face, &Context::of(&frame, id))?;
        frame.to_stored(face);
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
    let key_points: Vec<_> = face.key_points.iter().map(|p| [p.x, p.y]).collect();
    let bbox = face.bbox;
    json!({
        "bbox": [bbox.x, bbox.y, bbox.width, bbox.height],
        "score": face.confidence,
        "origin": face.origin,
        "landmarks": landmarks.collect::<Vec<_>>(),
        "key_points": key_points,
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
