// SPDX-License-Identifier: MPL-2.0
//! Divides a network of images into its first layers, whose values depend on a few pixels each, and
//! the rest. Where an image is black, the values of the first layers are known before the network
//! runs.

use super::convolution::Convolution;
use super::{Graph, Node, Port, Value};

/// Maximum reach of the first layers, px. With a larger one, fewer of their values are known.
const MAX_REACH: usize = 40;

/// Maximum extent of a window.
const MAX_WINDOW: usize = 64;

/// A network in two parts.
pub struct Parts {
    /// The first layers: from an image to the values between the parts.
    pub first: Graph,
    /// The other layers: from these values to the outputs.
    pub rest: Graph,
    /// Dependence on the image of the values between the parts.
    pub border: Border,
}

/// Dependence of values on an image, along each axis: value i depends on pixels i·stride − reach to
/// i·stride + reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Border {
    /// Stride of each value, px, in the order of the first part's outputs. Each divides the largest.
    pub strides: Vec<usize>,
    /// The largest reach, px.
    pub reach: usize,
}

/// Dependence of a value on the image.
#[derive(Clone, Copy)]
struct Place {
    channels: usize,
    stride: usize,
    reach: usize,
}

/// Divides a sorted graph whose only input is an image of any size; `None` if that is impossible.
pub fn divide(graph: &Graph) -> Option<Parts> {
    let (image, channels) = image_of_any_size(graph)?;
    let mut places = vec![None; graph.values.len()];
    places[image.0] = Some(Place {
        channels,
        stride: 1,
        reach: 0,
    });
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for node in &graph.nodes {
        match place(graph, node, &places) {
            Some(place) if place.reach <= MAX_REACH => {
                places[node.output().0] = Some(place);
                first.push(node.clone());
            }
            _ => rest.push(node.clone()),
        }
    }
    let mut between = Vec::new();
    let outputs = graph.outputs.iter().map(|port| port.value);
    let taken = rest.iter().flat_map(|node| node.inputs.iter().copied());
    for value in taken.chain(outputs).filter(|v| places[v.0].is_some()) {
        if !between.contains(&value) {
            between.push(value);
        }
    }
    let is_passed_on = |port: &Port| between.contains(&port.value);
    if between.is_empty() || between.contains(&image) || graph.outputs.iter().any(is_passed_on) {
        return None;
    }
    let of_nodes = |nodes| Graph {
        nodes,
        ..graph.clone()
    };
    let (mut first, mut rest) = (of_nodes(first), of_nodes(rest));
    first.set_outputs(&between);
    let places = between
        .iter()
        .filter_map(|value| Some((*value, places[value.0]?)));
    let images: Vec<_> = places
        .clone()
        .map(|(value, p)| (value, p.channels))
        .collect();
    rest.set_images(&images);
    let (strides, reaches): (Vec<_>, Vec<_>) = places.map(|(_, p)| (p.stride, p.reach)).unzip();
    let (reach, largest) = (reaches.into_iter().max()?, *strides.iter().max()?);
    if !strides.iter().all(|stride| largest.is_multiple_of(*stride)) {
        return None;
    }
    let border = Border { strides, reach };
    Some(Parts {
        first,
        rest,
        border,
    })
}

/// The only input of a graph and its channels, if it is an image of any size.
fn image_of_any_size(graph: &Graph) -> Option<(Value, usize)> {
    let mut inputs = graph
        .inputs
        .iter()
        .filter(|port| !graph.is_constant(port.value));
    let (image, None) = (inputs.next()?, inputs.next()) else {
        return None;
    };
    let kind = image.kind.as_ref()?;
    match kind.extents()[..] {
        [_, Some(channels), None, None] if kind.is_of_floats() => Some((image.value, channels)),
        _ => None,
    }
}

