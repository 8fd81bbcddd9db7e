// SPDX-License-Identifier: MPL-2.0
//! The part of the TFLite format that MediaPipe's networks use, as owned values.
//!
//! Field numbers and codes: `schema.fbs` of TensorFlow Lite, version 3.

use half::f16;

use super::flatbuffer::Table;
use crate::Result;

/// Maximum number of elements of a tensor: MediaPipe's networks have 734 208 at most.
const MAX_ELEMENTS: usize = 1 << 20;

/// Maximum number of axes of a tensor, as in TFLite's runtime.
const MAX_RANK: usize = 8;

/// A network: the first subgraph of a file.
#[derive(Debug)]
pub(super) struct Network<'a> {
    pub tensors: Vec<Tensor>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    pub operators: Vec<Operator<'a>>,
}

/// A value of the network.
#[derive(Debug)]
pub(super) struct Tensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub constant: Option<Constant>,
}

/// Content known when the file is read, row-major.
#[derive(Debug, Clone)]
pub(super) enum Constant {
    Float(Vec<f32>),
    Int(Vec<i32>),
}

/// A step of the network.
#[derive(Debug)]
pub(super) struct Operator<'a> {
    /// Operator code, as `BuiltinOperator` numbers them.
    pub code: i32,
    /// Input tensors; `None` for an optional one that is left out.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
    /// The table of options that belongs to the code.
    pub options: Option<Table<'a>>,
}

impl<'a> Network<'a> {
    /// Reads the network of a `.tflite` file.
    pub(super) fn parse(data: &'a [u8]) -> Result<Self> {
        let model = Table::root(data, b"TFL3")?;
        let codes = model.each(1, operator_code)?;
        let graphs = model.tables(2)?;
        let [graph] = graphs.as_slice() else {
            return Err(format!(
                "it has {} subgraphs, and exactly one is supported",
                graphs.len()
            ));
        };
        let buffers = model.tables(4)?;
        // Constants do not overlap in a valid file, so together they are smaller than the file.
        let mut budget = data.len();
        let tensors = graph.each(0, |tensor| read_tensor(tensor, &buffers, &mut budget))?;
        let count = tensors.len();
        Ok(Self {
            tensors,
            inputs: required_tensors(graph, 1, count, "a tensor")?,
            outputs: required_tensors(graph, 2, count, "a tensor")?,
            operators: graph.each(3, |operator| read_operator(operator, &codes, count))?,
        })
    }
}

/// Reads the code of an operator from one of two fields: older files, which have no codes above
/// 127, have only the byte.
fn operator_code(table: &Table<'_>) -> Result<i32> {
    Ok(table.i32(3, 0)?.max(i32::from(table.u8(0)?)))
}

fn read_operator<'a>(table: &Table<'a>, codes: &[i32], tensors: usize) -> Result<Operator<'a>> {
    let code = codes.get(table.index(0)?);
    Ok(Operator {
        code: *code.ok_or("an operator's code is missing")?,
        inputs: tensors_of(table, 1, tensors)?,
        outputs: required_tensors(table, 2, tensors, "an operator's output")?,
        options: table.table(4)?,
    })
}

/// A vector of indices into `count` tensors; −1 stands for a tensor left out.
fn tensors_of(table: &Table<'_>, field: usize, count: usize) -> Result<Vec<Option<usize>>> {
    let indices = table.i32_vector(field)?.into_iter();
    indices
        .map(|index| match usize::try_from(index) {
            Ok(known) if known < count => Ok(Some(known)),
            _ if index == -1 => Ok(None),
            _ => Err(format!("tensor {index} does not exist")),
        })
        .collect()
}

/// Reads a vector like [`tensors_of`]; every tensor is required. `what` names a tensor in error
/// messages.
fn required_tensors(
    table: &Table<'_>,
    field: usize,
    count: usize,
    what: &str,
) -> Result<Vec<usize>> {
    let tensors: Option<_> = tensors_of(table, field, count)?.into_iter().collect();
    tensors.ok_or_else(|| format!("{what} is left out"))
}

fn read_tensor(table: &Table<'_>, buffers: &[Table<'_>], budget: &mut usize) -> Result<Tensor> {
    let name = table.string(3)?;
    let shape = table
        .i32_vector(0)?
        .into_iter()
        .map(|n| usize::try_from(n).ok().filter(|n| *n > 0))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| format!("tensor {name} has a side that is not positive"))?;
    let elements = shape
        .iter()
        .try_fold(1usize, |product, n| product.checked_mul(*n))
        .filter(|n| *n <= MAX_ELEMENTS && shape.len() <= MAX_RANK)
        .ok_or_else(|| format!("tensor {name} is larger than supported: {shape:?}"))?;
    let buffer = buffers
        .get(table.index(2)?)
        .ok_or_else(|| format!("tensor {name} has no buffer"))?;
    let content = buffer.byte_vector(0)?;
    *budget = budget
        .checked_sub(content.len())
        .ok_or("its constants overlap")?;
    let constant = (!content.is_empty())
        .then(|| read_constant(table.u8(1)?, content, elements, &name))
        .transpose()?;
    Ok(Tensor {
        name,
        shape,
        constant,
    })
}

fn read_constant(kind: u8, content: &[u8], elements: usize, name: &str) -> Result<Constant> {
    let constant = match kind {
        0 => Constant::Float(each(content, f32::from_le_bytes)),
        1 => Constant::Float(each(content, |b| f16::from_le_bytes(b).to_f32())),
        2 => Constant::Int(each(content, i32::from_le_bytes)),
        other => {
            return Err(format!(
                "tensor {name} has element type {other}, and only f32, f16 and i32 are supported"
            ));
        }
    };
    let found = match &constant {
        Constant::Float(values) => values.len(),
        Constant::Int(values) => values.len(),
    };
    if found != elements {
        return Err(format!(
            "tensor {name} has {found} elements of the {elements} its shape demands"
        ));
    }
    Ok(constant)
}

fn each<const N: usize, T>(content: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (chunks, _) = content.as_chunks();
    chunks.iter().map(|chunk| read(*chunk)).collect()
}
