// SPDX-License-Identifier: MPL-2.0
//! Files of networks.

use std::path::Path;

use facetrack::engine::{insightface, opencv::yunet, openseeface};
use facetrack::model::ModelError;
use facetrack::model::task::Bundle;
use facetrack_graph::outline::OnnxOutline;
use facetrack_graph::{Graph, tflite};
use facetrack_net::Network;

use crate::shared::{PATH, path, told, within};

/// Memory for a network: the constants of a graph may take 64 MiB, several times while it is
/// rewritten.
const NETWORK: usize = 512 << 20;

/// Memory for a bundle: three networks and a face, each of up to 64 MiB.
const BUNDLE: usize = 320 << 20;

/// Rewrites a file for the runtime.
type Rewrite = fn(&Path, Vec<u8>) -> Result<Graph, ModelError>;

pub fn task(data: &[u8]) {
    let bundle = within(BUNDLE, || Bundle::from_bytes(path(), data));
    let Some(bundle) = told(bundle, &[PATH]) else {
        return;
    };
    assert_eq!(bundle.files.len(), 1);
    for part in [
        bundle.face_detector,
        bundle.face_landmarks_detector,
        bundle.face_blendshapes,
    ] {
        tflite(&part);
    }
}

pub fn tflite(data: &[u8]) {
    let converted = within(NETWORK, || tflite::read(data));
    let Some(graph) = told(converted, &[]) else {
        return;
    };
    prepare(&graph);
    let onnx = graph.encode();
    OnnxOutline::read(&onnx).expect("an ONNX file was written");
    assert_kept(&onnx);
}

pub fn onnx(data: &[u8]) {
    let outline = within(NETWORK, || OnnxOutline::read(data));
    told(outline, &[]);
    let graph = within(NETWORK, || Graph::read(data.to_vec()));
    let Some(graph) = told(graph, &[]) else {
        return;
    };
    prepare(&graph);
    assert_kept(&graph.encode());
    let of_file = |onnx| Graph::read(onnx).expect("a network was written");
    let rewrites: [Rewrite; 4] = [
        openseeface::rewrite::detector,
        |path, bytes| Ok(openseeface::rewrite::landmarks(path, bytes)?.0),
        openseeface::rewrite::gaze,
        yunet::rewrite,
    ];
    for rewrite in rewrites {
        let rewritten = within(NETWORK, || rewrite(path(), data.to_vec()));
        if let Some(graph) = told(rewritten, &[PATH]) {
            prepare(&graph);
            of_file(graph.encode());
        }
    }
    let parts = within(NETWORK, || insightface::rewrite::divided(data));
    if let Some(parts) = told(parts, &[]) {
        let rest = parts.rest.map(|(rest, _)| rest);
        for graph in rest.into_iter().chain([parts.first]) {
            prepare(&graph);
            of_file(graph.encode());
        }
    }
}

/// Prepares a network for the built-in runtime, which may refuse it.
fn prepare(graph: &Graph) {
    told(within(NETWORK, || Network::new(graph)), &[]);
}

/// Asserts that a file that was written is read as it is.
fn assert_kept(onnx: &[u8]) {
    if let Ok(graph) = Graph::read(onnx.to_vec()) {
        assert!(graph.encode() == onnx, "it changes when it is read");
    }
}