/// The place of a node's output, if it is the only one and an image that depends on few pixels.
fn place(graph: &Graph, node: &Node, places: &[Option<Place>]) -> Option<Place> {
    let [_] = node.outputs[..] else { return None };
    let (image, others) = node.inputs.split_first()?;
    let of_image = places[image.0]?;
    match node.op.as_str() {
        _ if !node.domain.is_empty() => None,
        "Relu" => Some(of_image),
        "Add" => {
            let [other] = others else { return None };
            let other = places[other.0]?;
            (other.stride == of_image.stride).then_some(Place {
                reach: other.reach.max(of_image.reach),
                ..of_image
            })
        }
        "MaxPool" => window(node)?.after(of_image),
        "Conv" => {
            let channels = Convolution::of(graph, node)?.outputs();
            let of_image = window(node)?.after(of_image)?;
            Some(Place {
                channels,
                ..of_image
            })
        }
        _ => None,
    }
}

/// The square window of an operator.
struct Window {
    extent: usize,
    stride: usize,
    before: usize,
}

/// The window of `node`, if the output has 1/stride of the extents of every image whose extents
/// are multiples of the stride.
fn window(node: &Node) -> Option<Window> {
    let ints = |name| node.attribute(name).map(|own| &own.ints[..]);
    let is_dense = ints("dilations").is_none_or(|own| own.iter().all(|step| *step == 1));
    let has_mode = ["auto_pad", "ceil_mode"].map(|name| node.attribute(name).is_some());
    if !is_dense || has_mode.contains(&true) {
        return None;
    }
    let square = |name, default: &'static [i64]| match *ints(name).unwrap_or(default) {
        [y, x] if x == y => usize::try_from(x).ok(),
        _ => None,
    };
    let (before, after) = match *ints("pads").unwrap_or(&[0; 4]) {
        [top, left, bottom, right] if top == left && bottom == right => {
            (usize::try_from(top).ok()?, usize::try_from(bottom).ok()?)
        }
        _ => return None,
    };
    let window = Window {
        extent: square("kernel_shape", &[])?,
        stride: square("strides", &[1, 1])?,
        before,
    };
    let is_small = window.extent <= MAX_WINDOW && before.max(after) < window.extent;
    let beyond = window.extent.checked_sub(before + after)?;
    (is_small && (1..=window.stride).contains(&beyond)).then_some(window)
}

impl Window {
    /// Maximum distance from a pixel to one that its value depends on.
    fn reach(&self) -> usize {
        self.before.max(self.extent - 1 - self.before)
    }

