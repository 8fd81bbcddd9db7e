// SPDX-License-Identifier: MPL-2.0
//! Computes graphs, slowly and in 64 bits. An operator panics if its inputs do not fit each other.

use facetrack_graph::{Attribute, Graph, Node, Value};
use ndarray::{Array1, Array4, ArrayD, Axis, Ix2, IxDyn, Zip, concatenate, s};

pub type Tensor = ArrayD<f64>;

/// The outputs of `graph`, and the largest absolute value on the way to them.
pub fn evaluate(graph: &Graph, inputs: &[Tensor]) -> (Vec<Tensor>, f64) {
    let mut known = Known {
        graph,
        values: Vec::new(),
        largest: 1.0,
    };
    for (port, input) in graph.inputs.iter().zip(inputs) {
        known.values.push((port.value, input.clone()));
    }
    for node in &graph.nodes {
        let output = known.yielded(node);
        known.add(node.output(), output);
    }
    let outputs = graph.outputs.iter().map(|port| known.get(port.value));
    (outputs.collect(), known.largest)
}

/// The values computed so far.
struct Known<'a> {
    graph: &'a Graph,
    values: Vec<(Value, Tensor)>,
    largest: f64,
}

impl Known<'_> {
    fn add(&mut self, value: Value, tensor: Tensor) {
        let shape = self.graph.shape(value);
        assert!(
            shape.is_empty() || shape == tensor.shape(),
            "{shape:?} is {:?}",
            tensor.shape()
        );
        self.largest = tensor
            .iter()
            .fold(self.largest, |most, own| most.max(own.abs()));
        self.values.push((value, tensor));
    }

    fn get(&self, value: Value) -> Tensor {
        if let Some(floats) = self.graph.floats(value) {
            return floats.mapv(f64::from);
        }
        if let Some(ints) = self.graph.ints(value) {
            return numbers(ints.into_iter().map(|number| number as f64));
        }
        let known = self.values.iter().rfind(|(own, _)| *own == value);
        known.expect("a value that was computed before").1.clone()
    }

    fn yielded(&self, node: &Node) -> Tensor {
        let input = |index: usize| self.get(node.inputs[index]);
        match node.op.as_str() {
            "Add" => input(0) + input(1),
            "Sub" => input(0) - input(1),
            "Mul" => input(0) * input(1),
            "Div" => input(0) / input(1),
            "Neg" => -input(0),
            "Sqrt" => input(0).sqrt(),
            "Reciprocal" => input(0).recip(),
            "Relu" => input(0).mapv(|x| x.max(0.0)),
            "PRelu" => prelu(input(0), &input(1)),
            "Clip" => clip(input(0), scalar(&input(1)), scalar(&input(2))),
            "HardSigmoid" => {
                let [alpha, beta] = ["alpha", "beta"].map(|name| float(node, name));
                input(0).mapv(|x| (alpha * x + beta).clamp(0.0, 1.0))
            }
            "Conv" | "FusedConv" => {
                let bias = node.inputs.get(2).map(|bias| self.get(*bias));
                activated(node, convolution(node, &input(0), &input(1), bias))
            }
            "Sigmoid" => input(0).mapv(|x| 1.0 / (1.0 + (-x).exp())),
            "BatchNormalization" => {
                let [scale, added, mean, variance] = [1, 2, 3, 4].map(input);
                let factors = scale / (variance + float(node, "epsilon")).sqrt();
                (input(0) - per_channel(mean)) * per_channel(factors) + per_channel(added)
            }
            "Flatten" => {
                let length = input(0).len();
                let flat = input(0).into_shape_with_order(vec![1, length]);
                flat.expect("a row of all elements")
            }
            "MaxPool" => pooled(node, &input(0)),
            "GlobalAveragePool" => mean(mean(input(0), 3), 2),
            "Concat" => {
                let parts: Vec<Tensor> = node.inputs.iter().map(|v| self.get(*v)).collect();
                let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
                concatenate(Axis(int(node, "axis", 0)), &views).expect("parts that fit")
            }
            "Gather" => input(0).select(Axis(int(node, "axis", 0)), &indices(&input(1))),
            "Slice" => {
                let [begin, end, axis] = [1, 2, 3].map(|index| scalar(&input(index)) as usize);
                let indices: Vec<usize> = (begin..end).collect();
                input(0).select(Axis(axis), &indices)
            }
            "Pad" => padded(&input(0), &indices(&input(1))),
            "Shape" => numbers(input(0).shape().iter().map(|side| *side as f64)),
            "Resize" if is_linear(node) => stretched(&input(0), &indices(&input(3))),
            "Resize" => resized(&input(0), &indices(&input(3))),
            "ReduceMean" => mean(input(0), reduced(node, input(0).ndim())),
            "ReduceSum" => {
                let axis = Axis(reduced(node, input(0).ndim()));
                input(0).sum_axis(axis).insert_axis(axis)
            }
            "Constant" => {
                let ints = node
                    .attribute("value")
                    .and_then(|own| own.t.as_ref()?.to_ints());
                numbers(ints.expect("integers").into_iter().map(|n| n as f64))
            }
            "Identity" | "Cast" | "Unsqueeze" => input(0),
            "Reshape" => {
                let shape = indices(&input(1));
                input(0)
                    .into_shape_with_order(shape)
                    .expect("a shape that fits")
            }
            "LayerNormalization" => normalised(input(0), &input(1), float(node, "epsilon")),
            "Gemm" => {
                let right = match int(node, "transB", 0) {
                    0 => input(1),
                    _ => input(1).reversed_axes(),
                };
                let product = product(input(0), right);
                match node.inputs.get(2) {
                    None => product,
                    Some(added) => product + self.get(*added),
                }
            }
            other => panic!("{other} is not computed"),
        }
    }
}

