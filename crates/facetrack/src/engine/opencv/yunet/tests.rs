// SPDX-License-Identifier: MPL-2.0

use std::sync::{Arc, Mutex};

use facetrack_graph::Graph;
use facetrack_graph::convolution::Convolution;
use ndarray::{ArrayD, ArrayViewD, IxDyn};

use super::*;
use crate::model::TensorSpec;
use facetrack_assets::locate::SearchPaths;

/// Sees a face in the first cell of stride 8, and remembers the shapes of its inputs.
#[derive(Default)]
struct Fake {
    shapes: Arc<Mutex<Vec<Vec<usize>>>>,
    /// Additional factor between the sides of input and outputs.
    shrunk: Option<usize>,
}

impl Model for Fake {
    fn inputs(&self) -> &[TensorSpec] {
        &[]
    }

    fn outputs(&self) -> &[TensorSpec] {
        &[]
    }

    fn run(&self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        let shape = inputs[0].shape();
        self.shapes.lock().unwrap().push(shape.to_vec());
        let side = |axis: usize, stride: usize| shape[axis] / stride / self.shrunk.unwrap_or(1);
        let mut outputs: Vec<_> = STRIDES
            .iter()
            .map(|stride| [1, heads::CHANNELS, side(2, *stride), side(3, *stride)])
            .map(|shape| ArrayD::from_elem(IxDyn(&shape), -20.0))
            .collect();
        for channel in 0..heads::CHANNELS {
            outputs[0][[0, channel, 0, 0]] = 1.0;
        }
        Ok(outputs)
    }
}

fn config(detect_max_width: usize) -> EngineConfig {
    EngineConfig {
        detect_max_width: Some(detect_max_width),
        ..EngineConfig::default()
    }
}

fn detector(model: Fake, config: &EngineConfig) -> Result<Detector, ModelError> {
    Detector::new(Box::new(model), Path::new("fake.onnx"), config)
}

#[test]
fn frames_are_seen_at_their_size_or_reduced() {
    for (config, wanted) in [
        (config(0), [1, 3, 96, 1312]),
        (config(320), [1, 3, 32, 320]),
        (EngineConfig::default(), [1, 3, 64, 640]),
    ] {
        let model = Fake::default();
        let shapes = model.shapes.clone();
        let mut detector = detector(model, &config).unwrap();
        let pixels = vec![9; 1300 * 90 * 3];
        let image = ImageView::rgb(1300, 90, &pixels).unwrap();
        let faces = detector.detect(&image, 0.5).unwrap().faces;
        assert_eq!(shapes.lock().unwrap().last().unwrap(), &wanted);
        // The first cell's centre, with an offset of (1, 1) cells.
        let (x, y) = (wanted[3] as f32, wanted[2] as f32);
        let center = faces[0].bbox.center();
        assert!((center.x - 8.0 * (1300.0 / x.min(1300.0))).abs() < 1e-3);
        assert!(center.y > 7.9 && center.y < 8.0 * 90.0 / y * 2.0);
        assert!(detector.detect(&image, 0.9).unwrap().faces.is_empty());
    }
}

#[test]
fn a_repeated_frame_is_not_searched_again() {
    let model = Fake::default();
    let shapes = model.shapes.clone();
    let mut detector = detector(model, &config(0)).unwrap();
    let runs = || shapes.lock().unwrap().len();
    let prepared = runs();
    let mut pixels = vec![9; 64 * 64 * 3];
    // Runs after each frame; the score is compared again.
    for (level, min_score, found, want) in [
        (9, 0.5, 1, 1),
        (9, 0.5, 1, 1),
        (9, 0.9, 0, 1),
        (8, 0.5, 1, 2),
        (9, 0.5, 1, 3),
        (9, 0.5, 1, 3),
    ] {
        pixels[5000] = level;
        let image = ImageView::rgb(64, 64, &pixels).unwrap();
        assert_eq!(
            detector.detect(&image, min_score).unwrap().faces.len(),
            found
        );
        assert_eq!(runs() - prepared, want);
    }
    let image = ImageView::rgb(64, 48, &pixels[..64 * 48 * 3]).unwrap();
    detector.detect(&image, 0.5).unwrap();
    assert_eq!(runs() - prepared, 4, "another size");
}

