// SPDX-License-Identifier: MPL-2.0
//! Runs of a network with layers of every kernel.

use std::thread;

use facetrack_graph::{Attribute, Graph, Value};
use facetrack_net::Network;
use fearless_simd::Level;
use ndarray::ArrayD;

/// Maximum number of different sizes of inputs whose memory is kept, apart from one for each core.
const SIZES: usize = 4;

/// Numbers between -0.5 and 0.5 that look random.
fn noise(length: usize) -> Vec<f32> {
    let number = |index: usize| ((index * 7919 + 13) % 2003) as f32 / 2003.0 - 0.5;
    (0..length).map(number).collect()
}

/// A convolution to this many channels; its kernel covers all inputs or one channel.
fn convolution(
    graph: &mut Graph,
    input: Value,
    shape: [usize; 4],
    attributes: &[(&str, i64)],
) -> Value {
    let weights = graph.add_floats(&shape, &noise(shape.iter().product()));
    let bias = graph.add_floats(&shape[..1], &noise(shape[0]));
    let pad = shape[2] as i64 / 2;
    let mut all = vec![Attribute::ints("pads", &[pad; 4])];
    for (name, value) in attributes {
        all.push(match *name {
            "strides" => Attribute::ints(name, &[*value; 2]),
            _ => Attribute::int(name, *value),
        });
    }
    graph.add("Conv", &[input, weights, bias], all)
}

/// Layers of every kernel: planar, dense and depthwise convolutions of several widths, with all
/// activations, a sum, a mean and a product.
fn network() -> Graph {
    let mut graph = Graph::new(17);
    let image = graph.add_input("image", &[1, 3, 37, 41]);
    let first = convolution(&mut graph, image, [24, 3, 3, 3], &[("strides", 2)]);
    let slopes = graph.add_floats(&[24, 1, 1], &noise(24));
    let first = graph.add("PRelu", &[first, slopes], vec![]);
    let mut value = first;
    for side in [3, 5] {
        let wide = convolution(&mut graph, value, [40, 24, 1, 1], &[]);
        let gate = graph.add("HardSigmoid", &[wide], vec![]);
        let wide = graph.add("Mul", &[wide, gate], vec![]);
        let deep = convolution(&mut graph, wide, [40, 1, side, side], &[("group", 40)]);
        let deep = graph.add("Relu", &[deep], vec![]);
        let mean = graph.add("GlobalAveragePool", &[deep], vec![]);
        let mean = graph.add("Sigmoid", &[mean], vec![]);
        let scaled = graph.add("Mul", &[deep, mean], vec![]);
        let narrow = convolution(&mut graph, scaled, [24, 40, 1, 1], &[]);
        value = graph.add("Add", &[narrow, value], vec![]);
    }
    let small = convolution(&mut graph, value, [8, 24, 3, 3], &[("strides", 2)]);
    graph.add_output("image", value);
    graph.add_output("small", small);
    graph
}

#[test]
fn all_processors_with_fused_sums_yield_the_same_bits() {
    let image = ArrayD::from_shape_vec(vec![1, 3, 37, 41], noise(3 * 37 * 41)).unwrap();
    let bits = |level: Level| -> Vec<u32> {
        let network = Network::new(&network()).unwrap().with_level(level);
        let outputs = network.run(&[image.view()]).unwrap();
        outputs.iter().flatten().map(|x| x.to_bits()).collect()
    };
    let best = Level::new();
    let expected = bits(best);
    #[cfg(target_arch = "x86_64")]
    match best.as_avx2() {
        Some(avx2) => assert_eq!(bits(Level::Avx2(avx2)), expected),
        None => eprintln!("SKIPPED: no AVX2 on this machine"),
    }
    assert!(expected.iter().any(|bits| *bits != 0));
}

#[test]
fn the_memory_of_few_runs_is_kept() {
    let network = Network::new(&network()).unwrap();
    let image = ArrayD::zeros(vec![1, 3, 37, 41]);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| network.run(&[image.view()]).unwrap());
        }
    });
    let most = SIZES + thread::available_parallelism().map_or(1, usize::from);
    let kept = network.kept_runs();
    assert!((1..=most).contains(&kept), "{kept}");
}
