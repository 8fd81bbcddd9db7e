// SPDX-License-Identifier: MPL-2.0
//! The landmarks of a face as one tensor.
#![allow(
    unsafe_code,
    reason = "the bindings have no safe function that adds a tensor to the relations"
)]

use std::mem::MaybeUninit;

use gst::glib;
use gst::glib::translate::{IntoGlib, IntoGlibPtr};
use gst_analytics::{AnalyticsRelationMeta, RelTypes, TensorDataType, TensorDimOrder, ffi};

use crate::meta::region::Canvas;
use facetrack::observation::Landmarks;

/// Numbers of a landmark: x, y, z.
const DIMENSIONS: usize = 3;

/// Adds the landmarks as fractions of the frame, and relates them to the detection.
///
/// # Errors
/// Returns an error if the library refuses the tensor.
pub(super) fn add(
    buffer: &mut gst::BufferRef,
    detection: u32,
    landmarks: &Landmarks,
    canvas: Canvas,
) -> Result<(), glib::BoolError> {
    let count = landmarks.points.len();
    let name = glib::Quark::from_str(format!("face-{count}-kp"));
    let data = gst::Buffer::from_slice(canvas.fractions(&landmarks.points));
    let dims = [count, DIMENSIONS];
    let mut relations = AnalyticsRelationMeta::add(buffer);
    let mut entry = MaybeUninit::<ffi::GstAnalyticsTensorMtd>::uninit();
    // SAFETY: the relations are writable, the function takes ownership of the data, reads as many
    // sizes as it is told, and sets the entry if it succeeds.
    let tensor = unsafe {
        let is_added = ffi::gst_analytics_relation_meta_add_tensor_mtd_simple(
            relations.as_mut_ptr(),
            name.into_glib(),
            TensorDataType::Float32.into_glib(),
            data.into_glib_ptr(),
            TensorDimOrder::RowMajor.into_glib(),
            dims.len(),
            dims.as_ptr().cast_mut(),
            entry.as_mut_ptr(),
        );
        (is_added != glib::ffi::GFALSE).then(|| entry.assume_init().id)
    };
    let tensor = tensor.ok_or_else(|| glib::bool_error!("the tensor was not added"))?;
    let (to, from) = (RelTypes::CONTAIN, RelTypes::IS_PART_OF);
    relations.set_relation(to | RelTypes::RELATE_TO, detection, tensor)?;
    relations.set_relation(from | RelTypes::RELATE_TO, tensor, detection)
}
