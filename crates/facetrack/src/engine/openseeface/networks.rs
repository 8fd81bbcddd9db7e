// SPDX-License-Identifier: MPL-2.0
//! The three networks, ready to run.

use std::path::PathBuf;

use ndarray::{ArrayD, IxDyn};

use crate::engine::{EngineError, ModelRole};
use crate::model::{Model, ModelError};

/// Shape of the detector's input.
const DETECTOR_INPUT: [usize; 4] = [1, 3, 224, 224];

/// Shape of either output of the detector.
const DETECTOR_OUTPUT: [usize; 4] = [1, 2, 56, 56];

/// Shape of the gaze network's input.
const GAZE_INPUT: [usize; 4] = [2, 3, 32, 32];

/// Shape of the gaze network's output; another one, which tells open eyes from closed ones, is read by nobody.
const GAZE_OUTPUT: [usize; 4] = [2, 3, 8, 8];

/// What a landmark network is, for messages.
const LANDMARK_NAME: &str = "OpenSeeFace's landmarks";

/// What is said of a peak: see [`Networks::landmarks`].
pub const PEAK_VALUES: usize = 4;

/// Sizes of a landmark network, which tell the models of OpenSeeFace apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LandmarkContract {
    /// Width and height of the input, px.
    pub input: usize,
    /// Rows and columns of a heat map.
    pub cells: usize,
    /// Heat maps; as many maps of row offsets and of column offsets follow.
    pub points: usize,
    /// What the logits of the offsets are divided by: `logit_factor` in `tracker.py`.
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
        points: 66,
        logit_factor: 16.0,
    };

    /// The model -1: `[b, 3, 56, 56]` to `[b, 90, 7, 7]`.
    pub const TINY: Self = Self {
        input: 56,
        cells: 7,
        points: 30,
        logit_factor: 8.0,
    };

    /// Every model's.
    pub const ALL: [Self; 3] = [Self::FULL, Self::SMALL, Self::TINY];

    /// That of the network `model`, by the shape of its input.
    fn of(model: &dyn Model) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|contract| takes(model, &contract.input_shape()))
    }

    /// What a landmark network has to be, for messages.
    pub(super) fn expected() -> String {
        let all = Self::ALL
            .map(|contract| format!("{:?} to {:?}", contract.input_shape(), contract.map_shape()));
        format!("{LANDMARK_NAME} ({})", all.join(", or "))
    }

    /// Shape of the input.
    pub(super) fn input_shape(&self) -> [usize; 4] {
        [1, 3, self.input, self.input]
    }

    /// Shape of the output that a file has.
    pub(super) fn map_shape(&self) -> [usize; 4] {
        [1, 3 * self.points, self.cells, self.cells]
    }
}

/// The networks.
pub struct Networks {
    /// `[1, 3, 224, 224]` to `[1, 2, 56, 56]`, heat map and radii, and `[1, 2, 56, 56]`, the greatest values around.
    pub detector: Box<dyn Model>,
    /// `[1, 3, input, input]` to `[`[`PEAK_VALUES`]`, points]`, sizes as in `contract`: of each heat map the greatest value
    /// and the first cell, counted along rows, that has it; the elements of the maps of row offsets and of column offsets
    /// there.
    pub landmarks: Box<dyn Model>,
    /// Sizes of `landmarks`.
    pub contract: LandmarkContract,
    /// `[2, 3, 32, 32]`, right eye and left eye, to `[2, 3, 8, 8]`: heat map, offsets. `None` without gaze.
    pub gaze: Option<Box<dyn Model>>,
}

/// A network, and the file that it was read from.
pub struct Opened {
    /// The network.
    pub model: Box<dyn Model>,
    /// Where it comes from, for messages.
    pub path: PathBuf,
}

impl Networks {
    /// The networks, each of which is run once, so that one that can't run is found out here and the first frame is as
    /// fast as the others.
    ///
    /// # Errors
    /// [`EngineError::Part`] with [`ModelError::Tensors`] when one has other tensors, with [`ModelError::Run`] when one does
    /// not run.
    pub fn new(
        detector: Opened,
        landmarks: Opened,
        gaze: Option<Opened>,
    ) -> Result<Self, EngineError> {
        let (landmarks, contract) =
            check_landmarks(landmarks).map_err(|error| error.of(ModelRole::Landmarks))?;
        Ok(Self {
            detector: check_detector(detector).map_err(|error| error.of(ModelRole::Detector))?,
            landmarks,
            contract,
            gaze: gaze
                .map(check_gaze)
                .transpose()
                .map_err(|error| error.of(ModelRole::Gaze))?,
        })
    }
}

fn check_detector(mut opened: Opened) -> Result<Box<dyn Model>, ModelError> {
    opened.check(
        "OpenSeeFace's detector",
        DETECTOR_INPUT,
        &[&DETECTOR_OUTPUT, &DETECTOR_OUTPUT],
    )?;
    Ok(opened.model)
}

fn check_landmarks(mut opened: Opened) -> Result<(Box<dyn Model>, LandmarkContract), ModelError> {
    let Some(contract) = LandmarkContract::of(&*opened.model) else {
        return Err(opened.mismatch(LandmarkContract::expected()));
    };
    let output = [PEAK_VALUES, contract.points];
    opened.check(LANDMARK_NAME, contract.input_shape(), &[&output])?;
    Ok((opened.model, contract))
}

fn check_gaze(mut opened: Opened) -> Result<Box<dyn Model>, ModelError> {
    opened.check("OpenSeeFace's gaze", GAZE_INPUT, &[&GAZE_OUTPUT])?;
    Ok(opened.model)
}

impl Opened {
    /// Checks that the network takes the shape `input` and yields those of `outputs` first, by running it on zeros.
    fn check(
        &mut self,
        name: &str,
        input: [usize; 4],
        outputs: &[&[usize]],
    ) -> Result<(), ModelError> {
        let expected = || format!("{name} ({input:?} to {outputs:?})");
        if !takes(&*self.model, &input) {
            return Err(self.mismatch(expected()));
        }
        let zeros = ArrayD::zeros(IxDyn(&input));
        let yielded = self.model.run(&[zeros.view()])?;
        let shapes: Vec<&[usize]> = yielded.iter().map(ArrayD::shape).collect();
        let is_expected =
            shapes.len() >= outputs.len() && shapes.iter().zip(outputs).all(|(a, b)| a == b);
        if !is_expected {
            return Err(self.mismatch(expected()));
        }
        Ok(())
    }

    fn mismatch(&self, expected: String) -> ModelError {
        ModelError::Tensors {
            path: self.path.clone(),
            expected,
            actual: format!("{:?} to {:?}", self.model.inputs(), self.model.outputs()),
        }
    }
}

/// Whether the only input of `model` can have the shape `wanted`.
fn takes(model: &dyn Model, wanted: &[usize]) -> bool {
    matches!(model.inputs(), [input] if input.takes(wanted))
}

#[cfg(test)]
mod tests;
