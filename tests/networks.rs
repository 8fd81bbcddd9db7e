// SPDX-License-Identifier: MPL-2.0
//! MediaPipe's three networks, lowered and run by ONNX Runtime, against what LiteRT computed
//! (`golden/make_networks.py`); and what becomes of damaged files.
#![cfg(feature = "onnx")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use gstfacetrack::face::locate;
use gstfacetrack::face::model::onnx::{OnnxModel, OnnxRuntime, SessionOptions};
use gstfacetrack::face::model::task::Bundle;
use gstfacetrack::face::model::{Model, ModelError, tflite};
use ndarray::{ArrayD, ArrayView, IxDyn};

/// Largest difference from LiteRT: the detector's are logits and 128ths of a side, the landmarks' px of the 256×256
/// input, the blendshapes' 0…1.
const DETECTOR_TOLERANCE: f32 = 1e-4;
const LANDMARK_TOLERANCE: f32 = 2e-3;
const BLENDSHAPE_TOLERANCE: f32 = 1e-5;

#[test]
fn detector_equals_litert_on_noise() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let image = noise(1, 128 * 128 * 3, -1.0, 1.0);
    let mut network = fixture.network(&fixture.bundle.face_detector);
    network.check("face_detector.random", &image, DETECTOR_TOLERANCE);
}

#[test]
fn detector_equals_litert_on_a_face() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let Some(face) = reference_face() else { return };
    let mut network = fixture.network(&fixture.bundle.face_detector);
    network.check("face_detector.face", &halved(&face), DETECTOR_TOLERANCE);
}

#[test]
fn landmarks_equal_litert_on_noise() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let image = noise(2, 256 * 256 * 3, 0.0, 1.0);
    let mut network = fixture.network(&fixture.bundle.face_landmarks_detector);
    network.check("face_landmarks_detector.random", &image, LANDMARK_TOLERANCE);
}

#[test]
fn landmarks_equal_litert_on_a_face() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let Some(face) = reference_face() else { return };
    let mut network = fixture.network(&fixture.bundle.face_landmarks_detector);
    network.check("face_landmarks_detector.face", &face, LANDMARK_TOLERANCE);
}

#[test]
fn blendshapes_equal_litert_on_noise() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let points = noise(3, 146 * 2, 0.0, 640.0);
    let mut network = fixture.network(&fixture.bundle.face_blendshapes);
    network.check("face_blendshapes.random", &points, BLENDSHAPE_TOLERANCE);
}

#[test]
fn blendshapes_equal_litert_on_a_face() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let points = floats(&golden("face_blendshapes.face.input"));
    let mut network = fixture.network(&fixture.bundle.face_blendshapes);
    network.check("face_blendshapes.face", &points, BLENDSHAPE_TOLERANCE);
}

#[test]
fn images_are_declared_channels_first_and_names_stay() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let network = fixture.network(&fixture.bundle.face_landmarks_detector);
    let input = &network.model.inputs()[0];
    assert_eq!(input.name, "input_12");
    assert_eq!(input.shape, [1, 3, 256, 256].map(Some));
    let outputs = network.model.outputs();
    assert_eq!(outputs[0].name, "Identity");
    assert_eq!(outputs[0].shape, [1, 1, 1, 1434].map(Some));
}

#[test]
fn a_run_with_a_wrong_shape_is_an_error() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let mut network = fixture.network(&fixture.bundle.face_blendshapes);
    let wrong = ArrayD::zeros(IxDyn(&[1, 145, 2]));
    let error = network.model.run(&[wrong.view()]).unwrap_err();
    assert!(matches!(error, ModelError::Run { .. }), "{error}");
}

#[test]
fn a_second_runtime_is_not_loaded() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let again = OnnxRuntime::load(&["/nowhere/libonnxruntime.so".into()]).unwrap();
    assert_eq!(again.path(), fixture.runtime.path());
}

#[test]
fn truncated_networks_are_errors() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    for content in fixture.networks() {
        for length in (0..content.len()).step_by(content.len() / 97) {
            let error = tflite::load(Path::new("cut.tflite"), &content[..length]).unwrap_err();
            let message = error.to_string();
            assert!(
                message.contains("cut.tflite is not a valid TFLite"),
                "{message}"
            );
        }
    }
}

#[test]
fn damaged_networks_do_not_panic() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    for content in fixture.networks() {
        let mut state = 7;
        for _ in 0..200 {
            let mut damaged = content.to_vec();
            for _ in 0..8 {
                // Structure lies at both ends, weights in the middle.
                let near_end = next(&mut state) as usize % 20_000;
                let position = match next(&mut state) % 2 {
                    0 => near_end,
                    _ => damaged.len() - 1 - near_end,
                };
                damaged[position] ^= 1 << (next(&mut state) % 8);
            }
            // Whether it still is a network depends on the bits; it must only come to an end.
            let _ = tflite::load(Path::new("damaged.tflite"), &damaged);
        }
    }
}

#[test]
fn truncated_and_foreign_bundles_are_errors() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let path = Path::new("a.task");
    let content = fs::read(&fixture.path).unwrap();
    for length in (0..content.len()).step_by(content.len() / 23) {
        let error = Bundle::from_bytes(path, &content[..length]).unwrap_err();
        assert!(error.to_string().contains("a.task"), "{error}");
    }
    let foreign = Bundle::from_bytes(path, &fixture.bundle.face_detector).unwrap_err();
    assert!(matches!(foreign, ModelError::Format { .. }), "{foreign}");
}

