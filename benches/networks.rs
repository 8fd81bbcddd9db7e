// SPDX-License-Identifier: MPL-2.0
//! Time of each network in the built-in runtime and in ONNX Runtime, on one thread.
//!
//! `cargo bench --package facetrack --bench networks`, pinned to a core. Runs alternate, and the
//! fastest of each runtime counts, because other work on the machine only makes runs slower. With
//! arguments, only networks whose names contain one of them run.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use facetrack::engine::insightface::rewrite;
use facetrack::engine::{opencv::yunet, openseeface};
use facetrack::instructions;
use facetrack::model::SessionOptions;
use facetrack::model::task::Bundle;
use facetrack::model::{Model, ModelError, Opener, RuntimeChoice};
use facetrack_assets::locate::SearchPaths;
use facetrack_graph::{Graph, passes, tflite};
use ndarray::ArrayD;

/// Number of runs in each runtime.
const RUNS: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    instructions::set_from_vars(std::env::var_os)?;
    let paths = SearchPaths::from_vars(std::env::var_os);
    let bundle = paths.model("face_landmarker.task", "mediapipe", None)?;
    let Bundle {
        face_detector,
        face_landmarks_detector,
        face_blendshapes,
        ..
    } = Bundle::open(&bundle)?;
    let yunet = paths.model("face_detection_yunet_2023mar.onnx", "yunet", None)?;
    let bytes = fs::read(&yunet)?;
    println!("network                    built-in ms  ONNX Runtime ms  ratio");
    for (name, bytes, shape) in [
        ("MediaPipe detector", &face_detector, vec![1, 3, 128, 128]),
        (
            "MediaPipe landmarks",
            &face_landmarks_detector,
            vec![1, 3, 256, 256],
        ),
        ("MediaPipe blendshapes", &face_blendshapes, vec![1, 146, 2]),
    ] {
        let read = || Ok(tflite::read(bytes).expect("a network of a bundle"));
        compare(name, &paths, &bundle, bytes, &read, &shape)?;
    }
    let read = || yunet::rewrite(&yunet, bytes.clone());
    for [height, width] in [[384, 640], [640, 640]] {
        let name = format!("YuNet {width}×{height}");
        compare(&name, &paths, &yunet, &bytes, &read, &[1, 3, height, width])?;
    }
    type Rewrite = fn(&Path, Vec<u8>) -> Result<Graph, ModelError>;
    let read_onnx: Rewrite = |_, bytes| {
        // Without the boxes of a detector, which are computed where faces are.
        let parts = rewrite::whole(&bytes).expect("a published network");
        let mut graph = parts.first;
        graph.set_input_extent(0, Some(1));
        passes::run(&mut graph, passes::COMMON).expect("a published network");
        Ok(graph)
    };
    let networks: [(&str, &str, Rewrite, [usize; 4]); 7] = [
        (
            "openseeface",
            "mnv3_detection_opt.onnx",
            openseeface::rewrite::detector,
            [1, 3, 224, 224],
        ),
        (
            "openseeface",
            "lm_model0_opt.onnx",
            |path, bytes| Ok(openseeface::rewrite::landmarks(path, bytes)?.0),
            [1, 3, 224, 224],
        ),
        (
            "openseeface",
            "mnv3_gaze32_split_opt.onnx",
            openseeface::rewrite::gaze,
            [2, 3, 32, 32],
        ),
        (
            "insightface",
            "scrfd_500m_bnkps.onnx",
            read_onnx,
            [1, 3, 640, 640],
        ),
        ("insightface", "2d106det.onnx", read_onnx, [1, 3, 192, 192]),
        ("insightface", "genderage.onnx", read_onnx, [1, 3, 96, 96]),
        ("insightface", "w600k_mbf.onnx", read_onnx, [1, 3, 112, 112]),
    ];
    for (family, file, rewrite, shape) in networks {
        let path = paths.model(file, family, None)?;
        let bytes = fs::read(&path)?;
        let read = || rewrite(&path, bytes.clone());
        compare(file, &paths, &path, &bytes, &read, &shape)?;
    }
    Ok(())
}

/// Prints the fastest run of a network in each runtime.
fn compare(
    name: &str,
    paths: &SearchPaths,
    path: &Path,
    bytes: &[u8],
    read: &dyn Fn() -> Result<Graph, ModelError>,
    shape: &[usize],
) -> Result<(), ModelError> {
    let wanted: Vec<_> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word)) {
        return Ok(());
    }
    let open = |choice| {
        let opener = Opener::new(paths, choice);
        opener.open(path, bytes, read, SessionOptions::default())
    };
    let models = [
        open(RuntimeChoice::BuiltIn)?,
        open(RuntimeChoice::OnnxRuntime)?,
    ];
    let input = ArrayD::from_elem(shape, 0.5);
    let mut fastest = [f64::INFINITY; 2];
    for _ in 0..RUNS {
        for (model, fastest) in models.iter().zip(&mut fastest) {
            *fastest = fastest.min(milliseconds(&**model, &input)?);
        }
    }
    let [own, onnxruntime] = fastest;
    println!(
        "{name:<25}{own:>13.3}{onnxruntime:>17.3}{:>7.2}",
        own / onnxruntime
    );
    Ok(())
}

fn milliseconds(model: &dyn Model, input: &ArrayD<f32>) -> Result<f64, ModelError> {
    let start = Instant::now();
    model.run(&[input.view()])?;
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}
