// SPDX-License-Identifier: MPL-2.0
//! Constants of floats.

use super::super::onnx_proto::{FLOAT, TensorProto};

/// A constant of floats, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Floats {
    /// Extents, outermost first.
    pub dims: Vec<usize>,
    /// As many as the extents say.
    pub values: Vec<f32>,
}

impl Floats {
    /// A single number.
    pub fn scalar(value: f32) -> Self {
        Self {
            dims: Vec::new(),
            values: vec![value],
        }
    }

    /// The content of `constant`; `None` when it is of something else or of nothing, or its length is not that of its
    /// extents.
    pub(super) fn of(constant: &TensorProto) -> Option<Self> {
        if constant.data_type != FLOAT {
            return None;
        }
        let dims: Vec<usize> = constant
            .dims
            .iter()
            .map(|n| usize::try_from(*n).ok())
            .collect::<Option<_>>()?;
        let count = dims.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim))?;
        let raw = constant.raw_data.chunks_exact(4);
        let values: Vec<f32> = match constant.raw_data.len() {
            0 => constant.float_data.clone(),
            _ => raw
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
        };
        (count > 0 && values.len() == count && constant.raw_data.len().is_multiple_of(4))
            .then_some(Floats { dims, values })
    }
}
