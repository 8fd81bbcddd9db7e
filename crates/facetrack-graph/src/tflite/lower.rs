// SPDX-License-Identifier: MPL-2.0
//! Lowers a TFLite network to an ONNX graph.
//!
//! TFLite's images have channels last, ONNX's convolutions need them first. Each tensor keeps the
//! form that its operator yields, and gets the other form only if an operator needs it. If only the
//! last two sides of a tensor exceed 1, it is a matrix, and the two forms are the matrix and its
//! transpose. So the transpositions around the blocks of the blendshape network that mix tokens
//! cost nothing.

mod convolution;
mod elementwise;
mod shape;

use std::borrow::Cow;
use std::collections::HashSet;

use super::flatbuffer::Table;
use super::schema::{Constant, Network, Operator};
use crate::{Attribute, Graph, Reason, Result, Value};

/// The first version of ONNX's operators with `LayerNormalization`.
const OPSET: i64 = 17;

/// Order of axes that brings channels first.
const FIRST_FROM_LAST: [usize; 4] = [0, 3, 1, 2];

/// Order of axes that brings channels last.
const LAST_FROM_FIRST: [usize; 4] = [0, 2, 3, 1];

/// Order of axes that transposes a matrix.
const TRANSPOSED: [usize; 2] = [1, 0];

/// Names of operators by their code, from `BuiltinOperator` in TFLite's schema: operators of
/// MediaPipe's face networks, and others for the message that refuses them.
#[rustfmt::skip]
const OPERATORS: [(i32, &str); 45] = [
    (0, "ADD"), (1, "AVERAGE_POOL_2D"), (2, "CONCATENATION"), (3, "CONV_2D"), (4, "DEPTHWISE_CONV_2D"),
    (5, "DEPTH_TO_SPACE"), (6, "DEQUANTIZE"), (9, "FULLY_CONNECTED"), (14, "LOGISTIC"), (17, "MAX_POOL_2D"),
    (18, "MUL"), (19, "RELU"), (21, "RELU6"), (22, "RESHAPE"), (23, "RESIZE_BILINEAR"), (25, "SOFTMAX"),
    (26, "SPACE_TO_DEPTH"), (28, "TANH"), (32, "CUSTOM"), (34, "PAD"), (36, "GATHER"), (39, "TRANSPOSE"),
    (40, "MEAN"), (41, "SUB"), (42, "DIV"), (43, "SQUEEZE"), (45, "STRIDED_SLICE"), (47, "EXP"), (49, "SPLIT"),
    (53, "CAST"), (54, "PRELU"), (55, "MAXIMUM"), (57, "MINIMUM"), (59, "NEG"), (65, "SLICE"), (67, "TRANSPOSE_CONV"),
    (74, "SUM"), (75, "SQRT"), (76, "RSQRT"), (83, "PACK"), (97, "RESIZE_NEAREST_NEIGHBOR"), (98, "LEAKY_RELU"),
    (99, "SQUARED_DIFFERENCE"), (114, "QUANTIZE"), (117, "HARD_SWISH"),
];

/// Lowers `network`.
pub(super) fn lower(network: &Network<'_>) -> Result<Graph> {
    check_names(network)?;
    let mut lowering = Lowering::new(network);
    lowering.declare_inputs()?;
    for (index, operator) in network.operators.iter().enumerate() {
        lowering
            .operator(operator)
            .and_then(|()| lowering.graph.check_size())
            .map_err(|reason| format!("operator {index} ({}): {reason}", name(operator.code)))?;
    }
    lowering.declare_outputs()?;
    Ok(lowering.graph)
}

/// Refuses a network whose inputs and outputs do not have different names: ONNX identifies values
/// by their names.
fn check_names(network: &Network<'_>) -> Result<()> {
    let ports = network.inputs.iter().chain(&network.outputs);
    let mut names = HashSet::new();
    for name in ports.map(|tensor| &network.tensors[*tensor].name) {
        if !names.insert(name) {
            return Err(format!("two of its inputs and outputs are named {name}"));
        }
    }
    Ok(())
}

