// SPDX-License-Identifier: MPL-2.0
//! Helpers for the tests of engines.
#![allow(dead_code, reason = "each test program uses its part")]

use std::time::Duration;

use facetrack::engine::{self, Engine, EngineConfig, EngineError, EngineKind, Frame};
use facetrack::image::ImageView;
use facetrack::model::ModelError;
use facetrack::observation::Observation;
use facetrack_assets::locate::SearchPaths;

/// Folders of the installed models and ONNX Runtime.
pub fn installed_paths() -> SearchPaths {
    SearchPaths::from_vars(std::env::var_os)
}

/// Loads the engine with installed models.
pub fn load(kind: EngineKind, config: &EngineConfig) -> Result<Engine, EngineError> {
    let config = EngineConfig {
        paths: installed_paths(),
        ..config.clone()
    };
    engine::load(kind, &config)
}

/// The engine; `None`, said aloud, where its models or runtime are not installed.
pub fn engine(kind: EngineKind, config: &EngineConfig) -> Option<Engine> {
    match load(kind, config) {
        Ok(engine) => Some(engine),
        Err(EngineError::Model(reason) | EngineError::Part { source: reason, .. })
            if is_not_installed(&reason) =>
        {
            eprintln!("SKIPPED: {}: {reason}", kind.name());
            None
        }
        Err(reason) => panic!("{}: {reason}", kind.name()),
    }
}

fn is_not_installed(error: &ModelError) -> bool {
    matches!(error, ModelError::Missing(_) | ModelError::Runtime { .. })
}

/// Faces in an image, with everything that the engine measures.
pub fn look(engine: &mut Engine, image: ImageView<'_>, time_ms: u64) -> Vec<Observation> {
    let time = Duration::from_millis(time_ms);
    let kind: EngineKind = engine.info.name.parse().unwrap();
    let frame = Frame { image, time };
    engine.look(&frame, &kind.thresholds()).unwrap()
}

/// Searches a frame like [`look`], in tightly packed RGB.
pub fn look_at_rgb(
    engine: &mut Engine,
    (width, height): (usize, usize),
    rgb: &[u8],
    time_ms: u64,
) -> Vec<Observation> {
    let image = ImageView::rgb(width, height, rgb).unwrap();
    look(engine, image, time_ms)
}
