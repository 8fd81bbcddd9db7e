// SPDX-License-Identifier: MPL-2.0
//! Products with constant matrices.

use facetrack_graph::{Floats, Node};
use ndarray::{Array2, Ix2};

use super::{Form, Lowering, Order, Piece, Result, float, int, operand};
use crate::kernel::dense::Weights;
use crate::kernel::{BLOCK, padded};
use crate::layer::{MAX_KERNEL, Operator, Shape, Window};

impl Lowering<'_> {
    /// Multiplies a matrix by a constant one, or a constant one by a matrix.
    pub(super) fn product(&mut self, node: &Node) -> Result<Piece> {
        if float(node, "alpha", 1.0) != 1.0 || float(node, "beta", 1.0) != 1.0 {
            return Err("factors of a product".to_owned());
        }
        let [left, right] = [operand(node, 0)?, operand(node, 1)?];
        let bias = match node.inputs.get(2) {
            None => None,
            Some(value) => Some(
                self.graph
                    .floats(*value)
                    .ok_or("a sum that is not constant")?,
            ),
        };
        match (self.graph.floats(left), self.graph.floats(right)) {
            (None, Some(right)) => {
                let right = oriented(node, "transB", right)?;
                let columns = right.ncols();
                self.times_constant(node, right, sized(bias, columns)?)
            }
            (Some(left), None) => {
                let left = oriented(node, "transA", left)?;
                let bias = sized(bias, left.nrows())?;
                self.constant_times(node, &left, &bias)
            }
            _ => Err("a product of two variables".to_owned()),
        }
    }

    /// Multiplies a matrix, or an image as a row, by a constant.
    fn times_constant(
        &mut self,
        node: &Node,
        mut right: Array2<f32>,
        mut bias: Vec<f32>,
    ) -> Result<Piece> {
        if int(node, "transA", 0) != 0 {
            return Err("a matrix that is transposed".to_owned());
        }
        let mut output = node.output();
        if let Some((after, factors, added)) = self.normalized(output, bias.len()) {
            for (index, bias) in bias.iter_mut().enumerate() {
                *bias = *bias * factors[index] + added[index];
                right
                    .column_mut(index)
                    .mapv_inplace(|weight| weight * factors[index]);
            }
            output = after;
        }
        let yielded = match self.form(node.inputs[0])? {
            Form::Flat(pieces, _) => self.flattened(&pieces, &right, &bias)?,
            _ => self.rows_times(node, &right, &bias)?,
        };
        self.forms.insert(output, Form::Tensor(yielded));
        Ok(yielded)
    }

    fn rows_times(&mut self, node: &Node, right: &Array2<f32>, bias: &[f32]) -> Result<Piece> {
        let piece = self.tensor(node.inputs[0])?;
        let (channels, stored) = self.channels[piece.id];
        if piece.order != Order::ChannelsLast || channels != right.nrows() {
            return Err(format!(
                "a product of {channels} and {} columns",
                right.nrows()
            ));
        }
        self.reserve(&[stored, padded(bias.len())])?;
        let weights = Weights::new([1; 2], [stored, BLOCK], bias, |_, _, input, column| {
            right.get([input, column]).copied().unwrap_or_default()
        });
        let operator = Operator::Dense(weights, Window::PIXEL);
        self.add(operator, vec![piece.id], bias.len(), piece.order)
    }

    /// Multiplies the elements of an image by a constant.
    fn flattened(&mut self, pieces: &[Piece], right: &Array2<f32>, bias: &[f32]) -> Result<Piece> {
        let [
            Piece {
                id,
                order: Order::ChannelsFirst,
            },
        ] = *pieces
        else {
            return Err("a product of a list".to_owned());
        };
        let shape = self.shapes[id].ok_or("an image of unknown size as a list")?;
        let Shape {
            height,
            width,
            channels,
            stored,
            ..
        } = shape;
        if right.nrows() != shape.len() || height > MAX_KERNEL {
            return Err("a product of an image of this size".to_owned());
        }
        self.reserve(&[height, width, stored, padded(bias.len())])?;
        let kernel = [height, width];
        let weights =
            Weights::new(
                kernel,
                [stored, BLOCK],
                bias,
                |y, x, channel, column| match channel < channels {
                    true => right[[(channel * height + y) * width + x, column]],
                    false => 0.0,
                },
            );
        let window = Window {
            kernel,
            ..Window::PIXEL
        };
        let operator = Operator::Dense(weights, window);
        self.add(operator, vec![id], bias.len(), Order::ChannelsLast)
    }

    fn constant_times(&mut self, node: &Node, left: &Array2<f32>, bias: &[f32]) -> Result<Piece> {
        let piece = self.tensor(node.inputs[1])?;
        if piece.order != Order::ChannelsLast || int(node, "transB", 0) != 0 {
            return Err("an image where a matrix is needed".to_owned());
        }
        self.reserve(&[left.nrows(), left.ncols() + 1])?;
        let rows = left.outer_iter().zip(bias);
        let constant =
            rows.flat_map(|(row, bias)| row.iter().chain([bias]).copied().collect::<Vec<_>>());
        let operator = Operator::Mix {
            constant: constant.collect(),
            rows: left.nrows(),
        };
        self.add_like(operator, piece)
    }
}

/// A constant matrix, transposed if the attribute `name` says so.
fn oriented(node: &Node, name: &str, constant: Floats) -> Result<Array2<f32>> {
    let constant = constant.into_dimensionality::<Ix2>();
    let constant = constant.map_err(|_| "a constant that is no matrix")?;
    Ok(match int(node, name, 0) {
        0 => constant,
        _ => constant.reversed_axes(),
    })
}

/// A bias of this length.
fn sized(bias: Option<Floats>, length: usize) -> Result<Vec<f32>> {
    let bias = bias.map_or_else(|| vec![0.0; length], |bias| bias.iter().copied().collect());
    match bias.len() == length {
        true => Ok(bias),
        false => Err("a sum of another size".to_owned()),
    }
}
