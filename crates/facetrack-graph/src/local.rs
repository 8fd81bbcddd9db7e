// SPDX-License-Identifier: MPL-2.0
//! Separates the outputs of a detector that are only needed where it found something: the boxes of
//! most cells are never read. A cell is a position in a feature map.

use super::convolution::Convolution;
use super::parts::{image_of_any_size, window};
use super::{Graph, Node, Value};

/// A network, and the layers separated from it.
pub struct Separated {
    /// From the image to the other outputs, followed by the features.
    pub main: Graph,
    /// From the features to the outputs that are needed at few cells.
    pub local: Graph,
    /// The outputs of a cell depend on the features of this many cells to each side of it.
    pub reach: usize,
}

/// A value that an output is computed from.
struct Source {
    value: Value,
    channels: usize,
    /// Cells to each side that a cell of the output depends on.
    reach: usize,
}

/// Separates the outputs from number `first` on of a sorted graph that takes images of any size;
/// `None` if that is impossible. There are as many features as other outputs.
pub fn separate(graph: &Graph, first: usize) -> Option<Separated> {
    let image = image_of_any_size(graph)?;
    let (others, outputs) = graph.outputs.split_at_checked(first)?;
    let producers = graph.producers();
    let (mut features, mut reach) = (Vec::new(), 0);
    for port in outputs {
        let source = source(graph, &producers, port.value)?;
        reach = reach.max(source.reach);
        if !features.contains(&source.value) {
            features.push(source.value);
        }
    }
    let mut main = graph.clone();
    main.set_outputs(&features);
    main.outputs.splice(..0, others.iter().cloned());
    main.sort();
    let mut local = graph.clone();
    local.outputs = outputs.to_vec();
    local.set_images(&features);
    let yields_feature = |node: &Node| node.outputs.iter().any(|value| features.contains(value));
    local.nodes.retain(|node| !yields_feature(node));
    local.sort();
    let takes_image = local.nodes.iter().any(|node| node.inputs.contains(&image));
    (features.len() == first && !takes_image).then_some(Separated { main, local, reach })
}

/// The value with the fewest channels among those that `output` is computed from through
/// convolutions with small windows.
fn source(graph: &Graph, producers: &[Option<usize>], output: Value) -> Option<Source> {
    let mut best: Option<Source> = None;
    let (mut value, mut reach, mut end) = (output, 0, graph.nodes.len());
    // In a forged graph with a cycle, a node does not come after those that it depends on.
    while let Some(index) = producers[value.0].filter(|index| *index < end) {
        let node = &graph.nodes[index];
        let is_before_convolutions = best.is_none() && is_arrangement(graph, node);
        if !is_before_convolutions && !node.is("Relu") {
            let convolution = Convolution::of(graph, node).filter(|own| own.node.is("Conv"));
            let window = window(node).filter(|window| window.stride == 1);
            let Some((convolution, window)) = convolution.zip(window) else {
                break;
            };
            reach += window.reach();
            let channels = convolution.groups * convolution.inputs_of_group();
            if best.as_ref().is_none_or(|best| channels < best.channels) {
                best = Some(Source {
                    value: convolution.input(),
                    channels,
                    reach,
                });
            }
        }
        (value, end) = (*node.inputs.first()?, index);
    }
    best
}

