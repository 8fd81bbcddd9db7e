// SPDX-License-Identifier: MPL-2.0
//! Operators that move elements.

use std::ops::Range;

use super::super::schema::Operator;
use super::{FIRST_FROM_LAST, Forms, Lowering, input, options, output};
use crate::{Attribute, Result};

impl Lowering<'_> {
    pub(super) fn reshape(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let count = |tensor: usize| self.shape(tensor).iter().product::<usize>();
        if count(source) != count(target) {
            return Err("its output has another number of elements than its input".into());
        }
        let value = self.as_filed(source)?;
        Ok(self.filed_forms(target, value))
    }

    pub(super) fn transpose(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let order = self.order(input(operator, 1)?, self.shape(source).len())?;
        let sides = self.shape(source);
        let permuted: Vec<usize> = order.iter().map(|axis| sides[*axis]).collect();
        self.expect_shape(target, &permuted)?;
        if self.is_matrix(source) && swaps_last_two(&order) {
            let forms = self.forms[source];
            if forms.as_filed.is_none() && forms.channels_first.is_none() {
                return Err(self.unknown(source));
            }
            return Ok(Forms {
                as_filed: forms.channels_first,
                channels_first: forms.as_filed,
            });
        }
        let value = self.whole(source)?;
        let value = self.graph.transpose(value, &order);
        Ok(self.filed_forms(target, value))
    }

    /// A permutation of `rank` axes.
    fn order(&self, tensor: usize, rank: usize) -> Result<Vec<usize>> {
        let order: Vec<usize> = self
            .ints(tensor)?
            .iter()
            .filter_map(|axis| usize::try_from(*axis).ok())
            .collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.iter().copied().eq(0..rank) {
            Ok(order)
        } else {
            Err(format!("{order:?} is not an order of {rank} axes"))
        }
    }

    /// Pads images.
    pub(super) fn pad(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let value = self.image(source)?;
        let (amounts, rest) = self.ints(input(operator, 1)?)?.as_chunks::<2>();
        if amounts.len() != FIRST_FROM_LAST.len() || !rest.is_empty() {
            return Err("its amounts do not fit its input".into());
        }
        if amounts.as_flattened().iter().any(|amount| *amount < 0) {
            return Err("a negative amount is not supported".into());
        }
        let pads: Vec<i64> = (0..2)
            .flat_map(|end| FIRST_FROM_LAST.map(|axis| i64::from(amounts[axis][end])))
            .collect();
        let pads = self.graph.add_ints(&[pads.len()], &pads);
        let sides = self.shape(source).iter().zip(amounts);
        let padded: Vec<usize> = sides
            .map(|(side, [before, after])| side + (*before as usize) + (*after as usize))
            .collect();
        self.expect_shape(target, &padded)?;
        let shape = super::first_from_last(&padded)?;
        let value = self.graph.add_shaped("Pad", &[value, pads], vec![], shape);
        Ok(self.image_forms(target, value))
    }

    pub(super) fn concatenation(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let options = options(operator)?;
        let target = output(operator)?;
        let axis = super::axis_from_end(options.i32(0, 0)?, self.shape(target).len())?;
        self.expect_joined(operator, target, axis)?;
        let is_matrix = self.is_matrix(target);
        let parts = (0..operator.inputs.len())
            .map(|index| {
                let part = input(operator, index)?;
                match is_matrix {
                    true => self.as_filed(part),
                    false => self.whole(part),
                }
            })
            .collect::<Result<Vec<_>, _>>()?;
        let attributes = vec![Attribute::int("axis", axis)];
        let shape = self.filed_shape(target);
        let value = self.graph.add_shaped("Concat", &parts, attributes, shape);
        let value = self.activated(value, options.u8(1)?)?;
        Ok(self.filed_forms(target, value))
    }

    /// Refuses parts that, joined along `axis`, which counts from the end, do not make `target`.
    fn expect_joined(&self, operator: &Operator<'_>, target: usize, axis: i64) -> Result<()> {
        let mut expected = self.shape(target).to_vec();
        let axis = expected.len() - axis.unsigned_abs() as usize;
        let mut joined = 0;
        for index in 0..operator.inputs.len() {
            let part = self.shape(input(operator, index)?);
            expected[axis] = part.get(axis).copied().unwrap_or(0);
            if part != expected {
                return Err(format!("its input {index} has the shape {part:?}"));
            }
            joined += expected[axis];
        }
        expected[axis] = joined;
        self.expect_shape(target, &expected)
    }

    pub(super) fn strided_slice(&mut self, operator: &Operator<'_>) -> Result<Forms> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let bounds = self.bounds(operator)?;
        let kept: usize = bounds.iter().map(Range::len).product();
        if kept != self.shape(target).iter().product::<usize>() {
            return Err("its output has another number of elements than its bounds".into());
        }
        let sides = self.filed_shape(source);
        // The axes that a matrix leaves out in front have one element, which a slice keeps.
        let bounds = &bounds[bounds.len() - sides.len()..];
        let mut value = self.as_filed(source)?;
        let cut = (0..sides.len()).filter(|axis| bounds[*axis] != (0..sides[*axis]));
        for axis in cut.collect::<Vec<_>>() {
            value = self.graph.add_slice(value, bounds[axis].clone(), axis);
        }
        Ok(self.filed_forms(target, value))
    }

    /// The elements of a slice on each axis.
    fn bounds(&self, operator: &Operator<'_>) -> Result<Vec<Range<usize>>> {
        let options = options(operator)?;
        let shape = self.shape(input(operator, 0)?);
        let begin = self.ints(input(operator, 1)?)?;
        let end = self.ints(input(operator, 2)?)?;
        let stride = self.ints(input(operator, 3)?)?;
        if [begin, end, stride].iter().any(|v| v.len() != shape.len()) {
            return Err("its bounds do not fit its input".into());
        }
        let [from_start, to_end, single] =
            [options.i32(0, 0)?, options.i32(1, 0)?, options.i32(4, 0)?];
        let plain = options.i32(2, 0)? == 0 && options.i32(3, 0)? == 0;
        if !plain || stride.iter().any(|step| *step != 1) {
            return Err("only strides of 1, no ellipsis and no new axes are supported".into());
        }
        let bound = |axis: usize| {
            let chosen = |mask: i32| mask >> axis & 1 == 1;
            let first = if chosen(from_start) {
                0
            } else {
                usize::try_from(begin[axis]).ok()?
            };
            let last = match () {
                () if chosen(single) => first.checked_add(1)?,
                () if chosen(to_end) => shape[axis],
                () => usize::try_from(end[axis]).ok()?,
            };
            (first < last && last <= shape[axis]).then_some(first..last)
        };
        (0..shape.len())
            .map(|axis| {
                bound(axis).ok_or_else(|| format!("its bounds on axis {axis} are not supported"))
            })
            .collect()
    }
}

fn swaps_last_two(order: &[usize]) -> bool {
    let rank = order.len();
    let front = order.iter().take(rank - 2).copied();
    front.eq(0..rank - 2) && order[rank - 1] == rank - 2
}
