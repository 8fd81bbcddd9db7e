// SPDX-License-Identifier: MPL-2.0
//! MediaPipe's three networks, in the built-in runtime, against what LiteRT computed
//! (`golden/make_networks.py`), and with YuNet's against ONNX Runtime; and what becomes of damaged
//! files.

use crate::common::engine::installed_paths;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use facetrack::engine::opencv::yunet;
use facetrack::model::SessionOptions;
use facetrack::model::task::Bundle;
use facetrack::model::{Model, ModelError, Opener, RuntimeChoice};
use facetrack_graph::{Graph, tflite};
use ndarray::{ArrayD, ArrayView, IxDyn};

/// Largest difference from LiteRT: the detector's are logits and px of its 128×128 input, the
/// landmarks' px of the 256×256 input, the blendshapes' 0…1, the small networks' about 1.
const DETECTOR_TOLERANCE: f32 = 1e-4;
const LANDMARK_TOLERANCE: f32 = 2e-3;
const BLENDSHAPE_TOLERANCE: f32 = 1e-5;
const SMALL_TOLERANCE: f32 = 1e-5;

/// Largest difference between the runtimes, relative to the largest value of an output or to 1.
const RUNTIME_TOLERANCE: f32 = 1e-4;

/// Anchors below this score are never read.
const LEAST_SCORE: f32 = 0.1;

#[test]
fn detector_equals_litert_on_noise() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let image = noise(1, 128 * 128 * 3, -1.0, 1.0);
    let network = fixture.network(&fixture.bundle.face_detector);
    network.check("face_detector.random", &image, DETECTOR_TOLERANCE);
}

/// Far from faces the logits reach −1000, where f32 is coarser than the tolerance, in LiteRT as
/// here. So what is compared is what is read: scores, and the boxes of anchors with a score.
#[test]
fn detector_equals_litert_on_a_face() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let Some(face) = reference_face() else { return };
    let network = fixture.network(&fixture.bundle.face_detector);
    let score = |logit: &f32| 1.0 / (1.0 + (-logit.clamp(-100.0, 100.0)).exp());
    let scores = |logits: &[f32]| logits.iter().map(score).collect::<Vec<_>>();
    let read = |boxes: &[f32], scores: &[f32]| {
        let chosen = boxes
            .chunks(16)
            .zip(scores)
            .filter(|(_, s)| **s > LEAST_SCORE);
        chosen.flat_map(|(b, _)| b.to_vec()).collect::<Vec<_>>()
    };
    let [boxes, logits] = network.run(&halved(&face)).try_into().unwrap();
    let expected = floats(&golden("face_detector.face.classificators"));
    let expected = scores(&expected);
    compare("scores", &scores(&logits), &expected, DETECTOR_TOLERANCE);
    let expected_boxes = floats(&golden("face_detector.face.regressors"));
    let expected_boxes = read(&expected_boxes, &expected);
    assert!(
        expected_boxes.len() >= 16,
        "the recorded detector sees no face"
    );
    compare(
        "boxes",
        &read(&boxes, &expected),
        &expected_boxes,
        DETECTOR_TOLERANCE,
    );
}

#[test]
fn small_networks_equal_litert() {
    let inputs = [
        ("small_image", noise(11, 24 * 24 * 3, -1.0, 1.0)),
        ("small_tokens", noise(12, 10 * 2, 0.0, 640.0)),
    ];
    for (name, input) in inputs {
        let path = golden(name).with_extension("tflite");
        let network = Network::new(&path, &fs::read(&path).unwrap());
        network.check(&format!("{name}.random"), &input, SMALL_TOLERANCE);
    }
}

#[test]
fn a_missing_model_input_is_an_error() {
    let path = golden("small_tokens").with_extension("tflite");
    let network = Network::new(&path, &fs::read(&path).unwrap());
    let error = network.model.run(&[]).unwrap_err();
    assert!(matches!(error, ModelError::Run { .. }), "{error}");
}

#[test]
fn landmarks_equal_litert_on_noise() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let image = noise(2, 256 * 256 * 3, 0.0, 1.0);
    let network = fixture.network(&fixture.bundle.face_landmarks_detector);
    network.check("face_landmarks_detector.random", &image, LANDMARK_TOLERANCE);
}

#[test]
fn landmarks_equal_litert_on_a_face() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let Some(face) = reference_face() else { return };
    let network = fixture.network(&fixture.bundle.face_landmarks_detector);
    network.check("face_landmarks_detector.face", &face, LANDMARK_TOLERANCE);
}

#[test]
fn blendshapes_equal_litert_on_noise() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let points = noise(3, 146 * 2, 0.0, 640.0);
    let network = fixture.network(&fixture.bundle.face_blendshapes);
    network.check("face_blendshapes.random", &points, BLENDSHAPE_TOLERANCE);
}

