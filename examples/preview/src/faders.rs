// SPDX-License-Identifier: MPL-2.0
//! Gains of blendshapes, set by keys.

use facetrack::blendshape::MEDIAPIPE_CHANNELS;
use facetrack::gain::Gains;

/// The blendshape that is selected first: avatars need a gain for it most often.
const FIRST: &str = "jawOpen";

/// Steps of a gain per 1.
const STEPS: f32 = 10.0;

/// The gains of all blendshapes. One blendshape is selected.
pub struct Faders {
    pub gains: Gains,
    /// Index of the selected channel.
    selected: usize,
}

impl Faders {
    pub fn new(gains: Gains) -> Self {
        let first = MEDIAPIPE_CHANNELS.iter().position(|name| *name == FIRST);
        Self {
            gains,
            selected: first.unwrap_or_default(),
        }
    }

    /// Selects the blendshape `steps` after the selected one.
    pub fn select(&mut self, steps: isize) {
        // The first channel of MediaPipe is not a blendshape.
        let last = MEDIAPIPE_CHANNELS.len() as isize - 1;
        let index = (self.selected as isize - 1 + steps).rem_euclid(last) + 1;
        self.selected = index as usize;
    }

    /// Changes the gain of the selected blendshape by a number of steps, within its range.
    pub fn change(&mut self, steps: f32) {
        let name = self.name();
        let gain = ((self.gains.get(name) * STEPS).round() + steps) / STEPS;
        // A gain out of range is refused, and the one before stays.
        let _ = self.gains.set(name, gain);
    }

    /// Index of the selected channel in MediaPipe's channels.
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// The selected blendshape with its gain.
    pub fn text(&self) -> String {
        let name = self.name();
        format!("gain of {name}: {:.1}", self.gains.get(name))
    }

    fn name(&self) -> &'static str {
        MEDIAPIPE_CHANNELS[self.selected]
    }
}