fn product(a: Tensor, b: Tensor) -> Tensor {
    let [a, b] = [a, b].map(|m| m.into_dimensionality::<Ix2>().expect("a matrix"));
    a.dot(&b).into_dyn()
}

fn numbers(numbers: impl Iterator<Item = f64>) -> Tensor {
    Array1::from_iter(numbers).into_dyn()
}

fn indices(tensor: &Tensor) -> Vec<usize> {
    tensor.iter().map(|number| *number as usize).collect()
}

fn scalar(tensor: &Tensor) -> f64 {
    assert_eq!(tensor.len(), 1, "not a single number");
    tensor.sum()
}

fn int(node: &Node, name: &str, default: usize) -> usize {
    let number = node.attribute(name).and_then(|own| own.i);
    number.map_or(default, |number| number as usize)
}

/// The axis that `node` reduces, of `axes` or, without the attribute, the last one.
fn reduced(node: &Node, axes: usize) -> usize {
    let axis = node.attribute("axes").map_or(-1, |own| own.ints[0]);
    axis.rem_euclid(axes as i64) as usize
}

fn float(node: &Node, name: &str) -> f64 {
    let number = node.attribute(name).and_then(|own| own.f);
    f64::from(number.expect("an attribute that has no default here"))
}

fn ints<const N: usize>(node: &Node, name: &str, default: usize) -> [usize; N] {
    let Some(Attribute { ints, .. }) = node.attribute(name) else {
        return [default; N];
    };
    std::array::from_fn(|index| ints[index] as usize)
}

fn clip(tensor: Tensor, least: f64, most: f64) -> Tensor {
    tensor.mapv(|x| x.max(least).min(most))
}

fn prelu(tensor: Tensor, slopes: &Tensor) -> Tensor {
    let negative = tensor.mapv(|x| x.min(0.0)) * slopes;
    tensor.mapv(|x| x.max(0.0)) + negative
}

/// The mean along `axis`, which keeps one element.
fn mean(tensor: Tensor, axis: usize) -> Tensor {
    let mean = tensor.mean_axis(Axis(axis)).expect("no empty axis");
    mean.insert_axis(Axis(axis))
}

fn normalised(tensor: Tensor, scale: &Tensor, epsilon: f64) -> Tensor {
    let last = tensor.ndim() - 1;
    let centred = &tensor - &mean(tensor.clone(), last);
    let variance = mean(&centred * &centred, last);
    centred / (variance + epsilon).sqrt() * scale
}

/// Adds zeros; `pads` are those before and after each axis.
fn padded(tensor: &Tensor, pads: &[usize]) -> Tensor {
    let (before, after) = pads.split_at(tensor.ndim());
    let axes = tensor.shape().iter().zip(before).zip(after);
    let sides: Vec<usize> = axes
        .map(|((side, before), after)| before + side + after)
        .collect();
    let mut padded = Tensor::zeros(sides);
    let mut inner = padded.slice_each_axis_mut(|axis| {
        let start = before[axis.axis.index()];
        (start..start + tensor.shape()[axis.axis.index()]).into()
    });
    inner.assign(tensor);
    padded
}

/// The nearest element, rounded down.
fn resized(tensor: &Tensor, sides: &[usize]) -> Tensor {
    Tensor::from_shape_fn(sides, |place| {
        let near = (0..sides.len()).map(|axis| place[axis] * tensor.shape()[axis] / sides[axis]);
        tensor[IxDyn(&near.collect::<Vec<_>>())]
    })
}

fn is_linear(node: &Node) -> bool {
    let mode = node.attribute("mode").and_then(|own| own.s.as_deref());
    mode == Some(b"linear")
}

