// SPDX-License-Identifier: MPL-2.0
//! The three networks, ready to run.

use std::path::PathBuf;

use super::peaks::{GROUPS, Peaks};
use crate::engine::network::{Contract, Network};
use crate::engine::{EngineError, ModelRole};
use crate::model::Model;

/// Shape of the detector's input.
const DETECTOR_INPUT: [usize; 4] = [1, 3, 224, 224];

/// Shape of either output of the detector.
const DETECTOR_OUTPUT: [usize; 4] = [1, 2, 56, 56];

/// Shape of the gaze network's input.
const GAZE_INPUT: [usize; 4] = [2, 3, 32, 32];

/// Shape of the gaze network's output. Its other output, which distinguishes open from closed eyes,
/// is not used.
const GAZE_OUTPUT: [usize; 4] = [2, 3, 8, 8];

/// Name of a landmark network, for messages.
const LANDMARK_NAME: &str = "OpenSeeFace's landmarks";

/// Sizes of a landmark network. They distinguish OpenSeeFace's models.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LandmarkContract {
    /// Width and height of the input, px.
    pub input: usize,
    /// Rows and columns of a heat map.
    pub cells: usize,
    /// Number of heat maps. The same numbers of maps of row offsets and of column offsets follow.
    pub points: usize,
    /// Divisor of the offsets' logits: `logit_factor` in `tracker.py`.
    pub logit_factor: f32,
}

impl LandmarkContract {
    /// The models 0…4: `[b, 3, 224, 224]` to `[b, 198, 28, 28]`.
    pub const FULL: Self = Self {
        input: 224,
        cells: 28,
        points: 66,
        logit_factor: 16.0,
    };

    /// The models -2 and -3: `[b, 3, 112, 112]` to `[b, 198, 14, 14]`.
    pub const SMALL: Self = Self {
        input: 112,
        cells: 14,
        ..Self::FULL
    };

    /// The model -1: `[b, 3, 56, 56]` to `[b, 90, 7, 7]`.
    pub const TINY: Self = Self {
        input: 56,
        cells: 7,
        points: 30,
        logit_factor: 8.0,
    };

    /// Sizes of all models.
    pub const ALL: [Self; 3] = [Self::FULL, Self::SMALL, Self::TINY];

    /// Tensors of all landmark networks, for messages.
    pub(super) fn expected() -> String {
        let all = Self::ALL.map(|c| format!("{:?} to {:?}", c.input_shape(), c.map_shape()));
        format!("{LANDMARK_NAME} ({})", all.join(", or "))
    }

    /// Shape of the input.
    pub(super) fn input_shape(&self) -> [usize; 4] {
        [1, 3, self.input, self.input]
    }

    /// Tensors of the network that [`rewrite`](super::rewrite) makes of a file.
    pub(super) fn tensors(&self) -> Contract {
        Contract {
            name: LANDMARK_NAME,
            input: self.input_shape().to_vec(),
            outputs: vec![self.map_shape().iter().product()],
        }
    }

    /// Shape of the output that a file has.
    pub(super) fn map_shape(&self) -> [usize; 4] {
        [1, GROUPS * self.points, self.cells, self.cells]
    }
}

/// The networks.
pub struct Networks {
    /// `[1, 3, 224, 224]` to `[1, 2, 56, 56]`, heat map and radii, and `[1, 2, 56, 56]`, the
    /// maximum of the heat map and of the radii around each cell.
    pub detector: Network,
    /// `[1, 3, input, input]` to `[1, cells, cells, 3 · points]`, with the sizes of its contract.
    pub landmarks: Network,
    /// Finds the peaks in what `landmarks` yields.
    pub peaks: Peaks,
    /// `[2, 3, 32, 32]`, right eye and left eye, to `[2, 3, 8, 8]`: heat map, offsets. `None`
    /// without gaze.
    pub gaze: Option<Network>,
}

/// A network, and the file that it was read from.
pub struct Opened {
    /// The network.
    pub model: Box<dyn Model>,
    /// File, for messages.
    pub path: PathBuf,
}

impl Networks {
    /// Checks the networks and runs each once.
    ///
    /// # Errors
    /// Returns [`EngineError::Part`] with
    /// [`ModelError::Tensors`](crate::model::ModelError::Tensors) if one has other tensors, with
    /// [`ModelError::Run`](crate::model::ModelError::Run) if one does not run.
    pub fn new(
        detector: Opened,
        (landmarks, peaks): (Opened, Peaks),
        gaze: Option<Opened>,
    ) -> Result<Self, EngineError> {
        let check = |Opened { model, path }, contract, role| {
            Network::checked(model, &path, contract).map_err(|error| error.of(role))
        };
        let check_gaze = |gaze| check(gaze, gaze_contract(), ModelRole::Gaze);
        Ok(Self {
            landmarks: check(landmarks, peaks.contract.tensors(), ModelRole::Landmarks)?,
            detector: check(detector, detector_contract(), ModelRole::Detector)?,
            peaks,
            gaze: gaze.map(check_gaze).transpose()?,
        })
    }
}

pub(super) fn detector_contract() -> Contract {
    Contract {
        name: "OpenSeeFace's detector",
        input: DETECTOR_INPUT.to_vec(),
        outputs: vec![DETECTOR_OUTPUT.iter().product(); 2],
    }
}

pub(super) fn gaze_contract() -> Contract {
    Contract {
        name: "OpenSeeFace's gaze",
        input: GAZE_INPUT.to_vec(),
        outputs: vec![GAZE_OUTPUT.iter().product()],
    }
}

#[cfg(test)]
mod tests;
