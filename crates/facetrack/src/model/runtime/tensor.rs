// SPDX-License-Identifier: MPL-2.0
//! Tensors of the runtime, whose floats are of single or half precision, from and to arrays of
//! `f32`.

use half::f16;
use ndarray::{ArrayD, ArrayViewD};
use ort::session::SessionInputValue;
use ort::value::{
    DynTensor, Outlet, Tensor, TensorElementType, TensorRef, TensorValueTypeMarker, Value,
};

use crate::model::TensorSpec;

/// Returns name and shape of a tensor.
///
/// # Errors
/// Returns an error if a network can't have it.
pub(super) fn spec(outlet: &Outlet) -> Result<TensorSpec, String> {
    let name = outlet.name().to_owned();
    let kind = outlet.dtype();
    use TensorElementType::{Float16, Float32};
    if !matches!(kind.tensor_type(), Some(Float32 | Float16)) {
        return Err(format!("tensor {name} has type {kind}, not f32 or f16"));
    }
    let shape = kind.tensor_shape().map_or_else(Vec::new, |shape| {
        shape.iter().map(|n| usize::try_from(*n).ok()).collect()
    });
    Ok(TensorSpec { name, shape })
}

/// The input for `outlet`: the values themselves, or a copy in half precision if it takes that.
pub(super) fn input<'a>(
    outlet: Option<&Outlet>,
    values: &'a ArrayViewD<'_, f32>,
) -> ort::Result<SessionInputValue<'a>> {
    match outlet.and_then(|outlet| outlet.dtype().tensor_type()) {
        Some(TensorElementType::Float16) => {
            Ok(Tensor::from_array(values.mapv(f16::from_f32))?.into())
        }
        _ => Ok(TensorRef::from_array_view(values.view())?.into()),
    }
}

/// Gives `tensor` the values of an array of its shape.
pub(super) fn fill(tensor: &mut DynTensor, values: &ArrayViewD<'_, f32>) -> ort::Result<()> {
    match tensor.dtype().tensor_type() {
        Some(TensorElementType::Float16) => tensor
            .try_extract_array_mut::<f16>()?
            .zip_mut_with(values, |own, value| *own = f16::from_f32(*value)),
        _ => tensor.try_extract_array_mut::<f32>()?.assign(values),
    }
    Ok(())
}

/// The values of a tensor.
pub(super) fn floats<T: TensorValueTypeMarker + ?Sized>(
    tensor: &Value<T>,
) -> ort::Result<ArrayD<f32>> {
    Ok(match tensor.dtype().tensor_type() {
        Some(TensorElementType::Float16) => tensor.try_extract_array::<f16>()?.mapv(f16::to_f32),
        _ => tensor.try_extract_array::<f32>()?.into_owned(),
    })
}
