// SPDX-License-Identifier: MPL-2.0
//! Operators that move elements.

use super::super::flatbuffer::Reason;
use super::super::graph::Attribute;
use super::super::schema::Operator;
use super::{FIRST_FROM_LAST, Lowering, input, options, output};

/// The order of axes that swaps width and channels.
const WIDTH_AND_CHANNELS_SWAPPED: [usize; 4] = [0, 1, 3, 2];

impl Lowering<'_> {
    pub(super) fn reshape(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let target = output(operator)?;
        let value = self.as_filed(input(operator, 0)?)?;
        let value = self
            .graph
            .reshape(value, self.network.tensors[target].shape.clone());
        self.set_as_filed(target, value);
        Ok(())
    }

    pub(super) fn transpose(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let shape = self.shape(source);
        let order = self.order(input(operator, 1)?, shape.len())?;
        if order == WIDTH_AND_CHANNELS_SWAPPED && shape[1] == 1 {
            return self.swap_width_and_channels(source, target);
        }
        let value = self.as_filed(source)?;
        let value = self.graph.transpose(value, &order);
        self.set_as_filed(target, value);
        Ok(())
    }

    /// In images of one row, what has width and channels swapped lies in memory as what has its channels first.
    fn swap_width_and_channels(&mut self, source: usize, target: usize) -> Result<(), Reason> {
        let shape = self.shape(target).to_vec();
        if self.is_channels_first(source) {
            let value = self.channels_first(source)?;
            let value = self.graph.reshape(value, shape);
            self.set_as_filed(target, value);
        } else {
            let value = self.as_filed(source)?;
            let value = self.graph.reshape(value, super::first_from_last(&shape)?);
            self.set_channels_first(target, value);
        }
        Ok(())
    }

    /// A permutation of `rank` axes.
    fn order(&self, tensor: usize, rank: usize) -> Result<Vec<usize>, Reason> {
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

    pub(super) fn pad(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let rank = self.shape(source).len();
        let amounts = self.ints(input(operator, 1)?)?;
        let (amounts, rest) = amounts.as_chunks::<2>();
        if amounts.len() != rank || !rest.is_empty() {
            return Err("its amounts do not fit its input".into());
        }
        let channels_first = self.is_channels_first(source);
        let axes: Vec<usize> = match channels_first {
            true => FIRST_FROM_LAST.to_vec(),
            false => (0..rank).collect(),
        };
        let pads = (0..2)
            .flat_map(|end| axes.iter().map(move |axis| i64::from(amounts[*axis][end])))
            .collect();
        let pads = self.graph.integers(pads);
        if channels_first {
            let value = self.channels_first(source)?;
            let shape = super::first_from_last(self.shape(target))?;
            let value = self.graph.node("Pad", &[value, pads], vec![], shape);
            self.set_channels_first(target, value);
        } else {
            let value = self.as_filed(source)?;
            let shape = self.shape(target).to_vec();
            let value = self.graph.node("Pad", &[value, pads], vec![], shape);
            self.set_as_filed(target, value);
        }
        Ok(())
    }

    pub(super) fn concatenation(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let options = options(operator)?;
        let target = output(operator)?;
        let parts = (0..operator.inputs.len())
            .map(|index| self.as_filed(input(operator, index)?))
            .collect::<Result<Vec<_>, _>>()?;
        let axis = Attribute::Int(i64::from(options.i32(0, 0)?));
        let shape = self.shape(target).to_vec();
        let value = self
            .graph
            .node("Concat", &parts, vec![("axis", axis)], shape);
        let value = self.activated(value, options.u8(1)?)?;
        self.set_as_filed(target, value);
        Ok(())
    }

    pub(super) fn strided_slice(&mut self, operator: &Operator<'_>) -> Result<(), Reason> {
        let options = options(operator)?;
        let (source, target) = (input(operator, 0)?, output(operator)?);
        let rank = self.shape(source).len();
        let [mut begin, mut end, stride] = [1, 2, 3]
            .map(|i| -> Result<Vec<i64>, Reason> {
                let values = self.ints(input(operator, i)?)?;
                Ok(values.iter().map(|v| i64::from(*v)).collect())
            })
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?
            .try_into()
            .map_err(|_| "its bounds are missing")?;
        if [&begin, &end, &stride]
            .iter()
            .any(|v: &&Vec<i64>| v.len() != rank)
        {
            return Err("its bounds do not fit its input".into());
        }
        if stride.iter().any(|step| *step != 1)
            || options.i32(2, 0)? != 0
            || options.i32(3, 0)? != 0
        {
            return Err("only strides of 1, no ellipsis and no new axes are supported".into());
        }
        let [from_start, to_end, single] = [0, 1, 4].map(|field| options.i32(field, 0));
        let (from_start, to_end, single) = (from_start?, to_end?, single?);
        for axis in 0..rank {
            let bit = 1 << axis;
            if from_start & bit != 0 {
                begin[axis] = 0;
            }
            if single & bit != 0 {
                end[axis] = begin[axis] + 1;
            } else if to_end & bit != 0 {
                end[axis] = self.shape(source)[axis] as i64;
            }
        }
        let mut value = self.as_filed(source)?;
        let shape = self.shape(target).to_vec();
        let whole = self.shape(source).iter().zip(&begin).zip(&end);
        if !whole
            .into_iter()
            .all(|((side, b), e)| *b == 0 && *e == *side as i64)
        {
            let sliced = begin
                .iter()
                .zip(&end)
                .map(|(b, e)| (e - b).max(0) as usize)
                .collect();
            let bounds = [self.graph.integers(begin), self.graph.integers(end)];
            value = self
                .graph
                .node("Slice", &[value, bounds[0], bounds[1]], vec![], sliced);
        }
        let value = self.graph.reshape(value, shape);
        self.set_as_filed(target, value);
        Ok(())
    }
}