#[test]
fn blendshapes_equal_litert_on_a_face() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let points = floats(&golden("face_blendshapes.face.input"));
    let network = fixture.network(&fixture.bundle.face_blendshapes);
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
    let network = fixture.network(&fixture.bundle.face_blendshapes);
    let wrong = ArrayD::zeros(IxDyn(&[1, 145, 2]));
    let error = network.model.run(&[wrong.view()]).unwrap_err();
    assert!(matches!(error, ModelError::Run { .. }), "{error}");
}

#[test]
fn truncated_networks_are_errors() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    for content in fixture.networks() {
        for length in (0..content.len()).step_by(content.len() / 97) {
            assert!(tflite::read(&content[..length]).is_err(), "{length} bytes");
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
            // The result may be a network or not, depending on the bits. Reading must only end.
            let _ = tflite::read(&damaged);
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
fn an_error_names_the_file_and_its_part() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let loose = Bundle::part_path(folder.path(), "a.tflite");
    assert_eq!(loose, folder.path().join("a.tflite"));
    let part = Bundle::part_path(Path::new("folder/a.task"), "a.tflite");
    let content = &fixture.bundle.face_blendshapes;
    let failed = Network::new(&part, content).model.run(&[]);
    let message = failed.unwrap_err().to_string();
    assert!(message.contains("folder/a.task (a.tflite)"), "{message}");
}

#[test]
fn what_is_no_regular_file_or_too_large_is_not_read() {
    let device = Bundle::open(Path::new("/dev/null")).unwrap_err();
    assert!(matches!(device, ModelError::Read { .. }), "{device}");
    assert!(device.to_string().contains("regular file"), "{device}");
    let large = tempfile::NamedTempFile::new().unwrap();
    large.as_file().set_len((64 << 20) + 1).unwrap();
    let large = Bundle::open(large.path()).unwrap_err().to_string();
    assert!(large.contains("larger than 67108864 bytes"), "{large}");
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

/// The bundle that this machine has.
struct Fixture {
    path: PathBuf,
    bundle: Bundle,
}

impl Fixture {
    fn load() -> Option<Self> {
        let path = installed("face_landmarker.task", "mediapipe")?;
        Some(Self {
            bundle: Bundle::open(&path).unwrap(),
            path,
        })
    }

    fn networks(&self) -> [&[u8]; 3] {
        [
            &self.bundle.face_detector,
            &self.bundle.face_landmarks_detector,
            &self.bundle.face_blendshapes,
        ]
    }

    fn network(&self, content: &[u8]) -> Network {
        Network::new(&self.path, content)
    }
}

fn installed(file: &str, family: &str) -> Option<PathBuf> {
    let path = installed_paths().model(file, family, None);
    path.inspect_err(|error| eprintln!("SKIPPED: {error}")).ok()
}

/// The network that `read` makes of `bytes`, in the runtime of `choice`.
fn open(
    choice: RuntimeChoice,
    bytes: &[u8],
    read: impl Fn() -> Result<Graph, ModelError>,
) -> Result<Box<dyn Model>, ModelError> {
    let paths = installed_paths();
    let opener = Opener::new(&paths, choice);
    opener.open(Path::new("a.model"), bytes, read, SessionOptions::default())
}

/// Compares the outputs of both runtimes, and of several threads, for an input of this shape.
fn compare_runtimes(
    name: &str,
    bytes: &[u8],
    read: impl Fn() -> Result<Graph, ModelError>,
    shape: &[usize],
    [low, high]: [f64; 2],
) {
    let own = open(RuntimeChoice::BuiltIn, bytes, &read).unwrap();
    let onnxruntime = match open(RuntimeChoice::OnnxRuntime, bytes, &read) {
        Err(error @ ModelError::Runtime { .. }) => return eprintln!("SKIPPED: {error}"),
        opened => opened.unwrap(),
    };
    let input = noise(4, shape.iter().product(), low, high);
    let input = ArrayView::from_shape(IxDyn(shape), &input).unwrap();
    let [own, expected] = [own, onnxruntime].map(|model| model.run(&[input.view()]).unwrap());
    let network = facetrack_net::Network::new(&read().unwrap()).unwrap();
    for threads in [2, 3] {
        let spawn = |work: Box<dyn FnOnce() + Send>| drop(thread::spawn(work));
        let divided = network.run_on(&[input.view()], threads, &spawn).unwrap();
        assert!(divided == own, "{name}: {threads} threads");
    }
    for (index, (own, expected)) in own.iter().zip(&expected).enumerate() {
        assert_eq!(own.shape(), expected.shape(), "{name}");
        let largest = expected.iter().fold(1.0, |a: f32, b| a.max(b.abs()));
        let [own, expected] = [own, expected].map(|values| values.as_slice().unwrap());
        let tolerance = RUNTIME_TOLERANCE * largest;
        compare(&format!("{name}, output {index}"), own, expected, tolerance);
    }
}

#[test]
fn mediapipe_is_the_same_in_both_runtimes() {
    let Some(fixture) = Fixture::load() else {
        return;
    };
    let inputs: [(&str, &[usize], [f64; 2]); 3] = [
        ("detector", &[1, 3, 128, 128], [-1.0, 1.0]),
        ("landmarks", &[1, 3, 256, 256], [0.0, 1.0]),
        ("blendshapes", &[1, 146, 2], [0.0, 640.0]),
    ];
    for (bytes, (name, shape, range)) in fixture.networks().into_iter().zip(inputs) {
        let read = || Ok(tflite::read(bytes).unwrap());
        compare_runtimes(name, bytes, read, shape, range);
    }
}

#[test]
fn yunet_is_the_same_in_both_runtimes() {
    let Some(path) = installed("face_detection_yunet_2023mar.onnx", "yunet") else {
        return;
    };
    let bytes = fs::read(&path).unwrap();
    for (height, width) in [(32, 32), (96, 32), (64, 160), (384, 640)] {
        let read = || yunet::rewrite(&path, bytes.clone());
        let name = format!("YuNet {width}×{height}");
        compare_runtimes(&name, &bytes, read, &[1, 3, height, width], [0.0, 255.0]);
    }
}

#[test]
fn insightface_is_the_same_in_both_runtimes() {
    let networks: [(&str, [usize; 4]); 4] = [
        ("scrfd_500m_bnkps.onnx", [1, 3, 96, 160]),
        ("2d106det.onnx", [2, 3, 192, 192]),
        ("genderage.onnx", [2, 3, 96, 96]),
        ("w600k_mbf.onnx", [2, 3, 112, 112]),
    ];
    for (file, shape) in networks {
        let Some(path) = installed(file, "insightface") else {
            continue;
        };
        let bytes = fs::read(&path).unwrap();
        let read = || Ok(Graph::read(bytes.clone()).unwrap());
        compare_runtimes(file, &bytes, read, &shape, [-1.0, 1.0]);
    }
}

/// A network with an operator that only ONNX Runtime supports.
fn with_erf() -> Graph {
    let mut graph = Graph::new(17);
    let input = graph.add_input("in", &[1, 4, 8, 8]);
    let output = graph.add_elementwise("Erf", &[input]);
    graph.add_output("out", output);
    graph
}

#[test]
fn an_operator_that_is_not_supported_is_named() {
    let bytes = b"with_erf";
    let error = open(RuntimeChoice::BuiltIn, bytes, || Ok(with_erf())).err();
    let error = error.unwrap().to_string();
    for part in ["a.model", "Erf"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    let paths = installed_paths();
    let opener = Opener::new(&paths, RuntimeChoice::Auto);
    let (path, options) = (Path::new("a.model"), SessionOptions::default());
    match opener.open(path, bytes, || Ok(with_erf()), options) {
        Err(error @ ModelError::Runtime { .. }) => return eprintln!("SKIPPED: {error}"),
        model => drop(model.unwrap()),
    }
    let runtimes = opener.into_runtimes();
    assert_eq!(runtimes.names().collect::<Vec<_>>(), ["onnxruntime"]);
    let [fallback] = &runtimes.fallbacks[..] else {
        panic!("{runtimes:?}");
    };
    assert!(
        fallback.starts_with("a.model: ") && fallback.contains("Erf"),
        "{fallback}"
    );
}

struct Network {
    model: Box<dyn Model>,
}

impl Network {
    fn new(path: &Path, content: &[u8]) -> Self {
        let paths = installed_paths();
        let opener = Opener::new(&paths, RuntimeChoice::BuiltIn);
        let read = || Ok(tflite::read(content).unwrap());
        let model = opener.open(path, content, read, SessionOptions::default());
        Self {
            model: model.unwrap(),
        }
    }

    /// The outputs on `input`, channels last.
    fn run(&self, input: &[f32]) -> Vec<Vec<f32>> {
        let shape = &self.model.inputs()[0].shape;
        let shape: Vec<usize> = shape.iter().map(|n| n.unwrap()).collect();
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
        outputs
            .into_iter()
            .map(|o| o.into_raw_vec_and_offset().0)
            .collect()
    }

    /// Compares every output on `input` (channels last) with the recorded one.
    fn check(&self, recorded: &str, input: &[f32], tolerance: f32) {
        let outputs = self.run(input);
        for (spec, output) in self.model.outputs().iter().zip(&outputs) {
            let name = spec.name.split(':').next().unwrap();
            let name = format!("{recorded}.{name}");
            compare(&name, output, &floats(&golden(&name)), tolerance);
        }
    }
}

fn compare(name: &str, values: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(values.len(), expected.len(), "{name}");
    let differences = values.iter().zip(expected).map(|(a, b)| (a - b).abs());
    // NaN must not pass.
    let worst = differences.fold(0.0, |a: f32, b| if b <= a { a } else { b });
    println!("{name}: largest difference {worst:.2e}, allowed {tolerance:.0e}");
    assert!(worst <= tolerance, "{name}: {worst} > {tolerance}");
}

fn golden(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/networks");
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

/// Input of the landmark network, 256×256×3 in 0…1, used to record the outputs.
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