/// The forms of a tensor that were computed so far.
#[derive(Debug, Clone, Copy, Default)]
struct Forms {
    /// Axes as in the file; for a matrix, without leading axes of length 1.
    as_filed: Option<Value>,
    /// For an image: batch, channels, height, width. For a matrix: its transpose.
    channels_first: Option<Value>,
}

impl Forms {
    fn channels_first(value: Value) -> Self {
        Self {
            as_filed: None,
            channels_first: Some(value),
        }
    }
}

struct Lowering<'a> {
    network: &'a Network<'a>,
    graph: Graph,
    forms: Vec<Forms>,
    /// For each tensor, the tensor with its constant: itself, or the source of a dequantisation.
    constants: Vec<usize>,
}

impl<'a> Lowering<'a> {
    fn new(network: &'a Network<'a>) -> Self {
        Self {
            network,
            graph: Graph::new(OPSET),
            forms: vec![Forms::default(); network.tensors.len()],
            constants: (0..network.tensors.len()).collect(),
        }
    }

    /// Declares the inputs. An image that a convolution reads has its channels first.
    fn declare_inputs(&mut self) -> Result<()> {
        for &tensor in &self.network.inputs {
            let info = &self.network.tensors[tensor];
            let read_by_convolution = self.network.operators.iter().any(|operator| {
                name(operator.code) == "CONV_2D" && operator.inputs.first() == Some(&Some(tensor))
            });
            self.forms[tensor] = if read_by_convolution {
                let shape = first_from_last(&info.shape)?;
                let value = self.graph.add_input(&info.name, &shape);
                self.image_forms(tensor, value)
            } else {
                let value = self.graph.add_input(&info.name, &info.shape);
                self.filed_forms(tensor, value)
            };
        }
        Ok(())
    }

    fn declare_outputs(&mut self) -> Result<()> {
        for &tensor in &self.network.outputs {
            let mut value = self.whole(tensor)?;
            // An output needs a value of its own to carry its name.
            let mut taken = self.graph.inputs.iter().chain(&self.graph.outputs);
            if taken.any(|port| port.value == value) {
                value = self.graph.add_elementwise("Identity", &[value]);
            }
            self.graph
                .add_output(&self.network.tensors[tensor].name, value);
        }
        Ok(())
    }

    fn operator(&mut self, operator: &Operator<'_>) -> Result<()> {
        let forms = match name(operator.code).as_ref() {
            "DEQUANTIZE" => self.dequantize(operator),
            "CONV_2D" => self.conv_2d(operator),
            "DEPTHWISE_CONV_2D" => self.depthwise_conv_2d(operator),
            "MAX_POOL_2D" => self.max_pool_2d(operator),
            "PRELU" => self.prelu(operator),
            "RELU" => self.unary(operator, &["Relu"]),
            "LOGISTIC" => self.unary(operator, &["Sigmoid"]),
            "NEG" => self.unary(operator, &["Neg"]),
            "SQRT" => self.unary(operator, &["Sqrt"]),
            "RSQRT" => self.unary(operator, &["Sqrt", "Reciprocal"]),
            "ADD" => self.binary(operator, "Add"),
            "SUB" => self.binary(operator, "Sub"),
            "MUL" => self.binary(operator, "Mul"),
            "DIV" => self.binary(operator, "Div"),
            "SQUARED_DIFFERENCE" => self.squared_difference(operator),
            "MEAN" => self.reduction(operator, "ReduceMean"),
            "SUM" => self.reduction(operator, "ReduceSum"),
            "PAD" => self.pad(operator),
            "RESHAPE" => self.reshape(operator),
            "TRANSPOSE" => self.transpose(operator),
            "CONCATENATION" => self.concatenation(operator),
            "STRIDED_SLICE" => self.strided_slice(operator),
            _ => Err("it is not supported".into()),
        };
        self.forms[output(operator)?] = forms?;
        Ok(())
    }

    /// Does nothing: weights are stored as f16 and were read as f32.
    fn dequantize(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let source = input(operator, 0)?;
        let source = self.constants[source];
        if self.network.tensors[source].constant.is_none() {
            return Err("only constants are supported".into());
        }
        let target = output(operator)?;
        self.expect_shape(target, self.shape(source))?;
        self.constants[target] = source;
        Ok(self.forms[target])
    }