/// Linear interpolation, with the centres of the corner pixels in place.
fn stretched(tensor: &Tensor, sides: &[usize]) -> Tensor {
    let place = |at: usize, axis: usize| {
        let place = (at * (tensor.shape()[axis] - 1)) as f64 / (sides[axis] - 1).max(1) as f64;
        let near = place as usize;
        let far = (near + 1).min(tensor.shape()[axis] - 1);
        [
            (near, near as f64 + 1.0 - place),
            (far, place - near as f64),
        ]
    };
    Tensor::from_shape_fn(sides, |to| {
        let rows = place(to[2], 2).into_iter();
        let corners = rows.flat_map(|row| place(to[3], 3).map(|column| (row, column)));
        let weighted =
            corners.map(|((y, down), (x, across))| tensor[[to[0], to[1], y, x]] * down * across);
        weighted.sum()
    })
}

/// Numbers of channels as an image of one pixel.
fn per_channel(numbers: Tensor) -> Tensor {
    let count = numbers.len();
    let pixel = numbers.into_shape_with_order(vec![count, 1, 1]);
    pixel.expect("one number for each channel")
}

fn pooled(node: &Node, image: &Tensor) -> Tensor {
    let [height, width] = ints(node, "kernel_shape", 1);
    let strides: [usize; 2] = ints(node, "strides", 1);
    let [top, left, bottom, right]: [usize; 4] = ints(node, "pads", 0);
    let sides = image.shape();
    let [rows, columns] = [
        (sides[2] + top + bottom, height, 0),
        (sides[3] + left + right, width, 1),
    ]
    .map(|(side, kernel, axis)| (side - kernel) / strides[axis] + 1);
    Tensor::from_shape_fn(vec![1, sides[1], rows, columns], |place| {
        let kernel = (0..height).flat_map(|y| (0..width).map(move |x| (y, x)));
        let near = kernel.filter_map(|(y, x)| {
            let y = (place[2] * strides[0] + y).checked_sub(top)?;
            let x = (place[3] * strides[1] + x).checked_sub(left)?;
            image.get([0, place[1], y, x]).copied()
        });
        near.fold(f64::NEG_INFINITY, f64::max)
    })
}

fn convolution(node: &Node, image: &Tensor, weights: &Tensor, bias: Option<Tensor>) -> Tensor {
    let groups = int(node, "group", 1);
    let [top, left, bottom, right]: [usize; 4] = ints(node, "pads", 0);
    let image = padded(image, &[0, 0, top, left, 0, 0, bottom, right]);
    let [image, weights] = [image, weights.clone()].map(four);
    let (outputs, inputs, height, width) = weights.dim();
    let (_, channels, rows, columns) = image.dim();
    assert_eq!(channels, inputs * groups, "channels of a convolution");
    assert_eq!(outputs % groups, 0, "groups of a convolution");
    let strides: [usize; 2] = ints(node, "strides", 1);
    let (last_row, last_column) = (rows - height, columns - width);
    let [down, across] = strides.map(|stride| stride as isize);
    let sides = (
        1,
        outputs,
        last_row / strides[0] + 1,
        last_column / strides[1] + 1,
    );
    let mut output = Array4::zeros(sides);
    for ((to, from, y, x), weight) in weights.indexed_iter().filter(|(_, weight)| **weight != 0.0) {
        let channel = to / (outputs / groups) * inputs + from;
        let near = image.slice(s![0, channel, y..=y + last_row; down, x..=x + last_column; across]);
        output
            .slice_mut(s![0, to, .., ..])
            .scaled_add(*weight, &near);
    }
    match bias {
        None => output.into_dyn(),
        Some(bias) => {
            output.into_dyn()
                + bias
                    .into_shape_with_order(vec![outputs, 1, 1])
                    .expect("a bias")
        }
    }
}

/// An image or weights.
fn four(tensor: Tensor) -> Array4<f64> {
    tensor.into_dimensionality().expect("four axes")
}

/// The activation of a convolution that has one in it.
fn activated(node: &Node, tensor: Tensor) -> Tensor {
    let name = node
        .attribute("activation")
        .and_then(|own| own.s.as_deref());
    match name {
        None => tensor,
        Some(b"Relu") => tensor.mapv(|x| x.max(0.0)),
        Some(b"Clip") => {
            let parameters = node.attribute("activation_params").expect("bounds");
            let [least, most] = [0, 1].map(|index| f64::from(parameters.floats[index]));
            clip(tensor, least, most)
        }
        Some(other) => panic!("{other:?} is not computed"),
    }
}

/// The largest difference of two tensors of one shape.
pub fn difference(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.shape(), b.shape());
    Zip::from(a)
        .and(b)
        .fold(0.0_f64, |most, a, b| most.max((a - b).abs()))
}