#[test]
fn a_folder_of_loose_networks_is_a_bundle() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let parts = [
        ("face_detector", &fixture.bundle.face_detector),
        (
            "face_landmarks_detector",
            &fixture.bundle.face_landmarks_detector,
        ),
        ("face_blendshapes", &fixture.bundle.face_blendshapes),
    ];
    for (name, content) in parts {
        let error = Bundle::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("{name}.tflite")), "{error}");
        fs::write(folder.path().join(name).with_extension("tflite"), content).unwrap();
    }
    let bundle = Bundle::open(folder.path()).unwrap();
    assert_eq!(bundle.face_detector, fixture.bundle.face_detector);
    assert_eq!(bundle.geometry_metadata, None);
    assert_eq!(bundle.files.len(), 3);
}

/// The bundle and the runtime that this machine has.
struct Fixture {
    path: PathBuf,
    bundle: Bundle,
    runtime: OnnxRuntime,
}

impl Fixture {
    fn load() -> Option<Self> {
        let path = locate::model("face_landmarker.task", "mediapipe", None, None);
        let loaded = path.and_then(|path| {
            let runtime = OnnxRuntime::load(&locate::runtime(None))?;
            let bundle = Bundle::open(&path)?;
            Ok(Self {
                path,
                bundle,
                runtime,
            })
        });
        loaded
            .inspect_err(|error| eprintln!("SKIPPED: {error}"))
            .ok()
    }

    fn networks(&self) -> [&[u8]; 3] {
        [
            &self.bundle.face_detector,
            &self.bundle.face_landmarks_detector,
            &self.bundle.face_blendshapes,
        ]
    }

    fn network(&self, content: &[u8]) -> Network {
        let onnx = tflite::load(&self.path, content).unwrap();
        let options = SessionOptions::default();
        Network {
            model: OnnxModel::from_bytes(&self.runtime, "test", &onnx, options).unwrap(),
        }
    }
}

struct Network {
    model: OnnxModel,
}

impl Network {
    /// Compares every output on `input` (channels last) with the recorded one.
    fn check(&mut self, recorded: &str, input: &[f32], tolerance: f32) {
        let shape: Vec<usize> = self.model.inputs()[0]
            .shape
            .iter()
            .map(|n| n.unwrap())
            .collect();
        let input = match shape[..] {
            [1, channels, height, width] => {
                ArrayView::from_shape((1, height, width, channels), input)
                    .unwrap()
                    .permuted_axes([0, 3, 1, 2])
                    .as_standard_layout()
                    .into_owned()
                    .into_dyn()
            }
            _ => ArrayView::from_shape(IxDyn(&shape), input)
                .unwrap()
                .into_owned(),
        };
        let outputs = self.model.run(&[input.view()]).unwrap();
        assert_eq!(outputs.len(), self.model.outputs().len());
        for (spec, output) in self.model.outputs().iter().zip(&outputs) {
            let name = spec.name.split(':').next().unwrap();
            let expected = floats(&golden(&format!("{recorded}.{name}")));
            assert_eq!(output.len(), expected.len(), "{recorded} {name}");
            let worst = output
                .iter()
                .zip(&expected)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            println!("{recorded} {name}: largest difference {worst:.2e}, allowed {tolerance:.0e}");
            assert!(
                worst <= tolerance,
                "{recorded} {name}: {worst} > {tolerance}"
            );
        }
    }
}

fn golden(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/networks");
    folder.join(format!("{name}.bin"))
}

fn floats(path: &Path) -> Vec<f32> {
    let content = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (chunks, _) = content.as_chunks();
    chunks
        .iter()
        .map(|chunk| f32::from_le_bytes(*chunk))
        .collect()
}

/// A face as the landmark network takes it, 256×256×3 in 0…1, of which the recorded outputs were made.
fn reference_face() -> Option<Vec<f32>> {
    let Some(folder) = env::var_os("FACETRACK_REFERENCE_DIR") else {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
        return None;
    };
    let name = "mp_tensors/face_landmark_tflite_input_tensor0.bin";
    Some(floats(&Path::new(&folder).join(name)))
}

/// The detector's input: half the size, −1…1.
fn halved(face: &[f32]) -> Vec<f32> {
    let at = |y: usize, x: usize, c: usize| f64::from(face[(y * 256 + x) * 3 + c]);
    let mut small = Vec::with_capacity(128 * 128 * 3);
    for (y, x) in (0..128).flat_map(|y| (0..128).map(move |x| (2 * y, 2 * x))) {
        for c in 0..3 {
            let sum = at(y, x, c) + at(y, x + 1, c) + at(y + 1, x, c) + at(y + 1, x + 1, c);
            small.push((sum / 4.0 * 2.0 - 1.0) as f32);
        }
    }
    small
}

/// The generator's `random`.
fn noise(seed: u32, count: usize, low: f64, high: f64) -> Vec<f32> {
    let mut state = seed;
    let mut value = || {
        let unit = f64::from(next(&mut state)) / f64::from(1 << 24);
        (low + (high - low) * unit) as f32
    };
    (0..count).map(|_| value()).collect()
}

/// 24 bits of a linear congruential generator (Numerical Recipes' constants).
fn next(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 8
}