    fn shape(&self, tensor: usize) -> &'a [usize] {
        &self.network.tensors[tensor].shape
    }

    /// Refuses a tensor whose shape in the file differs from `expected`.
    fn expect_shape(&self, tensor: usize, expected: &[usize]) -> Result<()> {
        let shape = self.shape(tensor);
        if shape == expected {
            return Ok(());
        }
        Err(format!(
            "its output has the shape {shape:?}, not {expected:?}"
        ))
    }

    fn constant(&self, tensor: usize) -> Option<&'a Constant> {
        self.network.tensors[self.constants[tensor]]
            .constant
            .as_ref()
    }

    fn floats(&self, tensor: usize) -> Result<&'a [f32]> {
        match self.constant(tensor) {
            Some(Constant::Float(values)) => Ok(values),
            _ => Err("weights that are not constant are not supported".into()),
        }
    }

    fn ints(&self, tensor: usize) -> Result<&'a [i32]> {
        match self.constant(tensor) {
            Some(Constant::Int(values)) => Ok(values),
            _ => Err("parameters that are not constant are not supported".into()),
        }
    }

    /// Returns true if only the last two sides exceed 1.
    fn is_matrix(&self, tensor: usize) -> bool {
        matches!(self.shape(tensor), [front @ .., _, _] if front.iter().all(|side| *side == 1))
    }

    /// The shape of a tensor's form as filed.
    fn filed_shape(&self, tensor: usize) -> Vec<usize> {
        match *self.shape(tensor) {
            [.., rows, columns] if self.is_matrix(tensor) => vec![rows, columns],
            ref shape => shape.to_vec(),
        }
    }

    /// The shape of a tensor's form with channels first.
    fn first_shape(&self, tensor: usize) -> Result<Vec<usize>> {
        match *self.shape(tensor) {
            [.., rows, columns] if self.is_matrix(tensor) => Ok(vec![columns, rows]),
            ref shape => first_from_last(shape),
        }
    }

    /// The order of axes that makes the form with channels first of the form as filed.
    fn first_order(&self, tensor: usize) -> &'static [usize] {
        match self.is_matrix(tensor) {
            true => &TRANSPOSED,
            false => &FIRST_FROM_LAST,
        }
    }

    /// The tensor with its axes as in the file; a matrix without the axes of length 1 in front.
    fn as_filed(&mut self, tensor: usize) -> Result<Value> {
        if let Some(value) = self.forms[tensor].as_filed {
            return Ok(value);
        }
        let value = match self.forms[tensor].channels_first {
            Some(value) if self.is_matrix(tensor) => self.graph.transpose(value, &TRANSPOSED),
            Some(value) => self.graph.transpose(value, &LAST_FROM_FIRST),
            None => {
                let content = self.floats(tensor).map_err(|_| self.unknown(tensor))?;
                self.graph.add_floats(&self.filed_shape(tensor), content)
            }
        };
        self.forms[tensor].as_filed = Some(value);
        Ok(value)
    }

    /// The image with its channels first, or the transposed matrix.
    fn channels_first(&mut self, tensor: usize) -> Result<Value> {
        if let Some(value) = self.forms[tensor].channels_first {
            return Ok(value);
        }
        let value = self.as_filed(tensor)?;
        self.first_shape(tensor)?;
        let value = self.graph.transpose(value, self.first_order(tensor));
        self.forms[tensor].channels_first = Some(value);
        Ok(value)
    }

    /// The tensor with all its axes, as in the file.
    fn whole(&mut self, tensor: usize) -> Result<Value> {
        let value = self.as_filed(tensor)?;
        Ok(self.graph.reshape(value, self.shape(tensor).to_vec()))
    }

    /// The tensor as an image: batch, channels, height, width.
    fn image(&mut self, tensor: usize) -> Result<Value> {
        let shape = first_from_last(self.shape(tensor))?;
        let value = self.channels_first(tensor)?;
        Ok(self.graph.reshape(value, shape))
    }

    /// Returns true if the tensor exists only with its channels first.
    fn is_channels_first(&self, tensor: usize) -> bool {
        let forms = &self.forms[tensor];
        forms.channels_first.is_some() && forms.as_filed.is_none()
    }

    fn unknown(&self, tensor: usize) -> Reason {
        let name = &self.network.tensors[tensor].name;
        format!("tensor {name} is used before it is computed")
    }

    /// A tensor whose value has its axes as in the file.
    fn filed_forms(&mut self, tensor: usize, value: Value) -> Forms {
        Forms {
            as_filed: Some(self.graph.reshape(value, self.filed_shape(tensor))),
            channels_first: None,
        }
    }

    /// A tensor whose value is an image: batch, channels, height, width.
    fn image_forms(&mut self, tensor: usize, value: Value) -> Forms {
        Forms::channels_first(match *self.shape(tensor) {
            [1, 1, width, channels] => self.graph.reshape(value, vec![channels, width]),
            _ => value,
        })
    }

    /// Appends the activation that TFLite fuses into an operator.
    fn activated(&mut self, value: Value, activation: u8) -> Result<Value> {
        match activation {
            0 => Ok(value),
            1 => Ok(self.graph.add_elementwise("Relu", &[value])),
            other => Err(format!("fused activation {other} is not supported")),
        }
    }
}

