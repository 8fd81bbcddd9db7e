// SPDX-License-Identifier: MPL-2.0
//! OpenSeeFace's networks, rewritten, against what the published ones yield
//! (`golden/make_openseeface_networks.py`), and small ones like them
//! (`golden/make_small_openseeface.py`); what becomes of damaged files and of other ones.

use crate::common::drawn;
use crate::common::engine::{installed_paths, load};

use std::fs;
use std::path::{Path, PathBuf};

use drawn::{Face, draw};
use facetrack::engine::openseeface::{Peaks, rewrite};
use facetrack::engine::{EngineConfig, EngineError, EngineKind, ModelRole, openseeface};
use facetrack::model::SessionOptions;
use facetrack::model::{Model, ModelError, Opener, RuntimeChoice};
use facetrack_graph::Graph;
use ndarray::{Array4, ArrayD, Axis, Ix4, concatenate};
use serde::Deserialize;

/// Largest difference from the published networks, a few times what was measured. All outputs are
/// about 1, cells of peaks aside, which are equal.
const TOLERANCE: f32 = 2e-5;

/// Values of a peak that were recorded.
const PEAK_VALUES: usize = 4;

/// Points of the landmark network.
const POINTS: usize = 66;

const RUNTIMES: [RuntimeChoice; 2] = [RuntimeChoice::BuiltIn, RuntimeChoice::OnnxRuntime];

type Rewrite = fn(&Path, Vec<u8>) -> Result<Graph, ModelError>;

/// The networks: name of the file, name of what was recorded, the rewriting.
const NETWORKS: [(&str, &str, Rewrite); 3] = [
    ("mnv3_detection_opt.onnx", "detector", rewrite::detector),
    ("lm_model0_opt.onnx", "landmarks", |path, bytes| {
        Ok(rewrite::landmarks(path, bytes)?.0)
    }),
    ("mnv3_gaze32_split_opt.onnx", "gaze", rewrite::gaze),
];

#[derive(Deserialize)]
struct Pictures {
    detector: Vec<Picture>,
    landmarks: Vec<Picture>,
    gaze: Vec<Picture>,
}

#[derive(Deserialize)]
struct Picture {
    width: usize,
    height: usize,
    faces: Vec<Face>,
}

