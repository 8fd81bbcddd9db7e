// SPDX-License-Identifier: MPL-2.0

use ndarray::{ArrayD, ArrayViewD, IxDyn};

use super::*;
use crate::model::{ModelError, TensorSpec};

/// Yields zeros of the shapes it is told.
struct Fake {
    inputs: Vec<TensorSpec>,
    outputs: Vec<Vec<usize>>,
}

impl Model for Fake {
    fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    fn outputs(&self) -> &[TensorSpec] {
        &[]
    }

    fn run(&self, _: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        let zeros = |shape: &Vec<usize>| ArrayD::zeros(IxDyn(shape));
        Ok(self.outputs.iter().map(zeros).collect())
    }
}

/// A network that takes any batch of images `side` wide and high.
fn fake(side: usize, outputs: &[&[usize]]) -> Opened {
    let shape = vec![None, Some(3), Some(side), Some(side)];
    Opened {
        model: Box::new(Fake {
            inputs: vec![TensorSpec {
                name: "input".to_owned(),
                shape,
            }],
            outputs: outputs.iter().map(|shape| shape.to_vec()).collect(),
        }),
        path: "/models/a.onnx".into(),
    }
}

fn detector() -> Opened {
    fake(224, &[&DETECTOR_OUTPUT, &DETECTOR_OUTPUT])
}

/// Shape of what the landmark network yields.
const CELLS: [usize; 4] = [1, 28, 28, 3 * 66];

fn landmarks() -> (Opened, Peaks) {
    of_landmarks(fake(224, &[&CELLS]))
}

fn of_landmarks(opened: Opened) -> (Opened, Peaks) {
    (opened, Peaks::of_maps(LandmarkContract::FULL))
}

/// The role of the network with other tensors, and the error.
fn refused(networks: Result<Networks, EngineError>) -> (ModelRole, String) {
    match networks {
        Err(EngineError::Part {
            role,
            source: source @ ModelError::Tensors { .. },
        }) => (role, source.to_string()),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was taken"),
    }
}

#[test]
fn landmark_networks_with_other_tensors_are_refused() {
    let cases = [
        fake(225, &[&CELLS]),
        fake(224, &[&[1, 28, 28, 90]]),
        fake(56, &[&CELLS]),
        fake(224, &[]),
        fake(224, &[&DETECTOR_OUTPUT, &DETECTOR_OUTPUT]),
    ];
    for opened in cases {
        let networks = Networks::new(detector(), of_landmarks(opened), None);
        let (role, error) = refused(networks);
        assert_eq!(role, ModelRole::Landmarks);
        assert!(error.contains("/models/a.onnx"), "{error}");
    }
}

#[test]
fn networks_without_a_single_input_are_refused() {
    for count in [0, 2] {
        let mut other = fake(224, &[]);
        let input = other.model.inputs()[0].clone();
        other.model = Box::new(Fake {
            inputs: vec![input; count],
            outputs: vec![CELLS.to_vec()],
        });
        refused(Networks::new(detector(), of_landmarks(other), None));
    }
}

#[test]
fn detectors_with_other_tensors_are_refused() {
    for detector in [landmarks().0, fake(224, &[&DETECTOR_OUTPUT])] {
        let (role, _) = refused(Networks::new(detector, landmarks(), None));
        assert_eq!(role, ModelRole::Detector);
    }
}

#[test]
fn gaze_networks_with_other_tensors_are_refused() {
    let gaze = Some(fake(32, &[&GAZE_OUTPUT]));
    let networks = Networks::new(detector(), landmarks(), gaze).unwrap();
    assert!(networks.gaze.is_some());
    for gaze in [detector(), fake(32, &[&[1, 3, 8, 8]])] {
        let (role, _) = refused(Networks::new(detector(), landmarks(), Some(gaze)));
        assert_eq!(role, ModelRole::Gaze);
    }
}
