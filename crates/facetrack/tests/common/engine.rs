// SPDX-License-Identifier: MPL-2.0
//! What tests of engines share.
#![allow(dead_code, reason = "each test program uses its part")]

use std::time::Duration;

use facetrack::engine::{Engine, EngineConfig, EngineError, EngineKind, Frame, load};
use facetrack::image::ImageView;
use facetrack::model::ModelError;
use facetrack::observation::Observation;

/// The engine; `None`, said aloud, where its models or runtime are not installed.
pub fn engine(kind: EngineKind, config: &EngineConfig) -> Option<Engine> {
    match load(kind, config) {
        Ok(engine) => Some(engine),
        Err(EngineError::Model(
            reason @ (ModelError::Missing { .. }
            | ModelError::NoPack { .. }
            | ModelError::Runtime { .. }),
        )) => {
            eprintln!("SKIPPED: {}: {reason}", kind.name());
            None
        }
        Err(reason) => panic!("{}: {reason}", kind.name()),
    }
}

/// Faces in an image, with everything that the engine measures.
pub fn look(engine: &mut Engine, image: ImageView<'_>, time_ms: u64) -> Vec<Observation> {
    let time = Duration::from_millis(time_ms);
    engine.look(&Frame { image, time }).unwrap()
}

/// As [`look`], in tightly packed RGB.
pub fn look_at_rgb(
    engine: &mut Engine,
    (width, height): (usize, usize),
    rgb: &[u8],
    time_ms: u64,
) -> Vec<Observation> {
    let image = ImageView::rgb(width, height, rgb).unwrap();
    look(engine, image, time_ms)
}