impl Picture {
    /// The image as the networks' input: `mean` and `std` in `tracker.py`.
    fn tensor(&self) -> Array4<f32> {
        let pixels = draw(self.width, self.height, &self.faces);
        let (mean, deviation) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
        Array4::from_shape_fn([1, 3, self.height, self.width], |(_, c, y, x)| {
            let value = f64::from(pixels[(y * self.width + x) * 3 + c]) / 255.0;
            ((value - mean[c]) / deviation[c]) as f32
        })
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden")
        .join(name)
}

fn pictures() -> Pictures {
    let text = fs::read_to_string(golden("openseeface_networks.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn recorded(network: &str) -> Vec<f32> {
    recorded_floats(&golden("networks").join(format!("openseeface_{network}.bin")))
}

fn recorded_floats(path: &Path) -> Vec<f32> {
    let bytes = fs::read(path).unwrap();
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect()
}

/// The published file of a network; `None`, said aloud, where it is not installed.
fn published(file: &str) -> Option<(PathBuf, Vec<u8>)> {
    let path = installed_paths()
        .model(file, "openseeface", None)
        .inspect_err(|error| eprintln!("SKIPPED: {error}"))
        .ok()?;
    let bytes = fs::read(&path).unwrap();
    Some((path, bytes))
}

/// The network that `read` makes of `path`, in each runtime that is installed.
fn in_each_runtime(
    path: &Path,
    read: impl Fn() -> Result<Graph, ModelError>,
) -> Vec<Box<dyn Model>> {
    let paths = installed_paths();
    let open = |choice| {
        let opener = Opener::new(&paths, choice);
        let key = path.display().to_string();
        match opener.open(path, key.as_bytes(), &read, SessionOptions::default()) {
            Err(error @ ModelError::Runtime { .. }) => {
                eprintln!("SKIPPED: {error}");
                None
            }
            model => Some(model.unwrap()),
        }
    };
    RUNTIMES.into_iter().filter_map(open).collect()
}

/// The rewritten network, in each runtime that is installed; none if it is not installed.
fn networks(index: usize) -> Vec<Box<dyn Model>> {
    let (file, _, rewrite) = NETWORKS[index];
    let Some((path, bytes)) = published(file) else {
        return Vec::new();
    };
    in_each_runtime(&path, || rewrite(&path, bytes.clone()))
}

fn run(model: &dyn Model, input: &Array4<f32>) -> Vec<ArrayD<f32>> {
    model.run(&[input.view().into_dyn()]).unwrap()
}

/// The peaks of what `model` yields, as they were recorded: values, cells, offsets.
fn run_for_peaks(model: &dyn Model, peaks: &Peaks, input: &Array4<f32>) -> Vec<f32> {
    let answer = run(model, input).remove(0);
    let peaks = peaks.find(answer.as_slice().unwrap());
    let column = |value: fn(&openseeface::Peak) -> f32| peaks.iter().map(value).collect();
    let columns: [Vec<f32>; PEAK_VALUES] = [
        column(|peak| peak.value),
        column(|peak| peak.cell as f32),
        column(|peak| peak.offsets[0]),
        column(|peak| peak.offsets[1]),
    ];
    columns.concat()
}

/// Compares peaks of `points` landmarks with those that were recorded.
#[track_caller]
fn compare_peaks(what: &str, points: usize, ours: &[f32], theirs: &[f32]) {
    let cells = points..2 * points;
    assert_eq!(ours[cells.clone()], theirs[cells], "cells of {what}");
    compare(what, ours, theirs);
}

#[track_caller]
fn compare(what: &str, ours: &[f32], theirs: &[f32]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let difference = std::iter::zip(ours, theirs).map(|(a, b)| (a - b).abs());
    let largest = difference.fold(0.0, f32::max);
    assert!(largest <= TOLERANCE, "{what} differ by {largest}");
}

#[test]
fn the_detector_yields_what_the_published_one_does() {
    let recorded = recorded("detector");
    for model in networks(0) {
        let pictures = pictures().detector;
        for (picture, theirs) in pictures.iter().zip(recorded.chunks_exact(2 * 56 * 56)) {
            let [maps, greatest] = run(&*model, &picture.tensor()).try_into().unwrap();
            assert_eq!(maps.shape(), [1, 2, 56, 56]);
            compare("maps", maps.as_slice().unwrap(), theirs);
            let greatest = greatest.into_dimensionality::<Ix4>().unwrap();
            for ((_, c, y, x), value) in greatest.indexed_iter() {
                let near = |at: usize| at.saturating_sub(1)..(at + 2).min(56);
                let near = near(y).flat_map(|y| near(x).map(move |x| [0, c, y, x]));
                let around: f32 = near.map(|at| maps[&at[..]]).fold(0.0, f32::max);
                assert_eq!(*value, around, "{c} {y} {x}");
            }
        }
    }
}

#[test]
fn the_landmark_network_yields_the_peaks_of_the_published_one() {
    let Some((path, bytes)) = published(NETWORKS[1].0) else {
        return;
    };
    let (graph, peaks) = rewrite::landmarks(&path, bytes).unwrap();
    let recorded = recorded("landmarks");
    for model in in_each_runtime(&path, || Ok(graph.clone())) {
        let pictures = pictures().landmarks;
        let recorded = recorded.chunks_exact(PEAK_VALUES * POINTS);
        for (picture, theirs) in pictures.iter().zip(recorded) {
            let ours = run_for_peaks(&*model, &peaks, &picture.tensor());
            compare_peaks("peaks", POINTS, &ours, theirs);
        }
    }
}

#[test]
fn the_gaze_network_yields_what_the_published_one_does() {
    let recorded = recorded("gaze");
    for model in networks(2) {
        let pictures = pictures().gaze;
        for (pair, theirs) in pictures
            .chunks_exact(2)
            .zip(recorded.chunks_exact(2 * 3 * 64))
        {
            let [right, left] = [pair[0].tensor(), pair[1].tensor()];
            let both = concatenate(Axis(0), &[right.view(), left.view()]).unwrap();
            let [maps] = run(&*model, &both).try_into().unwrap();
            assert_eq!(maps.shape(), [2, 3, 8, 8]);
            compare("maps", maps.as_slice().unwrap(), theirs);
        }
    }
}

/// Points of the small networks.
const FEW_POINTS: usize = 30;

/// `random` of `golden/make_networks.py`.
fn noise(seed: u32, count: usize, low: f64, high: f64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (low + (high - low) * f64::from(state >> 8) / f64::from(1 << 24)) as f32
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn small_networks_yield_the_peaks_of_the_files() {
    let input = noise(5, 3 * 56 * 56, -2.0, 2.0);
    let input = Array4::from_shape_vec([1, 3, 56, 56], input).unwrap();
    for name in ["small_openseeface", "small_plain"] {
        let path = golden("networks").join(name).with_extension("onnx");
        let (graph, peaks) = rewrite::landmarks(&path, fs::read(&path).unwrap()).unwrap();
        let recorded = recorded_floats(&path.with_extension("bin"));
        for model in in_each_runtime(&path, || Ok(graph.clone())) {
            let ours = run_for_peaks(&*model, &peaks, &input);
            compare_peaks(name, FEW_POINTS, &ours, &recorded);
        }
    }
}

#[test]
fn networks_with_other_tensors_are_refused_before_they_are_run() {
    let path = golden("networks").join("small_plain.onnx");
    let bytes = fs::read(&path).unwrap();
    assert!(rewrite::landmarks(&path, bytes.clone()).is_ok());
    // Lengths of axes: 56 px, 90 maps.
    for (length, other) in [(56, 57), (90, 87)] {
        let axis = |length: u8| [0x0a, 0x02, 0x08, length];
        let mut forged = bytes.clone();
        let found = forged.windows(4).rposition(|window| window == axis(length));
        let at = found.expect("the axis");
        forged[at..at + 4].copy_from_slice(&axis(other));
        let error = rewrite::landmarks(&path, forged).unwrap_err();
        assert!(matches!(error, ModelError::Tensors { .. }), "{error}");
        assert!(error.to_string().contains("small_plain.onnx"), "{error}");
    }
}

#[test]
fn damaged_files_are_errors_or_other_networks_but_no_panics() {
    for (file, _, rewrite) in NETWORKS {
        let Some((path, bytes)) = published(file) else {
            return;
        };
        for length in (0..bytes.len()).step_by(bytes.len() / 37) {
            let error = rewrite(&path, bytes[..length].to_vec()).unwrap_err();
            assert!(error.to_string().contains(file), "{error}");
        }
        // Nodes come first, constants after them.
        for position in (0..60_000).step_by(331) {
            let mut damaged = bytes.clone();
            damaged[position] ^= 0x15;
            let _ = rewrite(&path, damaged);
        }
    }
}

#[test]
fn networks_are_not_taken_for_one_another() {
    if NETWORKS.iter().any(|(file, ..)| published(file).is_none()) {
        return;
    }
    let file = |index: usize| published(NETWORKS[index].0).map(|(path, _)| path);
    let configs = [
        (
            ModelRole::Detector,
            EngineConfig {
                detector_model: file(2),
                ..Default::default()
            },
        ),
        (
            ModelRole::Landmarks,
            EngineConfig {
                landmark_model: file(0),
                ..Default::default()
            },
        ),
        (
            ModelRole::Gaze,
            EngineConfig {
                gaze_model: file(1),
                ..Default::default()
            },
        ),
    ];
    for (expected, config) in configs {
        match load(EngineKind::OpenSeeFace, &config).err().unwrap() {
            EngineError::Part {
                role,
                source: ModelError::Tensors { .. },
            } => assert_eq!(role, expected),
            other => panic!("{expected:?}: {other}"),
        }
    }
}

#[test]
fn without_gaze_no_gaze_network_is_read() {
    let config = |gaze: bool| EngineConfig {
        gaze_model: Some("/nowhere/gaze.onnx".into()),
        openseeface: openseeface::Settings {
            gaze,
            ..Default::default()
        },
        ..Default::default()
    };
    if NETWORKS.iter().any(|(file, ..)| published(file).is_none()) {
        return;
    }
    let engine = load(EngineKind::OpenSeeFace, &config(false)).unwrap();
    let files: Vec<&str> = engine
        .info
        .models
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(files, ["mnv3_detection_opt.onnx", "lm_model0_opt.onnx"]);
    let error = load(EngineKind::OpenSeeFace, &config(true)).err().unwrap();
    let role = match &error {
        EngineError::Part { role, .. } => Some(*role),
        _ => None,
    };
    assert_eq!(role, Some(ModelRole::Gaze), "{error}");
}
