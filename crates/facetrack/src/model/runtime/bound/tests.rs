// SPDX-License-Identifier: MPL-2.0

use std::fs;
use std::path::Path;

use facetrack_graph::proto::{FLOAT, FLOAT16, ModelProto, TensorTypeProto, TypeProto};
use facetrack_graph::{Attribute, Graph};
use prost::Message;

use super::*;
use crate::model::SessionOptions;
use crate::model::runtime::{OnnxModel, OnnxRuntime, Opened};
use crate::model::{Model, ModelError};
use facetrack_assets::locate::SearchPaths;

const ALL: [Transfer; 3] = [Transfer::Copied, Transfer::Bound, Transfer::Resident];

fn runtime() -> Option<OnnxRuntime> {
    let runtime = OnnxRuntime::load(&SearchPaths::from_vars(std::env::var_os)).ok();
    if runtime.is_none() {
        eprintln!("SKIPPED: no ONNX Runtime on this machine");
    }
    runtime
}

/// A network of images of any size, with tensors of the type `kind`: their negatives, and the mean
/// of each.
fn network(kind: i32) -> Vec<u8> {
    let to = |kind: i32| vec![Attribute::int("to", kind.into())];
    let mut graph = Graph::new(13);
    let images = graph.add_input("images", &[]);
    let single = graph.add("Cast", &[images], to(FLOAT));
    let factor = graph.add_floats(&[1], &[-1.0]);
    let product = graph.add("Mul", &[single, factor], vec![]);
    let mean = graph.add("GlobalAveragePool", &[single], vec![]);
    for (name, value) in [("negatives", product), ("means", mean)] {
        let output = graph.add("Cast", &[value], to(kind));
        graph.add_output(name, output);
    }
    let mut model = ModelProto::decode(graph.encode().as_slice()).unwrap();
    let graph = model.graph.as_mut().unwrap();
    for port in graph.input.iter_mut().chain(&mut graph.output) {
        let tensor_type = Some(TensorTypeProto {
            elem_type: kind,
            shape: None,
        });
        port.kind = Some(TypeProto { tensor_type });
    }
    model.encode_to_vec()
}

fn open(runtime: &OnnxRuntime, bytes: &[u8], transfer: Transfer) -> Result<OnnxModel, ModelError> {
    let options = SessionOptions {
        transfer,
        ..SessionOptions::default()
    };
    OnnxModel::from_bytes(runtime, Path::new("network.onnx"), bytes, options)
}

/// An image whose values are all different, also between rounds. They are halves of whole numbers,
/// which are exact in half precision too.
fn image(shape: &[usize], round: usize) -> ArrayD<f32> {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|i| ((i * 7 + round * 13) % 512) as f32 / 2.0);
    ArrayD::from_shape_vec(shape, values.collect()).unwrap()
}

fn bits(outputs: &[ArrayD<f32>]) -> Vec<(Vec<usize>, Vec<u32>)> {
    outputs
        .iter()
        .map(|output| {
            let bits = output.iter().map(|value| value.to_bits()).collect();
            (output.shape().to_vec(), bits)
        })
        .collect()
}

const SMALL: [usize; 4] = [1, 3, 4, 5];
const LARGE: [usize; 4] = [2, 3, 8, 8];

#[test]
fn every_way_yields_the_same_whatever_the_shapes() {
    let Some(runtime) = runtime() else { return };
    let shapes = [SMALL, SMALL, SMALL, LARGE, SMALL, SMALL, LARGE, LARGE];
    for kind in [FLOAT, FLOAT16] {
        let bytes = network(kind);
        for transfer in ALL {
            let model = open(&runtime, &bytes, transfer).unwrap();
            for (round, shape) in shapes.iter().enumerate() {
                let image = image(shape, round);
                let outputs = model.run(&[image.view()]).unwrap();
                assert_eq!(outputs[0], -&image, "{transfer:?} {round}");
                assert_eq!(outputs[1].shape(), [shape[0], 3, 1, 1]);
            }
            // The second and third run, the sixth and the eighth.
            let count = |opened: &mut Opened| opened.steady.as_ref().map(|steady| steady.made);
            let made = model.user.with_session(count);
            let expected = (transfer != Transfer::Copied).then_some(3);
            assert_eq!(made, expected, "{transfer:?}");
        }
    }
}

#[test]
fn a_run_that_fails_leaves_the_next_one_alone() {
    let Some(runtime) = runtime() else { return };
    let whole = open(&runtime, &network(FLOAT), Transfer::Copied).unwrap();
    for transfer in ALL {
        let model = open(&runtime, &network(FLOAT), transfer).unwrap();
        for round in 0..6 {
            let image = image(&SMALL, round);
            let wrong = ArrayD::zeros(vec![3]);
            assert!(model.run(&[wrong.view()]).is_err(), "{transfer:?}");
            assert!(model.run(&[]).is_err(), "{transfer:?}");
            assert!(model.run(&[image.view(), image.view()]).is_err());
            for _ in 0..2 {
                let outputs = model.run(&[image.view()]).unwrap();
                let expected = whole.run(&[image.view()]).unwrap();
                assert_eq!(bits(&outputs), bits(&expected), "{transfer:?}");
            }
        }
    }
}

#[test]
fn published_networks_yield_the_same_bits_in_every_way() {
    let Some(runtime) = runtime() else { return };
    let folder = match SearchPaths::from_vars(std::env::var_os).pack(Some(Path::new("insightface")))
    {
        Ok(folder) => folder,
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            return;
        }
    };
    let entries = fs::read_dir(folder).unwrap().flatten();
    let files = entries.map(|entry| entry.path());
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "onnx")) {
        let bytes = fs::read(&path).unwrap();
        let models = ALL.map(|transfer| open(&runtime, &bytes, transfer).unwrap());
        let shape: Vec<usize> = models[0].inputs()[0]
            .shape
            .iter()
            .zip([1, 3, 64, 64])
            .map(|(extent, open)| extent.unwrap_or(open))
            .collect();
        for round in 0..3 {
            let image = image(&shape, round);
            let [expected, others @ ..] = &models;
            let expected = bits(&expected.run(&[image.view()]).unwrap());
            for model in others {
                let outputs = model.run(&[image.view()]).unwrap();
                assert_eq!(bits(&outputs), expected, "{}", path.display());
            }
        }
    }
}