/// Whether `node` makes an array of the cells of an image, however many there are.
fn is_arrangement(graph: &Graph, node: &Node) -> bool {
    let is_of_any_length = |shape: &Value| {
        let extents = graph.ints(*shape);
        !graph.is_constant(*shape) || extents.is_some_and(|extents| extents.contains(&-1))
    };
    node.is("Transpose") || (node.is("Reshape") && node.inputs.get(1).is_some_and(is_of_any_length))
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::*;

    /// A graph under construction.
    struct Network {
        graph: Graph,
        image: Value,
    }

    impl Network {
        fn new() -> Self {
            let mut graph = Graph::new(13);
            let image = graph.add_input("image", &[1, 3, 1, 1]);
            for axis in [2, 3] {
                graph.set_input_extent(axis, None);
            }
            Self { graph, image }
        }

        fn convolution(
            &mut self,
            image: Value,
            dims: [usize; 4],
            attributes: &[Attribute],
        ) -> Value {
            let weights = vec![1.0; dims.iter().product()];
            let weights = self.graph.add_floats(&dims, &weights);
            let pads = Attribute::ints("pads", &[dims[2] as i64 / 2; 4]);
            let kernel = Attribute::ints("kernel_shape", &[dims[2] as i64; 2]);
            let attributes = attributes.iter().cloned().chain([pads, kernel]);
            self.graph
                .add("Conv", &[image, weights], attributes.collect())
        }

        /// An array of the cells of `image`.
        fn cells(&mut self, image: Value) -> Value {
            let shape = self.graph.add_ints(&[3], &[1, -1, 4]);
            let last = vec![Attribute::ints("perm", &[0, 2, 3, 1])];
            let moved = self.graph.add("Transpose", &[image], last);
            self.graph.add("Reshape", &[moved, shape], vec![])
        }
    }

    fn operators(graph: &Graph) -> Vec<&str> {
        graph.nodes.iter().map(|node| &node.op[..]).collect()
    }

    fn values(ports: &[super::super::Port]) -> Vec<Value> {
        ports.iter().map(|port| port.value).collect()
    }

    #[test]
    fn boxes_follow_from_the_fewest_channels_near_them() {
        let mut network = Network::new();
        let strided = Attribute::ints("strides", &[2; 2]);
        let half = network.convolution(network.image, [32, 3, 3, 3], &[strided]);
        let few = network.convolution(half, [8, 32, 1, 1], &[]);
        let few = network.graph.add("Relu", &[few], vec![]);
        let many = network.convolution(few, [64, 8, 5, 5], &[]);
        let many = network.graph.add("Relu", &[many], vec![]);
        let [score, found] =
            [2, 8].map(|outputs| network.convolution(many, [outputs, 64, 3, 3], &[]));
        let boxes = network.cells(found);
        network.graph.set_outputs(&[score, boxes]);
        let separated = separate(&network.graph, 1).unwrap();
        assert_eq!(separated.reach, 3);
        assert_eq!(values(&separated.main.outputs), [score, few]);
        assert_eq!(
            operators(&separated.main),
            ["Conv", "Conv", "Relu", "Conv", "Relu", "Conv"]
        );
        assert_eq!(values(&separated.local.inputs), [few]);
        assert_eq!(values(&separated.local.outputs), [boxes]);
        assert_eq!(
            operators(&separated.local),
            ["Conv", "Relu", "Conv", "Transpose", "Reshape"]
        );
    }

    #[test]
    fn some_outputs_are_not_separated() {
        type Change = fn(&mut Network, Value) -> Value;
        let changes: [Change; 8] = [
            // An array of so many cells.
            |network, features| {
                let found = network.convolution(features, [4, 8, 3, 3], &[]);
                let shape = network.graph.add_ints(&[3], &[1, 64, 4]);
                network.graph.add("Reshape", &[found, shape], vec![])
            },
            // A product after the convolution.
            |network, features| {
                let found = network.convolution(features, [4, 8, 3, 3], &[]);
                let scale = network.graph.add_floats(&[], &[2.0]);
                network.graph.add("Mul", &[found, scale], vec![])
            },
            // An image of one size, for which the shapes of the outputs may be fixed.
            |network, features| {
                network.graph.set_input_extent(2, Some(64));
                network.convolution(features, [4, 8, 3, 3], &[])
            },
            // Fewer features than other outputs.
            |network, features| {
                network.graph.set_outputs(&[features, features]);
                network.convolution(features, [4, 8, 3, 3], &[])
            },
            // A value of all cells.
            |network, features| network.graph.add("GlobalAveragePool", &[features], vec![]),
            // The image itself is what has the fewest channels.
            |network, _| {
                let image = network.image;
                network.convolution(image, [4, 3, 3, 3], &[])
            },
            // The separated layers take the image as well.
            |network, features| {
                let found = network.convolution(features, [4, 8, 3, 3], &[]);
                let shape = network.graph.add("Shape", &[network.image], vec![]);
                network.graph.add("Reshape", &[found, shape], vec![])
            },
            // A cell for each four.
            |network, features| {
                let strides = Attribute::ints("strides", &[2; 2]);
                network.convolution(features, [4, 8, 3, 3], &[strides])
            },
        ];
        let plain: Change = |network, features| network.convolution(features, [4, 8, 3, 3], &[]);
        for (index, change) in [plain].into_iter().chain(changes).enumerate() {
            let mut network = Network::new();
            let features = network.convolution(network.image, [8, 3, 3, 3], &[]);
            let features = network.graph.add("MaxPool", &[features], vec![]);
            let output = change(&mut network, features);
            let others = network.graph.outputs.len().max(1);
            let mut outputs = vec![features; others];
            outputs.push(output);
            network.graph.set_outputs(&outputs);
            network.graph.sort();
            let separated = separate(&network.graph, others);
            assert_eq!(separated.is_some(), index == 0, "{index}");
        }
    }

    #[test]
    fn a_graph_with_a_cycle_is_left_alone() {
        let mut network = Network::new();
        let first = network.graph.add("Relu", &[network.image], vec![]);
        let second = network.graph.add("Relu", &[first], vec![]);
        network.graph.nodes[0].inputs[0] = second;
        network.graph.set_outputs(&[second, second]);
        assert!(separate(&network.graph, 1).is_none());
    }
}
