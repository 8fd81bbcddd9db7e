// SPDX-License-Identifier: MPL-2.0
//! Finds faces and follows them.

use super::Networks;
use crate::face::engine::{EngineConfig, Thresholds};
use crate::face::image::ImageView;
use crate::face::model::ModelError;
use crate::face::observation::Observation;

/// Faces from frame to frame.
pub struct Tracking {}

impl Tracking {
    /// Tracking with `networks`.
    ///
    /// # Errors
    /// When a network does not run.
    pub fn new(_networks: Networks, _config: &EngineConfig) -> Result<Self, ModelError> {
        Ok(Self {})
    }

    /// Faces in the next frame, best first.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn process(&mut self, _image: &ImageView<'_>) -> Result<Vec<Observation>, ModelError> {
        Ok(Vec::new())
    }

    /// The next frame does not continue those before.
    pub fn reset(&mut self) {}

    /// Takes other thresholds, from the next frame on.
    pub fn set_thresholds(&mut self, _thresholds: Thresholds) {}
}
