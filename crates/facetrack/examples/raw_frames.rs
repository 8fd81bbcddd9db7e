// SPDX-License-Identifier: MPL-2.0
//! The face-tracking domain without GStreamer: raw RGB frames in, a record of JSON lines out.
//!
//! ```sh
//! ffmpeg -i clip.mp4 -f rawvideo -pix_fmt rgb24 - |
//!     cargo run --release --example raw_frames -- mediapipe 640 360 30 max-faces=1 > clip.jsonl
//! ```
//!
//! Arguments: engine, width, height, frames a second, then any of `max-faces`, `running-mode`,
//! `detection-confidence`, `detect-max-width`, `nms-threshold`, `threads`, `model`, `runtime`, with
//! the meaning that these properties of the element have. Landmarks are smoothed where the engine's
//! original does it.

use std::error::Error;
use std::io::{ErrorKind, Read, stdin, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use facetrack::analyzer::{Analyzer, Tuning};
use facetrack::device::Placement;
use facetrack::engine::{EngineConfig, EngineKind, Frame, RunningMode, Thresholds, load};
use facetrack::image::ImageView;
use facetrack::instructions;
use facetrack::model::RuntimeChoice;
use facetrack::record::{End, Export, Fields, FrameRecord, Metadata, Record};
use facetrack::report::ReportSource;
use facetrack::smoothing::OneEuro;
use facetrack::tracker::TrackerConfig;
use facetrack_assets::locate::SearchPaths;

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
    if let Err(ignored) = instructions::set_from_vars(std::env::var_os) {
        eprintln!("{ignored}");
    }
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
    let mut tuning = Tuning {
        thresholds: kind.thresholds(),
        ..Tuning::default()
    };
    for option in options {
        set(&mut config, &mut tuning.thresholds, option)?;
    }
    tuning.smoothing = kind.smooths_natively(&config).then_some(OneEuro::default());

    let mut analyzer = analyzer(kind, &config, tuning)?;
    let metadata = Metadata {
        fps,
        width: width.try_into()?,
        height: height.try_into()?,
        source: Some(analyzer.source().clone()),
        ..Metadata::default()
    };
    let export = Export {
        fields: Fields::all(),
        ..Export::default()
    };
    let mut record = Record::jsonl(stdout(), export, metadata);
    let mut pixels = vec![0; width * height * 3];
    for index in 0.. {
        if !read_frame(&mut pixels)? {
            break;
        }
        let time = Duration::from_millis((1000.0 * f64::from(index) / fps).round() as u64);
        let image = ImageView::rgb(width, height, &pixels)?;
        let report = analyzer.analyze(&Frame { image, time })?;
        record.frame(&FrameRecord {
            pts: Some(time.as_nanos() as u64),
            status: report.status,
            cut: report.cut,
            faces: &report.faces,
            size: None,
            engine: None,
        })?;
    }
    record.close(End::Complete)?;
    eprintln!("{}", analyzer.profile().line(kind.name(), None));
    Ok(())
}

/// Loads the engine.
fn analyzer(
    kind: EngineKind,
    config: &EngineConfig,
    tuning: Tuning,
) -> Result<Analyzer, Box<dyn Error>> {
    let start = Instant::now();
    let engine = load(kind, config)?;
    eprintln!("loaded in {:.0?}", start.elapsed());
    let mut source = ReportSource {
        engine: kind.name().to_owned(),
        models: engine.info.models.clone(),
        generator: "raw_frames".to_owned(),
        ..ReportSource::default()
    };
    source.place(&Placement::Cpu, &engine.info.runtimes, "the default");
    let tracker = TrackerConfig::default();
    Ok(Analyzer::new(engine, tracker, tuning, source))
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
        Some(("runtime", "built-in")) => config.runtime = RuntimeChoice::BuiltIn,
        Some(("runtime", "onnxruntime")) => config.runtime = RuntimeChoice::OnnxRuntime,
        _ => return Err(format!("unknown option {option:?}").into()),
    }
    Ok(())
}

/// Whether there was another frame; a cut one counts as none.
fn read_frame(pixels: &mut [u8]) -> std::io::Result<bool> {
    match stdin().lock().read_exact(pixels) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}