    fn after(&self, image: Place) -> Option<Place> {
        Some(Place {
            stride: image.stride.checked_mul(self.stride)?,
            reach: image
                .stride
                .checked_mul(self.reach())?
                .checked_add(image.reach)?,
            ..image
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::*;

    /// A graph that takes an image of any size.
    fn graph() -> (Graph, Value) {
        let mut graph = Graph::new(13);
        let image = graph.add_input("image", &[1, 3, 1, 1]);
        for axis in [2, 3] {
            graph.set_input_extent(axis, None);
        }
        (graph, image)
    }

    fn pool(graph: &mut Graph, image: Value, [window, stride, pad]: [i64; 3]) -> Value {
        let attributes = vec![
            Attribute::ints("kernel_shape", &[window; 2]),
            Attribute::ints("strides", &[stride; 2]),
            Attribute::ints("pads", &[pad; 4]),
        ];
        graph.add("MaxPool", &[image], attributes)
    }

    fn operators(graph: &Graph) -> Vec<&str> {
        graph.nodes.iter().map(|node| &node.op[..]).collect()
    }

    #[test]
    fn what_depends_on_few_pixels_comes_first() {
        let (mut graph, image) = graph();
        let half = pool(&mut graph, image, [3, 2, 1]);
        let relu = graph.add("Relu", &[half], vec![]);
        // Windows of two pixels that begin with the pixel itself.
        let quarter = pool(&mut graph, relu, [2, 2, 0]);
        let wide = pool(&mut graph, quarter, [5, 1, 2]);
        let sum = graph.add("Add", &[wide, quarter], vec![]);
        let mean = graph.add("GlobalAveragePool", &[sum], vec![]);
        let scaled = graph.add("Mul", &[mean, relu], vec![]);
        let far = pool(&mut graph, sum, [21, 1, 10]);
        graph.set_outputs(&[scaled, far]);
        let parts = divide(&graph).unwrap();
        let first = ["MaxPool", "Relu", "MaxPool", "MaxPool", "Add"];
        assert_eq!(operators(&parts.first), first);
        assert_eq!(
            operators(&parts.rest),
            ["GlobalAveragePool", "Mul", "MaxPool"]
        );
        let values = |ports: &[Port]| ports.iter().map(|port| port.value).collect::<Vec<_>>();
        assert_eq!(values(&parts.first.outputs), [sum, relu]);
        assert_eq!(values(&parts.rest.inputs), [sum, relu]);
        assert_eq!(values(&parts.rest.outputs), [scaled, far]);
        let [input, _] = &parts.rest.specs(&parts.rest.inputs)[..] else {
            panic!("two values are between the parts");
        };
        assert_eq!(input.shape, [Some(1), Some(3), None, None]);
        // 1 for the first window, 2 for the second, and 4·2 for the third.
        let expected = Border {
            strides: vec![4, 2],
            reach: 11,
        };
        assert_eq!(parts.border, expected);
    }

    #[test]
    fn windows_that_end_elsewhere_at_other_extents_are_left_to_the_rest() {
        for (window, is_first) in [
            ([3, 1, 1], true),
            ([3, 2, 1], true),
            ([2, 2, 0], true),
            ([3, 3, 0], true),
            ([3, 1, 0], false),
            ([2, 1, 1], false),
            ([5, 2, 1], false),
            ([3, 2, 2], false),
            ([1, 0, 0], false),
            ([65, 1, 32], false),
            ([-1, 1, 0], false),
        ] {
            let (mut graph, image) = graph();
            let first = pool(&mut graph, image, [1, 1, 0]);
            let pooled = pool(&mut graph, first, window);
            let mean = graph.add("GlobalAveragePool", &[pooled], vec![]);
            graph.set_outputs(&[mean]);
            let parts = divide(&graph).unwrap();
            let nodes = if is_first { 2 } else { 1 };
            assert_eq!(parts.first.nodes.len(), nodes, "{window:?}");
        }
        for attribute in [
            Attribute::int("ceil_mode", 1),
            Attribute::text("auto_pad", "SAME_UPPER"),
            Attribute::ints("dilations", &[2; 2]),
            Attribute::ints("kernel_shape", &[3, 5]),
            Attribute::ints("pads", &[1, 0, 1, 0]),
            Attribute::ints("kernel_shape", &[]),
        ] {
            let (mut graph, image) = graph();
            let first = pool(&mut graph, image, [1, 1, 0]);
            let pooled = pool(&mut graph, first, [3, 1, 1]);
            graph.nodes[1].set(attribute.clone());
            let mean = graph.add("GlobalAveragePool", &[pooled], vec![]);
            graph.set_outputs(&[mean]);
            let parts = divide(&graph).unwrap();
            assert_eq!(parts.first.nodes.len(), 1, "{attribute:?}");
        }
    }

    #[test]
    fn some_graphs_are_not_divided() {
        type Change = fn(&mut Graph, [Value; 3]);
        let changes: [Change; 5] = [
            // An image of one size.
            |graph, _| graph.set_input_extent(2, Some(64)),
            // A second input.
            |graph, _| {
                graph.add_input("other", &[1]);
            },
            // The rest takes the image too.
            |graph, [image, _, mean]| {
                let sum = graph.add("Mul", &[mean, image], vec![]);
                graph.set_outputs(&[sum]);
            },
            // An output that depends on few pixels.
            |graph, [_, pooled, mean]| graph.set_outputs(&[pooled, mean]),
            // Strides of 2 and 3.
            |graph, [image, pooled, mean]| {
                let third = pool(graph, image, [3, 3, 0]);
                let third = graph.add("GlobalAveragePool", &[third], vec![]);
                let half = graph.add("GlobalMaxPool", &[pooled], vec![]);
                graph.set_outputs(&[mean, third, half]);
            },
        ];
        for (index, change) in [None].into_iter().chain(changes.map(Some)).enumerate() {
            let (mut graph, image) = graph();
            let pooled = pool(&mut graph, image, [3, 2, 1]);
            let mean = graph.add("GlobalAveragePool", &[pooled], vec![]);
            graph.set_outputs(&[mean]);
            let values = [image, pooled, mean];
            let is_divided = change.is_none();
            if let Some(change) = change {
                change(&mut graph, values);
            }
            graph.sort();
            assert_eq!(divide(&graph).is_some(), is_divided, "{index}");
        }
    }
}