#[test]
fn a_network_with_other_outputs_is_refused() {
    let model = Fake {
        shrunk: Some(2),
        ..Fake::default()
    };
    let error = detector(model, &config(0)).err().unwrap();
    assert!(matches!(error, ModelError::Tensors { .. }), "{error}");
    assert!(error.to_string().contains("fake.onnx"), "{error}");
}

#[test]
fn a_frame_that_takes_too_much_memory_is_an_error_with_its_size() {
    // Never touched, so that it takes no memory.
    let pixels = vec![0; 16384 * 16384 * 3];
    let image = ImageView::rgb(16384, 16384, &pixels).unwrap();
    let error = detector(Fake::default(), &config(0))
        .unwrap()
        .detect(&image, 0.5)
        .unwrap_err();
    assert!(matches!(error, ModelError::InputSize { .. }), "{error}");
    for part in ["fake.onnx", "16384×16384"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let mut reducing = detector(Fake::default(), &config(640)).unwrap();
    assert_eq!(reducing.detect(&image, 0.5).unwrap().faces.len(), 1);
}

/// Path of the network, for messages.
const PATH: &str = "yunet.onnx";

/// The published file; `None`, said aloud, where it is not installed.
fn published() -> Option<Vec<u8>> {
    match SearchPaths::from_vars(std::env::var_os).model(
        "face_detection_yunet_2023mar.onnx",
        "yunet",
        None,
    ) {
        Ok(path) => Some(std::fs::read(path).unwrap()),
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            None
        }
    }
}

#[test]
fn the_published_graph_is_rewritten_as_a_whole() {
    let Some(bytes) = published() else {
        return;
    };
    let mut graph = Graph::read(bytes).unwrap();
    let before = graph.floats(graph.named("420").unwrap()).unwrap();
    heads::rewrite(&mut graph).unwrap();
    let first = Convolution::of(&graph, &graph.nodes[0]).unwrap();
    assert_eq!(first.weights.shape(), [16, 3, 3, 3]);
    let [before, after] = [before.as_slice(), first.weights.as_slice()].map(Option::unwrap);
    for (before, after) in before.chunks(27).zip(after.chunks(27)) {
        let reversed = [&before[18..], &before[9..18], &before[..9]].concat();
        assert_eq!(reversed, after);
    }
    assert_eq!(graph.outputs.len(), STRIDES.len());
    for port in &graph.outputs {
        let head = Convolution::yielding(&graph, port.value).unwrap();
        assert_eq!(head.weights.shape(), [16, 1, 3, 3]);
    }
    assert!(!graph.nodes.iter().any(|node| node.is("Sigmoid")));
}

#[test]
fn graphs_that_lack_a_part_are_refused() {
    let Some(bytes) = published() else {
        return;
    };
    for kept in ["cls_8", "kps_32", "input"] {
        let mut graph = Graph::read(bytes.clone()).unwrap();
        graph.set_outputs(&[graph.named(kept).unwrap()]);
        graph.sort();
        let error = rewrite(PATH.as_ref(), graph.encode()).unwrap_err();
        assert!(matches!(error, ModelError::Tensors { .. }), "{error}");
    }
}

#[test]
fn no_damaged_file_makes_it_panic() {
    let Some(bytes) = published() else {
        return;
    };
    for end in (0..bytes.len()).step_by(bytes.len() / 97) {
        assert!(
            rewrite(PATH.as_ref(), bytes[..end].to_vec()).is_err(),
            "cut to {end} bytes"
        );
    }
    // Names, extents and operators are between the constants.
    let mut refused = 0;
    for at in (0..bytes.len()).step_by(bytes.len() / 997) {
        for mask in [0x01, 0x10, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= mask;
            refused += usize::from(rewrite(PATH.as_ref(), changed).is_err());
        }
    }
    assert!(refused > 0);
}
