// SPDX-License-Identifier: MPL-2.0
//! The passes that rewrite graphs: what a graph computes must stay the same.

use arbitrary::Unstructured;
use facetrack_graph::Graph;
use facetrack_graph::passes::{self, COMMON, OPENSEEFACE, Pass};

use crate::build::{Origin, graph};
use crate::evaluate::{Tensor, difference, evaluate};
use crate::shared::{Noise, pick, within};

/// Memory for a pass; the graphs are small.
const MEMORY: usize = 64 << 20;

/// Largest difference, relative to the largest value: a hard sigmoid's factor is rounded to `f32`.
const TOLERANCE: f64 = 1e-6;

/// Bytes that the largest graph is built from.
const LONGEST: usize = 1024;

pub fn passes(data: &[u8]) {
    if data.len() > LONGEST {
        return;
    }
    let mut input = Unstructured::new(data);
    let origin = [Origin::Tflite, Origin::Onnx][pick(&mut input, 0..=1)];
    let list = match origin {
        Origin::Tflite => COMMON,
        Origin::Onnx => OPENSEEFACE,
    };
    let chosen = pick(&mut input, 0..=2 * list.len());
    let mut graph = graph(&mut input, origin);
    let mut noise = Noise::new(&mut input);
    let inputs: Vec<Tensor> = graph
        .inputs
        .iter()
        .map(|port| {
            let shape = graph.shape(port.value).to_vec();
            Tensor::from_shape_simple_fn(shape, || f64::from(noise.next()))
        })
        .collect();
    if origin == Origin::Onnx {
        graph = reread(graph);
    }
    // One of them, or all.
    let list = list.get(chosen..=chosen).unwrap_or(list);
    assert_same(graph, &inputs, list);
}

/// The graph as a file, which has no shapes.
fn reread(graph: Graph) -> Graph {
    Graph::read(graph.encode()).expect("it was written")
}

fn assert_same(mut graph: Graph, inputs: &[Tensor], list: &[Pass]) {
    let (before, largest) = evaluate(&graph, inputs);
    within(MEMORY, || passes::run(&mut graph, list)).expect("it is small");
    let (after, peak) = evaluate(&graph, inputs);
    let tolerance = TOLERANCE * largest.max(peak);
    for (before, after) in before.iter().zip(&after) {
        let apart = difference(before, after);
        assert!(apart <= tolerance, "an output differs by {apart}");
    }
    let (written, _) = evaluate(&reread(graph), inputs);
    assert!(written == after, "it changes when it is written");
}
