// SPDX-License-Identifier: MPL-2.0
//! A fitted face model as a structure.

use super::MetaError;
use super::fields::{Fields, Scale, bytes_from_floats, bytes_from_points};
use facetrack::observation::ModelFit;

pub(super) fn structure_from_fit(fit: &ModelFit, scale: Scale) -> gst::Structure {
    gst::Structure::builder("fit")
        .field("success", fit.success)
        .field("error", f64::from(fit.error) / scale.x)
        .field("quaternion", bytes_from_floats(fit.quaternion))
        .field("euler", bytes_from_floats(fit.euler))
        .field("rotation", bytes_from_floats(fit.rotation))
        .field("translation", bytes_from_floats(fit.translation))
        .field(
            "landmarks-3d",
            bytes_from_floats(fit.points.as_flattened().iter().copied()),
        )
        .field("projected", bytes_from_points(&fit.projected, scale))
        .build()
}

pub(super) fn fit_from_structure(fields: Fields<'_>, scale: Scale) -> Result<ModelFit, MetaError> {
    Ok(ModelFit {
        success: fields.boolean("success")?,
        error: (fields.double("error")? * scale.x) as f32,
        quaternion: fields.vector("quaternion")?,
        euler: fields.vector("euler")?,
        rotation: fields.vector("rotation")?,
        translation: fields.vector("translation")?,
        points: fields.floats("landmarks-3d")?,
        projected: fields.points("projected", scale)?,
    })
}
