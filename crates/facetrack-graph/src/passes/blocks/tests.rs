// SPDX-License-Identifier: MPL-2.0

use std::collections::HashMap;

use super::*;
use crate::Attribute;

/// A graph under construction.
#[derive(Default)]
struct Builder {
    graph: Graph,
    values: HashMap<String, Value>,
}

impl Builder {
    fn value(&mut self, name: &str) -> Value {
        let graph = &mut self.graph;
        let values = &mut self.values;
        *values
            .entry(name.to_owned())
            .or_insert_with(|| graph.add_value(Vec::new()))
    }

    /// A convolution of single pixels; the weight of output o for input i is 10 · (o + 1) + i.
    fn convolution(
        &mut self,
        input: &str,
        output: &str,
        outputs: usize,
        inputs: usize,
        group: usize,
    ) {
        let weights =
            (0..outputs).flat_map(|o| (0..inputs).map(move |i| (10 * (o + 1) + i) as f32));
        let weights: Vec<f32> = weights.collect();
        let weights = self.graph.add_floats(&[outputs, inputs, 1, 1], &weights);
        let input = self.value(input);
        let group = vec![Attribute::int("group", group as i64)];
        let value = self.graph.add("Conv", &[input, weights], group);
        self.values.insert(output.to_owned(), value);
    }

    fn node(&mut self, op: &str, inputs: &[&str], output: &str) {
        let inputs: Vec<Value> = inputs.iter().map(|name| self.value(name)).collect();
        let axis = vec![Attribute::int("axis", 1)];
        let attributes = if op == "Concat" { axis } else { vec![] };
        let value = self.graph.add(op, &inputs, attributes);
        self.values.insert(output.to_owned(), value);
    }

    /// The weights of the convolution that yields `value`, and its groups, in blocks of 4.
    fn rounded(mut self, output: &str) -> impl Fn(&str) -> (ndarray::Array4<f32>, usize) {
        let output = self.value(output);
        self.graph.set_outputs(&[output]);
        round_channels(&mut self.graph, 4).unwrap();
        move |value| {
            let convolution = Convolution::yielding(&self.graph, self.values[value]).unwrap();
            (convolution.weights, convolution.groups)
        }
    }
}

#[test]
fn channels_between_convolutions_are_rounded_up_with_zeros() {
    let mut builder = Builder::default();
    builder.convolution("input", "a", 3, 2, 1);
    builder.convolution("a", "b", 3, 1, 3);
    builder.node("Relu", &["b"], "c");
    builder.convolution("c", "output", 2, 3, 1);
    let of = builder.rounded("output");
    assert_eq!(of("a").0.shape(), [4, 2, 1, 1]);
    assert_eq!(
        of("a").0.as_slice().unwrap(),
        [10., 11., 20., 21., 30., 31., 0., 0.]
    );
    assert_eq!(of("b").1, 4);
    assert_eq!(of("b").0.as_slice().unwrap(), [10., 20., 30., 0.]);
    assert_eq!(of("output").0.shape(), [2, 4, 1, 1]);
    assert_eq!(
        of("output").0.as_slice().unwrap(),
        [10., 11., 12., 0., 20., 21., 22., 0.]
    );
}

#[test]
fn zeros_stay_where_images_are_joined() {
    let mut builder = Builder::default();
    builder.convolution("input", "a", 1, 1, 1);
    builder.convolution("input", "b", 2, 1, 1);
    builder.node("Concat", &["a", "b"], "c");
    builder.convolution("c", "output", 1, 3, 1);
    let of = builder.rounded("output");
    assert_eq!(
        of("output").0.as_slice().unwrap(),
        [10., 0., 0., 0., 11., 12., 0., 0.]
    );
}

#[test]
fn channels_that_an_other_operator_takes_stay() {
    for (op, user) in [("Softmax", "b"), ("Relu", "output")] {
        let mut builder = Builder::default();
        builder.convolution("input", "a", 3, 2, 1);
        builder.node(op, &["a"], user);
        if user == "b" {
            builder.node("Identity", &["b"], "output");
        }
        assert_eq!(builder.rounded("output")("a").0.shape()[0], 3, "{op}");
    }
    let mut builder = Builder::default();
    builder.convolution("input", "a", 3, 2, 1);
    builder.convolution("a", "output", 6, 1, 3);
    assert_eq!(
        builder.rounded("output")("a").0.shape()[0],
        3,
        "several filters"
    );
}

#[test]
fn a_graph_in_which_rounded_images_meet_others_stays() {
    let mut builder = Builder::default();
    builder.convolution("input", "a", 3, 2, 1);
    builder.convolution("input", "b", 3, 2, 1);
    builder.node("Softmax", &["b"], "b of its own");
    builder.node("Add", &["a", "b"], "c");
    builder.convolution("c", "d", 2, 3, 1);
    builder.node("Concat", &["d", "b of its own"], "output");
    let of = builder.rounded("output");
    assert_eq!(
        [of("a"), of("b")].map(|(weights, _)| weights.shape()[0]),
        [3, 3]
    );
}

#[test]
fn a_graph_whose_channels_do_not_fit_stays() {
    for (inputs, group) in [(4, 1), (1, 2)] {
        let mut builder = Builder::default();
        builder.convolution("input", "a", 3, 2, 1);
        builder.convolution("a", "output", 2, inputs, group);
        let of = builder.rounded("output");
        assert_eq!(of("a").0.shape(), [3, 2, 1, 1]);
        assert_eq!(of("output").0.shape(), [2, inputs, 1, 1]);
    }
}

#[test]
fn an_operator_with_a_constant_for_each_channel_keeps_the_channels() {
    let constants: [(&str, &[f32], usize); 4] = [
        ("Add", &[1.0, 2.0, 3.0], 3),
        ("Mul", &[1.0, 2.0, 3.0], 3),
        ("Add", &[1.0], 4),
        ("Mul", &[2.0], 4),
    ];
    for (op, values, channels) in constants {
        let mut builder = Builder::default();
        builder.convolution("input", "a", 3, 2, 1);
        let constant = builder.graph.add_floats(&[values.len(), 1, 1], values);
        builder.values.insert("constant".to_owned(), constant);
        builder.node(op, &["a", "constant"], "b");
        builder.convolution("b", "output", 2, 3, 1);
        let of = builder.rounded("output");
        assert_eq!(of("a").0.shape()[0], channels, "{op} {values:?}");
    }
}

#[test]
fn an_image_that_is_resized_to_a_constant_size_keeps_its_channels() {
    let mut builder = Builder::default();
    builder.convolution("input", "a", 3, 2, 1);
    let size = builder.graph.add_ints(&[4], &[1, 3, 8, 8]);
    builder.values.insert("size".to_owned(), size);
    builder.node("Resize", &["a", "roi", "scales", "size"], "b");
    builder.convolution("b", "output", 2, 3, 1);
    assert_eq!(builder.rounded("output")("a").0.shape()[0], 3);
}
