// SPDX-License-Identifier: MPL-2.0
//! Operators that treat elements alike, and reductions.

use super::super::flatbuffer::Reason;
use super::super::graph::{Attribute, Value};
use super::super::schema::Operator;
use super::{FIRST_FROM_LAST, Lowering, input, output};

impl Lowering<'_> {
    /// Applies `ops`, one after the other, in the form in which the tensor is at hand.
    pub(super) fn unary(
        &mut self,
        operator: &Operator<'_>,
        ops: &[&'static str],
    ) -> Result<(), Reason> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let channels_first = self.is_channels_first(source);
        let mut value = match channels_first {
            true => self.channels_first(source)?,
            false => self.as_filed(source)?,
        };
        for op in ops {
            let shape = self.graph.shape(value).to_vec();
            value = self.graph.node(op, &[value], vec![], shape);
        }
        match channels_first {
            true => self.set_channels_first(target, value),
            false => self.set_as_filed(target, value),
        }
        Ok(())
    }

    pub(super) fn binary(
        &mut self,
        operator: &Operator<'_>,
        op: &'static str,
    ) -> Result<(), Reason> {
        let target = output(operator)?;
        let activation = operator.options.map_or(Ok(0), |options| options.u8(0))?;
        if self.wants_channels_first(operator)? {
            let a = self.channels_first_operand(input(operator, 0)?)?;
            let b = self.channels_first_operand(input(operator, 1)?)?;
            let shape = super::first_from_last(self.shape(target))?;
            let value = self.graph.node(op, &[a, b], vec![], shape);
            let value = self.activated(value, activation)?;
            self.set_channels_first(target, value);
        } else {
            let a = self.as_filed(input(operator, 0)?)?;
            let b = self.as_filed(input(operator, 1)?)?;
            let value = self.graph.node(
                op,
                &[a, b],
                vec![],
                self.network.tensors[target].shape.clone(),
            );
            let value = self.activated(value, activation)?;
            self.set_as_filed(target, value);
        }
        Ok(())
    }

    /// Whether all operands are images or constants, and one of them has its channels first.
    fn wants_channels_first(&self, operator: &Operator<'_>) -> Result<bool, Reason> {
        let operands = [input(operator, 0)?, input(operator, 1)?];
        let possible = operands.iter().all(|tensor| {
            let rank = self.shape(*tensor).len();
            rank == 4 || (rank < 4 && self.constant(*tensor).is_some())
        });
        Ok(possible
            && operands
                .iter()
                .any(|tensor| self.is_channels_first(*tensor)))
    }

    /// An operand with channels first; axes that a constant lacks are added in front, as broadcasting does.
    fn channels_first_operand(&mut self, tensor: usize) -> Result<Value, Reason> {
        if self.shape(tensor).len() == 4 {
            return self.channels_first(tensor);
        }
        let value = self.as_filed(tensor)?;
        let shape = self.shape(tensor);
        let mut image = vec![1; 4 - shape.len()];
        image.extend_from_slice(shape);
        let value = self.graph.reshape(value, image);
        Ok(self.graph.transpose(value, &FIRST_FROM_LAST))
    }

    pub(super) fn squared_difference(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let target = output(operator)?;
        let a = self.as_filed(input(operator, 0)?)?;
        let b = self.as_filed(input(operator, 1)?)?;
        let shape = self.shape(target).to_vec();
        let difference = self.graph.node("Sub", &[a, b], vec![], shape.clone());
        let square = self
            .graph
            .node("Mul", &[difference, difference], vec![], shape);
        self.set_as_filed(target, square);
        Ok(())
    }

    pub(super) fn mean(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let axes = self.reduced_axes(operator)?;
        let keep = keep_dims(operator)?;
        let attributes = vec![("axes", Attribute::Ints(axes)), ("keepdims", keep)];
        let value = self.as_filed(input(operator, 0)?)?;
        let target = output(operator)?;
        let shape = self.shape(target).to_vec();
        let value = self.graph.node("ReduceMean", &[value], attributes, shape);
        self.set_as_filed(target, value);
        Ok(())
    }

    pub(super) fn sum(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let axes = self.reduced_axes(operator)?;
        let keep = keep_dims(operator)?;
        let axes = self.graph.integers(axes);
        let value = self.as_filed(input(operator, 0)?)?;
        let target = output(operator)?;
        let shape = self.shape(target).to_vec();
        let value = self
            .graph
            .node("ReduceSum", &[value, axes], vec![("keepdims", keep)], shape);
        self.set_as_filed(target, value);
        Ok(())
    }

    /// The axes of a reduction, counted from the front.
    fn reduced_axes(&self, operator: &Operator<'_>) -> Result<Vec<i64>, Reason> {
        let rank = self.shape(input(operator, 0)?).len() as i64;
        self.ints(input(operator, 1)?)?
            .iter()
            .map(|axis| {
                let axis = i64::from(*axis);
                let axis = if axis < 0 { axis + rank } else { axis };
                (0..rank)
                    .contains(&axis)
                    .then_some(axis)
                    .ok_or_else(|| format!("axis {axis} does not exist"))
            })
            .collect()
    }
}

fn keep_dims(operator: &Operator<'_>) -> Result<Attribute, Reason> {
    let keep = operator.options.map_or(Ok(0), |options| options.u8(0))?;
    Ok(Attribute::Int(i64::from(keep != 0)))
}
