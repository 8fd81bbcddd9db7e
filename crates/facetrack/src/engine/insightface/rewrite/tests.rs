// SPDX-License-Identifier: MPL-2.0

use std::path::Path;

use facetrack_graph::convolution::Convolution;

use super::*;
use crate::locate::tests::installed;

#[test]
fn what_can_not_be_rewritten_stays_as_it_is() {
    for (op, domain, is_kept) in [
        ("Relu", "", false),
        ("If", "", true),
        ("Gelu", "com.x", true),
    ] {
        let mut graph = Graph::new(13);
        let image = graph.add_input("x", &[1, 4, 2, 2]);
        let slopes = graph.add_floats(&[4, 1, 1], &[0.0, 1.0, 2.0, 3.0]);
        let values = graph.add_elementwise("PRelu", &[image, slopes]);
        let output = graph.add_elementwise(op, &[values]);
        domain.clone_into(&mut graph.nodes[1].domain);
        graph.add_output("y", output);
        let bytes = graph.encode();
        let files = for_processor(bytes.clone());
        assert_eq!(files == Files::whole(bytes), is_kept, "{op}");
    }
    for bytes in [b"no network".to_vec(), Vec::new()] {
        assert_eq!(for_processor(bytes.clone()), Files::whole(bytes));
    }
}

/// The published networks that are installed, with the side of an input to try them on; none, said
/// aloud, without.
fn published() -> Vec<(std::path::PathBuf, [usize; 4])> {
    let folder = match installed().pack(Some(Path::new("insightface"))) {
        Ok(folder) => folder,
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            return Vec::new();
        }
    };
    [
        ("scrfd_500m_bnkps.onnx", [1, 3, 96, 160]),
        ("2d106det.onnx", [2, 3, 192, 192]),
        ("w600k_mbf.onnx", [2, 3, 112, 112]),
        ("genderage.onnx", [2, 3, 96, 96]),
    ]
    .into_iter()
    .map(|(name, input)| (folder.join(name), input))
    .filter(|(path, _)| path.exists())
    .collect()
}

/// Output channels of the convolutions of a network.
fn convolutions(bytes: &[u8]) -> Vec<usize> {
    let graph = Graph::read(bytes.to_vec()).unwrap();
    let nodes = graph.nodes.iter();
    nodes
        .filter_map(|node| Some(Convolution::of(&graph, node)?.outputs()))
        .collect()
}

#[test]
fn rewritten_networks_compute_the_same() {
    use crate::model::Model;
    use crate::model::runtime::{OnnxModel, OnnxRuntime, SessionOptions};
    use ndarray::{ArrayD, IxDyn};

    let runtime = match OnnxRuntime::load(&installed()) {
        Ok(runtime) => runtime,
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            return;
        }
    };
    for (path, shape) in published() {
        let bytes = std::fs::read(&path).unwrap();
        let rewritten = for_processor(bytes.clone());
        let nodes = |bytes: &[u8]| Graph::read(bytes.to_vec()).unwrap().nodes.len();
        let parts = [
            rewritten.rest.as_ref().map(|(rest, _)| rest),
            rewritten.boxes.as_ref().map(|(boxes, _)| boxes),
        ];
        let is_detector = path.ends_with("scrfd_500m_bnkps.onnx");
        assert_eq!(parts.map(|part| part.is_some()), [is_detector; 2]);
        if is_detector {
            // The scores of three strides are of 18 taps each, and boxes and points are merged.
            let [rest, boxes] = parts.map(|part| convolutions(part.unwrap()));
            assert_eq!(rest.iter().filter(|outputs| **outputs == 32).count(), 2 * 3);
            assert_eq!(boxes.iter().filter(|outputs| **outputs == 30).count(), 3);
        } else {
            assert_eq!(
                nodes(&rewritten.first) != nodes(&bytes),
                !path.ends_with("genderage.onnx"),
                "{}",
                path.display()
            );
        }
        let count: usize = shape.iter().product();
        let pixels = (0..count).map(|i| ((i * 7919) % 256) as f32 / 128.0 - 1.0);
        let input = ArrayD::from_shape_vec(IxDyn(&shape), pixels.collect()).unwrap();
        let run = |bytes: &[u8], inputs: &[ArrayD<f32>]| {
            let options = SessionOptions::default();
            let model = OnnxModel::from_bytes(&runtime, &path, bytes, options).unwrap();
            let views: Vec<_> = inputs.iter().map(|input| input.view()).collect();
            model.run(&views).unwrap()
        };
        let input = [input];
        let theirs = run(&bytes, &input);
        let mut ours = run(&rewritten.first, &input);
        if let Some((rest, _)) = &rewritten.rest {
            ours = run(rest, &ours);
        }
        if let Some((boxes, _)) = &rewritten.boxes {
            let features = ours.split_off(ours.len() / 2);
            ours.extend(run(boxes, &features));
        }
        assert_eq!(theirs.len(), ours.len());
        for (theirs, ours) in theirs.iter().zip(&ours) {
            assert_eq!(theirs.shape(), ours.shape());
            let largest = theirs.iter().fold(0.0, |a: f32, b| a.max(b.abs()));
            let error = (theirs - ours).iter().fold(0.0, |a: f32, b| a.max(b.abs()));
            assert!(
                error <= 1e-5 * largest.max(1.0),
                "{}: {error} of {largest}",
                path.display()
            );
        }
    }
}
