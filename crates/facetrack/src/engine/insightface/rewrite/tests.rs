// SPDX-License-Identifier: MPL-2.0

use super::*;
use crate::locate::tests::installed;
use crate::model::onnx_file::{Floats, Node};

/// A file with these nodes, of which the last yields the output, and these constants.
fn file(nodes: Vec<Node>, constants: &[(&str, &[usize])]) -> OnnxFile {
    let mut file = OnnxFile::empty();
    let output = nodes.last().unwrap().output.clone();
    for node in nodes {
        file.add_node(node);
    }
    for (name, dims) in constants {
        let values = (0..dims.iter().product()).map(|i| i as f32).collect();
        let dims = dims.to_vec();
        file.add_floats(name, &Floats { dims, values });
    }
    file.set_outputs(&output);
    file
}

fn operators(file: &OnnxFile) -> Vec<String> {
    file.nodes()
        .iter()
        .map(|node| node.op_type.clone())
        .collect()
}

fn convolution(input: &str, weights: &str, output: &str) -> Node {
    let mut node = Node::new("Conv", &[input, weights], output);
    node.set_int("group", 1);
    node
}

#[test]
fn slopes_of_images_become_two_convolutions() {
    let prelu = || Node::new("PRelu", &["x", "slopes"], "y");
    for (dims, is_split) in [
        (&[4, 1, 1][..], true),
        (&[1, 4, 1, 1], true),
        (&[4], false),
        (&[1, 1, 1], false),
        (&[1, 1, 1, 1], false),
    ] {
        let mut file = file(vec![prelu()], &[("slopes", dims)]);
        prelu::split(&mut file);
        if !is_split {
            assert_eq!(operators(&file), ["PRelu"]);
            continue;
        }
        assert_eq!(operators(&file), ["Conv", "Relu", "Conv", "Add"]);
        let [minus, _, rest, sum] = file.nodes() else {
            panic!("four nodes");
        };
        assert_eq!(file.floats(&minus.input[1]).unwrap().values, [-1.0; 4]);
        let factors = file.floats(&rest.input[1]).unwrap();
        assert_eq!(factors.values, [1.0, 0.0, -1.0, -2.0]);
        assert_eq!(factors.dims, [4, 1, 1, 1]);
        assert_eq!((&sum.input[0][..], &sum.output[0][..]), ("x", "y"));
    }
}

#[test]
fn convolutions_of_few_channels_become_one() {
    let nodes = |second: &str| {
        vec![
            convolution("x", "a", "one"),
            convolution(second, "b", "two"),
            Node::new("Concat", &["one", "two"], "y"),
        ]
    };
    for (second, a, b, are_merged) in [
        ("x", 2, 3, true),
        ("x", 7, 9, true),
        ("x", 8, 16, false),
        ("z", 2, 3, false),
    ] {
        let dims = [[a, 4, 1, 1], [b, 4, 1, 1]];
        let mut file = file(nodes(second), &[("a", &dims[0]), ("b", &dims[1])]);
        merge::merge(&mut file);
        if !are_merged {
            assert_eq!(operators(&file), ["Conv", "Conv", "Concat"], "{a} {b}");
            continue;
        }
        assert_eq!(operators(&file), ["Conv", "Gather", "Gather", "Concat"]);
        let weights = file.floats(&file.nodes()[0].input[1]).unwrap();
        assert_eq!(weights.dims, [a + b, 4, 1, 1]);
        let values = (0..4 * a).chain(0..4 * b).map(|i| i as f32);
        assert_eq!(weights.values, values.collect::<Vec<_>>());
    }
    // Of other sizes, or done otherwise.
    let mut strided = nodes("x");
    strided[1].set_ints("strides", &[2, 2]);
    let mut file_a = file(strided, &[("a", &[2, 4, 1, 1]), ("b", &[3, 4, 1, 1])]);
    let mut file_b = file(nodes("x"), &[("a", &[2, 4, 1, 1]), ("b", &[3, 4, 3, 3])]);
    for file in [&mut file_a, &mut file_b] {
        merge::merge(file);
        assert_eq!(operators(file), ["Conv", "Conv", "Concat"]);
    }
}

#[test]
fn what_can_not_be_rewritten_stays_as_it_is() {
    let path = Path::new("a.onnx");
    let constants: &[(&str, &[usize])] = &[("slopes", &[4, 1, 1])];
    let prelu = Node::new("PRelu", &["x", "slopes"], "z");
    for (op, domain, is_kept) in [
        ("Relu", "", false),
        ("If", "", true),
        ("Gelu", "com.x", true),
    ] {
        let mut last = Node::new(op, &["z"], "y");
        last.domain = domain.to_owned();
        let bytes = file(vec![prelu.clone(), last], constants).encode();
        assert_eq!(for_processor(path, bytes.clone()) == bytes, is_kept, "{op}");
    }
    for bytes in [b"no network".to_vec(), Vec::new()] {
        assert_eq!(for_processor(path, bytes.clone()), bytes);
    }
}

/// The published networks that are installed, with the side of an input to try them on; none, said aloud, without.
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

#[test]
fn rewritten_networks_compute_the_same() {
    use crate::model::Model;
    use crate::model::onnx::{OnnxModel, OnnxRuntime, SessionOptions};
    use ndarray::{ArrayD, IxDyn};

    let runtime = match OnnxRuntime::load(&installed().runtime_candidates()) {
        Ok(runtime) => runtime,
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            return;
        }
    };
    for (path, shape) in published() {
        let bytes = std::fs::read(&path).unwrap();
        let rewritten = for_processor(&path, bytes.clone());
        let is_changed = !path.ends_with("genderage.onnx");
        assert_eq!(
            rewritten.len() != bytes.len(),
            is_changed,
            "{}",
            path.display()
        );
        let count: usize = shape.iter().product();
        let pixels = (0..count).map(|i| ((i * 7919) % 256) as f32 / 128.0 - 1.0);
        let input = ArrayD::from_shape_vec(IxDyn(&shape), pixels.collect()).unwrap();
        let [theirs, ours] = [bytes, rewritten].map(|bytes| {
            let options = SessionOptions::default();
            let mut model = OnnxModel::from_bytes(&runtime, &path, &bytes, options).unwrap();
            model.run(&[input.view()]).unwrap()
        });
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
