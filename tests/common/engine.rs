// SPDX-License-Identifier: MPL-2.0
//! What tests of engines share.

use gstfacetrack::face::engine::{Engine, EngineConfig, EngineError, EngineKind, load};
use gstfacetrack::face::model::ModelError;

/// The engine; `None`, said aloud, where its models or runtime are not installed.
pub fn engine(kind: EngineKind, config: &EngineConfig) -> Option<Box<dyn Engine>> {
    match load(kind, config) {
        Ok(engine) => Some(engine),
        Err(EngineError::Model(
            reason @ (ModelError::Missing { .. } | ModelError::Runtime { .. }),
        )) => {
            eprintln!("SKIPPED: {}: {reason}", kind.name());
            None
        }
        Err(reason) => panic!("{}: {reason}", kind.name()),
    }
}