impl Graph {
    /// `value` with its elements under another shape. Chains of reshapes become one.
    fn reshape(&mut self, value: Value, shape: Vec<usize>) -> Value {
        let source = match self.producer(value) {
            Some(node) if node.is("Reshape") => node.inputs[0],
            _ => value,
        };
        if self.shape(source) == shape {
            return source;
        }
        if let Some(content) = self.floats(source) {
            return self.add_floats(&shape, &content);
        }
        let extents: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
        let target = self.add_ints(&[extents.len()], &extents);
        self.add_shaped("Reshape", &[source, target], vec![], shape)
    }

    /// `value` with its axes in another order.
    fn transpose(&mut self, value: Value, order: &[usize]) -> Value {
        let shape = self.shape(value);
        let target: Vec<usize> = order.iter().map(|axis| shape[*axis]).collect();
        // No element moves if axes longer than 1 keep their order.
        if order.iter().filter(|axis| shape[**axis] > 1).is_sorted() {
            return self.reshape(value, target);
        }
        let order: Vec<i64> = order.iter().map(|axis| *axis as i64).collect();
        let attributes = vec![Attribute::ints("perm", &order)];
        self.add_shaped("Transpose", &[value], attributes, target)
    }
}

/// The name of an operator.
fn name(code: i32) -> Cow<'static, str> {
    let known = OPERATORS.iter().find(|(other, _)| *other == code);
    known.map_or_else(|| format!("code {code}").into(), |(_, name)| (*name).into())
}

fn input(operator: &Operator<'_>, index: usize) -> Result<usize> {
    let tensor = operator.inputs.get(index).copied().flatten();
    tensor.ok_or_else(|| format!("input {index} is missing"))
}

fn output(operator: &Operator<'_>) -> Result<usize> {
    match operator.outputs.as_slice() {
        [tensor] => Ok(*tensor),
        other => Err(format!("it has {} outputs", other.len())),
    }
}

fn options<'a>(operator: &Operator<'a>) -> Result<Table<'a>> {
    operator
        .options
        .ok_or_else(|| "its options are missing".into())
}

fn first_from_last(shape: &[usize]) -> Result<Vec<usize>> {
    let [batch, height, width, channels] = *shape else {
        return Err(format!("{shape:?} is not the shape of an image"));
    };
    Ok(vec![batch, channels, height, width])
}

/// An axis of `rank`, which a file may count from either end, counted from the end: −1 is the last.
fn axis_from_end(axis: i32, rank: usize) -> Result<i64> {
    let (axis, rank) = (i64::from(axis), rank as i64);
    match axis {
        _ if (0..rank).contains(&axis) => Ok(axis - rank),
        _ if (-rank..0).contains(&axis) => Ok(axis),
        _ => Err(format!("axis {axis} does not exist")),
    }
}
