// SPDX-License-Identifier: MPL-2.0
//! Networks and images that do not fit are errors, and take neither much memory nor much time.

use facetrack_graph::{Attribute, Graph, Value};
use facetrack_net::Network;
use facetrack_net::memory::{self, OutOfMemory};
use ndarray::ArrayD;

/// Largest number of an attribute.
const HUGE: i64 = i64::MAX;

/// A network of one image, [1, 2, 8, 8], that `make` makes.
fn graph(make: impl Fn(&mut Graph, Value) -> Value) -> Graph {
    let mut graph = Graph::new(13);
    let image = graph.add_input("image", &[1, 2, 8, 8]);
    let output = make(&mut graph, image);
    graph.set_outputs(&[output]);
    graph
}

/// The reason why a network cannot run; it has to be given before or at the first run.
fn refused(make: impl Fn(&mut Graph, Value) -> Value) -> String {
    let network = match Network::new(&graph(make)) {
        Err(reason) => return reason,
        Ok(network) => network,
    };
    let image = ArrayD::zeros(vec![1, 2, 8, 8]);
    let error = network
        .run(&[image.view()])
        .expect_err("a network that cannot run");
    error.to_string()
}

fn convolution(graph: &mut Graph, image: Value, name: &str, values: &[i64]) -> Value {
    let weights = graph.add_floats(&[4, 2, 3, 3], &[0.5; 72]);
    graph.add(
        "Conv",
        &[image, weights],
        vec![Attribute::ints(name, values)],
    )
}

fn resize(graph: &mut Graph, image: Value, scale: Option<f32>, sizes: &[i64]) -> Value {
    let none = graph.add_floats(&[0], &[]);
    let scales = match scale {
        Some(scale) => graph.add_floats(&[4], &[1.0, 1.0, scale, scale]),
        None => none,
    };
    let sizes = graph.add_ints(&[sizes.len()], sizes);
    let attributes = vec![
        Attribute::text("mode", "nearest"),
        Attribute::text("coordinate_transformation_mode", "asymmetric"),
        Attribute::text("nearest_mode", "floor"),
    ];
    graph.add("Resize", &[image, none, scales, sizes], attributes)
}

#[test]
fn an_unsupported_operator_is_named() {
    let reason = refused(|graph, image| graph.add("Softmax", &[image], vec![]));
    assert!(reason.contains("Softmax"), "{reason}");
}

#[test]
fn images_of_other_shapes_are_errors() {
    let graph = graph(|graph, image| graph.add("Relu", &[image], vec![]));
    let network = Network::new(&graph).expect("a network that is supported");
    for shape in [
        &[1, 3, 8, 8][..],
        &[1, 2, 8, 9],
        &[1, 2, 8],
        &[],
        &[1, 2, 0, 8],
        &[0, 2, 8, 8],
    ] {
        let image = ArrayD::zeros(shape);
        network
            .run(&[image.view()])
            .expect_err("an image of another shape");
    }
    network.run(&[]).expect_err("no image");
}

#[test]
fn images_that_are_smaller_than_a_kernel_are_errors() {
    let mut graph = graph(|graph, image| convolution(graph, image, "strides", &[1, 1]));
    for axis in [2, 3] {
        graph.set_input_extent(axis, None);
    }
    let network = Network::new(&graph).expect("a network that is supported");
    for [height, width] in [[2, 8], [8, 2], [0, 8], [1, 1]] {
        let image = ArrayD::zeros(vec![1, 2, height, width]);
        network.run(&[image.view()]).expect_err("a small image");
    }
}

#[test]
fn forged_windows_are_errors() {
    for (name, values) in [
        ("pads", &[HUGE; 4][..]),
        ("pads", &[-1; 4]),
        ("pads", &[1 << 40, 0, 0, 0]),
        ("pads", &[1]),
        ("strides", &[0, 1]),
        ("strides", &[-1, 1]),
        ("strides", &[1]),
        ("dilations", &[2, 2]),
    ] {
        refused(|graph, image| convolution(graph, image, name, values));
    }
    for kernel in [&[HUGE, HUGE][..], &[0, 0], &[9, 9], &[2, HUGE], &[]] {
        let kernel = vec![Attribute::ints("kernel_shape", kernel)];
        refused(|graph, image| graph.add("MaxPool", &[image], kernel.clone()));
    }
}

