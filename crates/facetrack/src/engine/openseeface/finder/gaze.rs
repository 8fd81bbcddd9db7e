// SPDX-License-Identifier: MPL-2.0
//! The network that finds pupils: `get_eye_state` in `tracker.py`.

mod eye;

use super::heat::{self, Peak};
use crate::engine::network::Network;
use crate::image::ImageView;
use crate::model::ModelError;
use crate::observation::{Gaze, Landmarks, Pupil};
use crate::sample::CHANNELS;
use eye::{Eye, Patch};

/// Width and height of an eye's input.
const SIDE: usize = 32;

/// Rows and columns of a heat map.
const CELLS: usize = 8;

/// Divisor of the offsets' logits.
const LOGIT_FACTOR: f32 = 8.0;

/// Elements of an eye's input.
const EYE_INPUT: usize = CHANNELS * SIDE * SIDE;

/// Elements of an eye's output: a heat map, offsets across the columns, offsets down the rows.
const EYE_OUTPUT: usize = 3 * CELLS * CELLS;

/// Finds pupils.
#[derive(Clone)]
pub(super) struct GazeNetwork {
    network: Network,
    patch: Patch,
}

impl GazeNetwork {
    /// Finds pupils with `network`.
    pub(super) fn new(network: Network) -> Self {
        Self {
            network,
            patch: Patch::default(),
        }
    }

    /// The pupils of a face. A pupil that cannot be found is at the origin and has the score 0.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub(super) fn measure(
        &mut self,
        image: &ImageView<'_>,
        landmarks: &Landmarks,
    ) -> Result<Gaze, ModelError> {
        let eyes = Eye::both(landmarks, [image.width(), image.height()]);
        let Some([right, left]) = eyes.filter(|eyes| self.show(image, eyes)) else {
            return Ok(Gaze::default());
        };
        let outputs = self.network.run()?;
        let mut answers = outputs.get(0).chunks_exact(EYE_OUTPUT);
        let mut pupil = |eye: &Eye| answers.next().and_then(|answer| find(answer, eye));
        Ok(Gaze {
            right: pupil(&right).unwrap_or_default(),
            left: pupil(&left).unwrap_or_default(),
        })
    }

    /// Puts both eyes into the network's input; returns true if that was possible.
    fn show(&mut self, image: &ImageView<'_>, eyes: &[Eye; 2]) -> bool {
        let inputs = self.network.input().chunks_exact_mut(EYE_INPUT);
        inputs
            .zip(eyes)
            .all(|(input, eye)| self.patch.show(image, eye, SIDE, input).is_some())
    }
}

/// The pupil in the network's answer for an eye.
fn find(answer: &[f32], eye: &Eye) -> Option<Pupil> {
    let (heat, offsets) = answer.split_at(CELLS * CELLS);
    let (columns, rows) = offsets.split_at(CELLS * CELLS);
    let Peak { cell, value } = heat::peak(heat)?;
    let element = |index: usize, offset: f32| {
        let offset = heat::offset(offset, LOGIT_FACTOR);
        SIDE as f32 * (index as f32 / CELLS as f32 + offset)
    };
    // The network sees columns as rows.
    let x = element(cell / CELLS, columns[cell]);
    let y = element(cell % CELLS, rows[cell]);
    let position = eye.image_from_input([x, y].map(|v| f64::from(v) / SIDE as f64));
    (position.x + position.y).is_finite().then_some(Pupil {
        position,
        confidence: value,
    })
}
