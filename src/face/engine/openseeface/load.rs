// SPDX-License-Identifier: MPL-2.0
//! The engine from the published files.

use super::OpenSeeFace;
use crate::face::engine::{EngineConfig, EngineError};

/// Loads the networks that `config` names, or those found by [`locate::model`](crate::face::locate::model).
///
/// # Errors
/// When the runtime or a model is missing, damaged or another one; the message names the property of that model.
pub fn load(_config: &EngineConfig) -> Result<OpenSeeFace, EngineError> {
    Err(EngineError::Config("under construction".to_owned()))
}
