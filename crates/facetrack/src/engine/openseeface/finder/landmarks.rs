// SPDX-License-Identifier: MPL-2.0
//! The network that measures a face: `landmarks` in `tracker.py`.

use std::sync::Arc;

use super::crop;
use super::heat;
use crate::engine::network::Network;
use crate::engine::openseeface::{LandmarkContract, Peak, Peaks};
use crate::image::ImageView;
use crate::model::ModelError;
use crate::observation::{Landmark, LandmarkScheme, Landmarks};
use crate::sample::{Crop, Levels, Window};

/// Index of each of the 66 landmarks among the 30 points of the model -1.
#[rustfmt::skip]
const AMONG_30: [usize; 66] = [
    0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 6, // jaw
    7, 7, 8, 8, 9, 10, 10, 11, 11, 12, // brows
    21, 21, 21, 22, 23, 23, 23, 23, 23, // nose
    13, 14, 14, 15, 16, 16, 17, 18, 18, 19, 20, 20, // eyes
    24, 25, 25, 25, 26, 26, 27, 27, 27, 24, 24, 28, 28, 28, 26, 29, 29, 29, // mouth
];

/// Number of landmarks with the lowest scores. A face of the model -1 has their mean score, if that
/// is below a minimum.
const WORST: usize = 3;
const LEAST_OF_WORST: f32 = 0.65;

/// Measures faces.
#[derive(Clone)]
pub(super) struct LandmarkNetwork {
    /// The network.
    pub network: Network,
    /// Finds the peaks in its answers.
    pub peaks: Arc<Peaks>,
}

impl LandmarkNetwork {
    /// The 66 landmarks of the face in `window`, px, and their mean score; `None` if the network's
    /// answer is invalid.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub(super) fn measure(
        &mut self,
        image: &ImageView<'_>,
        window: Window,
    ) -> Result<Option<(Landmarks, f32)>, ModelError> {
        let side = self.peaks.contract.input;
        // `preprocess` in `tracker.py` resizes floats. The other networks get resized bytes.
        let crop = Crop {
            levels: Levels::Exact,
            ..crop::shown(window, side, side)
        };
        if self.network.show(&crop, image).is_err() {
            return Ok(None);
        }
        let outputs = self.network.run()?;
        let peaks = self.peaks.find(outputs.get(0));
        Ok(decode(&peaks, &self.peaks.contract, &window))
    }
}

/// The landmarks with these peaks in an answer for `window`, and their score.
fn decode(
    peaks: &[Peak],
    contract: &LandmarkContract,
    window: &Window,
) -> Option<(Landmarks, f32)> {
    let place = Place { contract, window };
    let scored: Vec<Scored> = peaks
        .iter()
        .map(|peak| place.scored(peak))
        .collect::<Option<_>>()?;
    let mean = peaks.iter().map(|peak| peak.value).sum::<f32>() / peaks.len() as f32;
    Some(match scored.len() {
        30 => of_30(&scored, mean),
        _ => (landmarks(scored), mean),
    })
}

/// A landmark and its score.
type Scored = (Landmark, f32);

/// Converts answers of the network to the image.
struct Place<'a> {
    contract: &'a LandmarkContract,
    window: &'a Window,
}

