// SPDX-License-Identifier: MPL-2.0
//! Element-wise operators, and reductions.

use super::super::schema::Operator;
use super::{Forms, Lowering, input, output};
use crate::{Attribute, Result, Value};

impl Lowering<'_> {
    /// Applies `ops`, one after the other, to the form of the tensor that exists.
    pub(super) fn unary(&mut self, operator: &Operator<'_>, ops: &[&str]) -> Result<Forms> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        self.expect_shape(target, self.shape(source))?;
        let is_channels_first = self.is_channels_first(source);
        let value = match is_channels_first {
            true => self.channels_first(source)?,
            false => self.as_filed(source)?,
        };
        let value = ops
            .iter()
            .fold(value, |value, op| self.graph.add_elementwise(op, &[value]));
        Ok(match is_channels_first {
            true => Forms::channels_first(value),
            false => self.filed_forms(target, value),
        })
    }

    pub(super) fn binary(&mut self, operator: &Operator<'_>, op: &str) -> Result<Forms> {
        let activation = operator.options.map_or(Ok(0), |options| options.u8(0))?;
        self.combine(operator, |lowering, a, b, shape| {
            let value = lowering.graph.add_shaped(op, &[a, b], vec![], shape);
            lowering.activated(value, activation)
        })
    }

    pub(super) fn squared_difference(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        self.combine(operator, |lowering, a, b, shape| {
            let difference = lowering.graph.add_shaped("Sub", &[a, b], vec![], shape);
            Ok(lowering
                .graph
                .add_elementwise("Mul", &[difference, difference]))
        })
    }

    /// Calls `apply` with both operands in the same form, and with the shape of the output in that
    /// form.
    fn combine(
        &mut self,
        operator: &Operator<'_>,
        apply: impl FnOnce(&mut Self, Value, Value, Vec<usize>) -> Result<Value>,
    ) -> Result<Forms> {
        let operands = [input(operator, 0)?, input(operator, 1)?];
        let target = output(operator)?;
        let shape = broadcast(self.shape(operands[0]), self.shape(operands[1]))?;
        self.expect_shape(target, &shape)?;
        if operands.iter().any(|t| self.is_channels_first(*t)) {
            let [a, b] = [
                self.operand(operands[0], target)?,
                self.operand(operands[1], target)?,
            ];
            let value = apply(self, a, b, self.first_shape(target)?)?;
            Ok(self.image_forms(target, value))
        } else {
            let [a, b] = [self.as_filed(operands[0])?, self.as_filed(operands[1])?];
            let value = apply(self, a, b, self.filed_shape(target))?;
            Ok(self.filed_forms(target, value))
        }
    }

    /// An operand with channels first. Axes that it lacks are added in front, as broadcasting does.
    fn operand(&mut self, tensor: usize, target: usize) -> Result<Value> {
        let is_matrix = self.is_matrix(target);
        if self.shape(tensor).len() == self.shape(target).len() {
            return match is_matrix {
                true => self.channels_first(tensor),
                false => self.image(tensor),
            };
        }
        let value = self.as_filed(tensor)?;
        let rank = if is_matrix { 2 } else { 4 };
        let mut shape = self.graph.shape(value).to_vec();
        if shape.len() > rank {
            return Err("its inputs do not fit each other".into());
        }
        shape.splice(0..0, vec![1; rank - shape.len()]);
        let value = self.graph.reshape(value, shape);
        Ok(self.graph.transpose(value, self.first_order(target)))
    }

    /// Applies `op`, which reduces axes to one element each.
    pub(super) fn reduction(&mut self, operator: &Operator<'_>, op: &str) -> Result<Forms> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let axes = self.reduced_axes(operator)?;
        self.expect_shape(target, &reduced(self.shape(source), &axes))?;
        let value = self.as_filed(source)?;
        let shape = reduced(self.graph.shape(value), &axes);
        // Of this version of ONNX's reductions, only sums take the axes as an input.
        let (inputs, attributes) = if op == "ReduceSum" {
            let list = self.graph.add_ints(&[axes.len()], &axes);
            (vec![value, list], vec![])
        } else {
            (vec![value], vec![Attribute::ints("axes", &axes)])
        };
        let value = self.graph.add_shaped(op, &inputs, attributes, shape);
        Ok(self.filed_forms(target, value))
    }

    /// The axes of a reduction, counted from the end, without the axes that a matrix leaves out.
    fn reduced_axes(&self, operator: &Operator<'_>) -> Result<Vec<i64>> {
        if operator.options.map_or(Ok(0), |options| options.u8(0))? == 0 {
            return Err("only reductions that keep their axes are supported".into());
        }
        let source = input(operator, 0)?;
        let rank = self.shape(source).len();
        let kept = self.filed_shape(source).len() as i64;
        let axes = self.ints(input(operator, 1)?)?.iter();
        let mut axes: Vec<i64> = axes
            .map(|axis| super::axis_from_end(*axis, rank))
            .collect::<Result<_, _>>()?;
        axes.retain(|axis| *axis >= -kept);
        if axes.is_empty() {
            return Err("a reduction over no axis is not supported".into());
        }
        Ok(axes)
    }
}

/// `shape` with one element on each of `axes`, which count from the end and exist.
fn reduced(shape: &[usize], axes: &[i64]) -> Vec<usize> {
    let mut reduced = shape.to_vec();
    for axis in axes {
        reduced[shape.len() - axis.unsigned_abs() as usize] = 1;
    }
    reduced
}

/// Output shape of an operator with operands of these shapes.
fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let side = |shape: &[usize], from_end: usize| {
        let index = shape.len().checked_sub(from_end);
        index.map_or(1, |index| shape[index])
    };
    (1..=a.len().max(b.len()))
        .rev()
        .map(|from_end| match (side(a, from_end), side(b, from_end)) {
            (1, other) | (other, 1) => Ok(other),
            (one, other) if one == other => Ok(one),
            _ => Err(format!(
                "its inputs of the shapes {a:?} and {b:?} do not fit each other"
            )),
        })
        .collect()
}
