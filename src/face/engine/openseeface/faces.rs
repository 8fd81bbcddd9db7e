// SPDX-License-Identifier: MPL-2.0
//! What is known of each face: its pose in the frame before, and its range of expression.

use crate::face::engine::{Context, EngineConfig};
use crate::face::observation::Observation;

/// Faces by identity.
pub struct Faces {}

impl Faces {
    /// No face yet.
    pub fn new(_config: &EngineConfig) -> Self {
        Self {}
    }

    /// The faces of another frame follow.
    pub fn begin_frame(&mut self) {}

    /// Adds to `face`, which has landmarks, everything that follows from them.
    pub fn complete(&mut self, _face: &mut Observation, _context: &Context) {}

    /// The identity `id` ended.
    pub fn forget(&mut self, _id: u32) {}

    /// The next frame does not continue those before; what was learned stays.
    pub fn reset(&mut self) {}

    /// What was learned, as JSON.
    pub fn calibration(&self) -> String {
        String::new()
    }

    /// Goes on from what [`Faces::calibration`] returned.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn set_calibration(&mut self, _calibration: &str) -> Result<(), String> {
        Ok(())
    }

    /// Begins to learn anew.
    pub fn reset_calibration(&mut self) {}
}