#[test]
fn a_stride_beyond_the_image_leaves_one_pixel() {
    let graph = graph(|graph, image| {
        let weights = graph.add_floats(&[1, 2, 1, 1], &[1.0; 2]);
        let attributes = vec![
            Attribute::ints("strides", &[HUGE, HUGE]),
            Attribute::ints("pads", &[0, 5, 0, 0]),
        ];
        graph.add("Conv", &[image, weights], attributes)
    });
    let network = Network::new(&graph).expect("a network that is supported");
    let outputs = network.run(&[ArrayD::ones(vec![1, 2, 8, 8]).view()]);
    assert_eq!(outputs, Ok(vec![ArrayD::zeros(vec![1, 1, 1, 1])]));
}

#[test]
fn forged_sizes_are_errors() {
    for scale in [f32::NAN, f32::INFINITY, -1.0, 0.0, 1e9] {
        refused(|graph, image| resize(graph, image, Some(scale), &[]));
    }
    for sizes in [
        &[1, 2, HUGE, HUGE][..],
        &[1, 2, 0, 8],
        &[1, 2, -1, 8],
        &[1, 2, -5, 8],
        &[8, 8],
        &[],
    ] {
        refused(|graph, image| resize(graph, image, None, sizes));
    }
    refused(|graph, image| {
        let wide = resize(graph, image, None, &[1, 2, 16384, 16384]);
        graph.add("Concat", &[wide, wide], vec![Attribute::int("axis", 1)])
    });
    for added in [HUGE, 1 << 40, -1] {
        refused(|graph, image| {
            let pads = graph.add_ints(&[8], &[0, 0, 0, 0, 0, added, 0, 0]);
            let wide = graph.add("Pad", &[image, pads], vec![]);
            graph.add("Relu", &[wide], vec![])
        });
    }
}

#[test]
fn networks_that_double_what_they_are_given_are_errors() {
    let doubled = |graph: &mut Graph, mut value: Value, axis: i64| {
        for _ in 0..64 {
            value = graph.add(
                "Concat",
                &[value, value],
                vec![Attribute::int("axis", axis)],
            );
        }
        value
    };
    refused(|graph, image| doubled(graph, image, 1));
    refused(|graph, image| {
        let flat = graph.add("Flatten", &[image], vec![]);
        doubled(graph, flat, 1)
    });
    refused(|graph, image| {
        let shape = graph.add("Shape", &[image], vec![]);
        doubled(graph, shape, 0)
    });
    refused(|graph, mut image| {
        for _ in 0..5000 {
            image = graph.add("Sigmoid", &[image], vec![]);
        }
        image
    });
}

#[test]
fn nodes_without_operands_are_errors() {
    for op in [
        "Conv",
        "MaxPool",
        "GlobalAveragePool",
        "Gemm",
        "Relu",
        "PRelu",
        "Clip",
        "HardSigmoid",
        "Sigmoid",
        "Sqrt",
        "Add",
        "Sub",
        "Mul",
        "Div",
        "LayerNormalization",
        "ReduceMean",
        "ReduceSum",
        "Pad",
        "Concat",
        "Resize",
        "Transpose",
        "Reshape",
        "Flatten",
        "Slice",
        "Identity",
        "Shape",
        "Gather",
        "Unsqueeze",
        "Cast",
        "Constant",
        "BatchNormalization",
    ] {
        let reason = refused(|graph, _| graph.add(op, &[], vec![]));
        assert!(reason.contains(op), "{reason}");
    }
}

#[test]
fn too_little_memory_is_an_error_with_the_amount() {
    let bytes = 1 << 62;
    let error = OutOfMemory { bytes };
    assert_eq!(memory::zeros::<f32>(1 << 60), Err(error));
    assert_eq!(memory::reserve(&mut vec![0u32; 3], 1 << 60), Err(error));
    assert_eq!(memory::check(bytes), Err(error));
}

#[test]
fn memory_that_is_available_is_provided() {
    let mut values = vec![1u8, 2];
    memory::reserve(&mut values, 1 << 20).expect("memory");
    assert!(values.capacity() >= 2 + (1 << 20));
    assert_eq!(memory::zeros::<u8>(3), Ok(vec![0; 3]));
}