impl Place<'_> {
    /// The landmark with this peak; `None` if its score is not finite. If an offset is NaN, the
    /// point is at the origin and has the score 0.
    fn scored(&self, peak: &Peak) -> Option<Scored> {
        let (window, cells) = (self.window, self.contract.cells);
        let Peak { value, cell, .. } = *peak;
        let [down, across] = peak.offsets;
        let landmark = Landmark {
            x: window.x as f32 + self.scaled(window.width, cell % cells, across),
            y: window.y as f32 + self.scaled(window.height, cell / cells, down),
            z: 0.0,
        };
        if (landmark.x + landmark.y).is_nan() {
            return value.is_finite().then_some((Landmark::default(), 0.0));
        }
        value.is_finite().then_some((landmark, value))
    }

    /// Position in a window that is `pixels` wide or high, px. The cells span the input from its
    /// first to its last element.
    fn scaled(&self, pixels: usize, cell: usize, offset: f32) -> f32 {
        let contract = self.contract;
        let span = (contract.input - 1) as f32;
        let offset = heat::offset(offset, contract.logit_factor);
        let element = span * cell as f32 / (contract.cells - 1) as f32 + span * offset;
        pixels as f32 / contract.input as f32 * element
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

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: LandmarkContract = LandmarkContract::TINY;

    const WINDOW: Window = Window {
        x: 10,
        y: 20,
        width: 112,
        height: 224,
    };

    /// Peaks of 0.75 in the first cells, without offsets.
    fn flat(contract: &LandmarkContract) -> Vec<Peak> {
        let peak = Peak {
            value: 0.75,
            cell: 0,
            offsets: [0.5; 2],
        };
        vec![peak; contract.points]
    }

    #[test]
    fn landmarks_lie_where_the_heat_and_the_offsets_say() {
        let contract = LandmarkContract::FULL;
        // Row, column, offsets down and across, and the landmark: cells are 223/27 elements apart,
        // an element is one row and half a column of the window, and ln 3 is the logit of ¾.
        let third = 223.0 * 3f32.ln() / 16.0;
        for (row, column, down, across, x, y) in [
            (0, 0, 0.5, 0.5, 10.0, 20.0),
            (27, 27, 0.5, 0.5, 10.0 + 111.5, 20.0 + 223.0),
            (3, 9, 0.5, 0.5, 10.0 + 111.5 / 3.0, 20.0 + 223.0 / 9.0),
            (0, 0, 0.75, 0.5, 10.0, 20.0 + third),
            (0, 0, 0.5, 0.75, 10.0 + third / 2.0, 20.0),
            (0, 0, 0.25, 0.25, 10.0 - third / 2.0, 20.0 - third),
            (0, 0, 0.5, f32::NAN, 0.0, 0.0),
            (0, 0, f32::NAN, 0.5, 0.0, 0.0),
        ] {
            let mut peaks = flat(&contract);
            peaks[7] = Peak {
                value: 1.125,
                cell: row * contract.cells + column,
                offsets: [down, across],
            };
            let (landmarks, score) = decode(&peaks, &contract, &WINDOW).unwrap();
            let point = landmarks.points[7];
            assert!(
                (point.x - x).abs() < 1e-3 && (point.y - y).abs() < 1e-3,
                "{point:?}"
            );
            let own = if (down + across).is_nan() { 0.0 } else { 1.125 };
            assert_eq!(landmarks.confidences[7], own);
            assert_eq!(landmarks.confidences[8], 0.75);
            assert!((score - (0.75 + 0.375 / 66.0)).abs() < 1e-6, "{score}");
        }
    }

    #[test]
    fn thirty_points_stand_for_all_landmarks() {
        let mut peaks = flat(&TINY);
        // A point in its own cell, with its own score: 0.75 and more.
        for (point, peak) in peaks.iter_mut().enumerate() {
            peak.value = 0.75 + point as f32 / 256.0;
            peak.cell = point;
        }
        let (landmarks, score) = decode(&peaks, &TINY, &WINDOW).unwrap();
        assert_eq!(landmarks.points.len(), 66);
        for (index, point) in [
            (0, 0),
            (16, 6),
            (26, 12),
            (30, 22),
            (36, 13),
            (45, 19),
            (48, 24),
            (65, 29),
        ] {
            assert_eq!(landmarks.confidences[index], 0.75 + point as f32 / 256.0);
            let x = 10.0 + 112.0 / 56.0 * 55.0 * (point % 7) as f32 / 6.0;
            assert!((landmarks.points[index].x - x).abs() < 1e-3, "{index}");
        }
        assert!((score - (0.75 + 14.5 / 256.0)).abs() < 1e-6, "{score}");
    }

    #[test]
    fn a_few_bad_points_make_a_face_of_thirty_bad() {
        // Scores of three points, the others' is ¾, and the face's. The first point stands for two
        // landmarks, the 21st for one.
        for (scores, want) in [
            ([(0, 0.75), (6, 0.75), (9, 0.75)], 0.75),
            ([(6, 0.5), (9, 0.5), (12, 0.5)], 0.5),
            ([(6, 0.25), (9, 0.75), (12, 0.75)], 1.75 / 3.0),
            (
                [(6, 0.5), (9, 0.75), (12, 0.75)],
                (0.5 + 29.0 * 0.75) / 30.0,
            ),
            ([(0, 0.25), (6, 0.75), (9, 0.75)], 1.25 / 3.0),
        ] {
            let mut peaks = flat(&TINY);
            for (point, score) in scores {
                peaks[point].value = score;
            }
            let (_, score) = decode(&peaks, &TINY, &WINDOW).unwrap();
            assert!((score - want).abs() < 1e-6, "{scores:?}: {score}");
        }
    }

    #[test]
    fn scores_that_make_no_sense_are_no_face() {
        for (point, value) in [(0, f32::NAN), (65, f32::INFINITY), (7, f32::NEG_INFINITY)] {
            let mut peaks = flat(&LandmarkContract::FULL);
            peaks[point].value = value;
            assert_eq!(decode(&peaks, &LandmarkContract::FULL, &WINDOW), None);
        }
    }
}
