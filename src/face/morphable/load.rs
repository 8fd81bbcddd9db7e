// SPDX-License-Identifier: MPL-2.0
//! The model from the files that eos publishes.

use std::path::Path;

use super::FaceModel;
use crate::face::model::{ModelError, ModelFile};

/// Loads the shape model at `model` and the other files beside it; all five are looked for as
/// [`locate::model`](crate::face::locate::model) does it where `model` is `None` or its folder does not have them.
///
/// # Errors
/// [`ModelError`] when a file is missing, damaged, not what it should be, or not one of the same model; the message names
/// it.
pub fn load(
    _model: Option<&Path>,
    _models_dir: Option<&Path>,
) -> Result<(FaceModel, Vec<ModelFile>), ModelError> {
    Err(ModelError::Run {
        model: "eos".to_owned(),
        reason: "not read yet".to_owned(),
    })
}
