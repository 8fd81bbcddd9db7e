// SPDX-License-Identifier: MPL-2.0
//! The network that measures a face: `landmarks` in `tracker.py`.

use super::crop;
use super::heat::{self, Peak};
use super::network::{Network, output};
use crate::face::engine::openseeface::LandmarkContract;
use crate::face::image::ImageView;
use crate::face::model::{Model, ModelError};
use crate::face::observation::{Landmark, LandmarkScheme, Landmarks};
use crate::face::sample::{CHANNELS, Window};

/// Where each of the 66 landmarks is among the 30 points of the model -1.
#[rustfmt::skip]
const AMONG_30: [usize; 66] = [
    0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, // jaw
    7, 7, 8, 8, 9, 10, 10, 11, 11, 12, // brows
    21, 21, 21, 22, 23, 23, 23, 23, 23, // nose
    13, 14, 14, 15, 16, 16, 17, 18, 18, 19, 20, 20, // eyes
    24, 25, 25, 25, 26, 26, 27, 27, 27, 24, 24, 28, 28, 28, 26, 29, 29, 29, // mouth
];

/// The model -1 sees a face as badly as its worst landmarks, where these are below a score.
const WORST: usize = 3;
const LEAST_OF_WORST: f32 = 0.65;

/// Measures faces.
pub struct LandmarkNetwork {
    network: Network,
    contract: LandmarkContract,
}

impl LandmarkNetwork {
    /// The network that runs `model`, which has these sizes.
    pub fn new(model: Box<dyn Model>, contract: LandmarkContract) -> Self {
        let input = [1, CHANNELS, contract.input, contract.input];
        Self {
            network: Network::new(model, &input),
            contract,
        }
    }

    /// The 66 landmarks of the face in `window`, px, and their mean score; `None` where the network's answer makes no
    /// sense.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn measure(
        &mut self,
        image: &ImageView<'_>,
        window: Window,
    ) -> Result<Option<(Landmarks, f32)>, ModelError> {
        let side = self.contract.input;
        let input = self.network.input();
        if crop::shown(window, side, side)
            .sample(image, input)
            .is_err()
        {
            return Ok(None);
        }
        let outputs = self.network.run()?;
        Ok(decode(output(&outputs, 0), &self.contract, &window))
    }
}

/// The landmarks in an answer for `window`, and their score.
fn decode(
    tensor: &[f32],
    contract: &LandmarkContract,
    window: &Window,
) -> Option<(Landmarks, f32)> {
    let cells = contract.cells * contract.cells;
    if tensor.len() != 3 * contract.points * cells {
        return None;
    }
    let mut maps = tensor.chunks_exact(cells);
    let peaks: Vec<Peak> = maps
        .by_ref()
        .take(contract.points)
        .map(heat::peak)
        .collect::<Option<_>>()?;
    let maps: Vec<&[f32]> = maps.collect();
    let (rows, columns) = maps.split_at(contract.points);
    let place = Place { contract, window };
    let scored: Vec<Scored> = peaks
        .iter()
        .zip(rows.iter().zip(columns))
        .map(|(peak, (rows, columns))| place.scored(peak, rows[peak.cell], columns[peak.cell]))
        .collect();
    let mean = peaks.iter().map(|peak| peak.value).sum::<f32>() / peaks.len() as f32;
    Some(match scored.len() {
        30 => of_30(&scored, mean),
        _ => (landmarks(scored), mean),
    })
}

/// A landmark and its score.
type Scored = (Landmark, f32);

/// Takes answers of the network to the image.
struct Place<'a> {
    contract: &'a LandmarkContract,
    window: &'a Window,
}

impl Place<'_> {
    /// The landmark whose heat map has this peak, with these elements of the offset maps there. Offsets that are no
    /// numbers make a point at the origin without a score.
    fn scored(&self, peak: &Peak, row_offset: f32, column_offset: f32) -> Scored {
        let Window {
            x,
            y,
            width,
            height,
        } = *self.window;
        let cells = self.contract.cells;
        let landmark = Landmark {
            x: x as f32 + self.scaled(width, peak.cell % cells, column_offset),
            y: y as f32 + self.scaled(height, peak.cell / cells, row_offset),
            z: 0.0,
        };
        match (landmark.x + landmark.y).is_nan() {
            true => (Landmark::default(), 0.0),
            false => (landmark, peak.value),
        }
    }

    /// Pixels from the first one of a window that is `pixels` wide or high. The cells span the input from its first to its
    /// last element.
    fn scaled(&self, pixels: usize, cell: usize, offset: f32) -> f32 {
        let LandmarkContract {
            input,
            cells,
            logit_factor,
            ..
        } = *self.contract;
        let span = (input - 1) as f32;
        let element =
            span * cell as f32 / (cells - 1) as f32 + span * heat::offset(offset, logit_factor);
        pixels as f32 / input as f32 * element
    }
}

/// The 66 landmarks out of 30, and the score.
fn of_30(scored: &[Scored], mean: f32) -> (Landmarks, f32) {
    let scored: Vec<Scored> = AMONG_30.iter().map(|index| scored[*index]).collect();
    let mut scores: Vec<f32> = scored.iter().map(|(_, score)| *score).collect();
    scores.sort_unstable_by(f32::total_cmp);
    let worst = scores[..WORST].iter().sum::<f32>() / WORST as f32;
    let score = if worst < LEAST_OF_WORST { worst } else { mean };
    (landmarks(scored), score)
}

fn landmarks(scored: Vec<Scored>) -> Landmarks {
    let (points, confidences) = scored.into_iter().unzip();
    Landmarks {
        scheme: LandmarkScheme::OpenSeeFace66,
        points,
        confidences,
    }
}
