// SPDX-License-Identifier: MPL-2.0
//! Fitted face models as structures.

use super::MetaError;
use super::fields::{Fields, Scale, bytes, bytes_of_landmarks, bytes_of_points};
use facetrack::geometry::Point;
use facetrack::observation::{FitFailure, ModelFit, MorphableFit};

/// The only field of a morphable model that could not be fitted.
const FAILURE: &str = "failure";

pub(super) fn fit_structure(fit: &ModelFit, scale: Scale) -> gst::Structure {
    gst::Structure::builder("fit")
        .field("success", fit.success)
        .field("error", f64::from(fit.error) / scale.x)
        .field("quaternion", bytes(&fit.quaternion))
        .field("euler", bytes(&fit.euler))
        .field("rotation", bytes(&fit.rotation))
        .field("translation", bytes(&fit.translation))
        .field("landmarks-3d", bytes(fit.points.as_flattened()))
        .field("projected", bytes_of_points(&fit.projected, scale))
        .build()
}

pub(super) fn fit_from(fields: Fields<'_>, name: &str) -> Result<ModelFit, MetaError> {
    let fields = fields.structure(name)?;
    Ok(ModelFit {
        success: fields.get("success")?,
        error: fields.across("error")?,
        quaternion: fields.vector("quaternion")?,
        euler: fields.vector("euler")?,
        rotation: fields.vector("rotation")?,
        translation: fields.vector("translation")?,
        points: fields.floats("landmarks-3d")?,
        projected: fields.points("projected")?,
    })
}

pub(super) fn morphable_structure(
    fit: &Result<MorphableFit, FitFailure>,
    scale: Scale,
) -> gst::Structure {
    let fields = gst::Structure::builder("morphable");
    let fit = match fit {
        Ok(fit) => fit,
        Err(failure) => return fields.field(FAILURE, failure.to_string()).build(),
    };
    let mesh = fit.mesh.as_deref();
    fields
        .field("shape", bytes(&fit.shape))
        .field("expression", bytes(&fit.expression))
        .field("expression-names", fit.expression_names.join(","))
        .field("rotation", bytes(&fit.rotation))
        .field("origin", bytes_of_points(&[fit.origin], scale))
        .field("scale", f64::from(fit.scale) / scale.x)
        .field("residual", f64::from(fit.residual) / scale.x)
        .field("contour", bytes_of_points(&fit.contour, scale))
        .field_if_some("mesh", mesh.map(|mesh| bytes_of_landmarks(mesh, scale)))
        .build()
}

pub(super) fn morphable_from(
    fields: Fields<'_>,
    name: &str,
) -> Result<Result<MorphableFit, FitFailure>, MetaError> {
    let fields = fields.structure(name)?;
    if let Some(failure) = fields.optional(FAILURE, Fields::named)? {
        return Ok(Err(failure));
    }
    let (expression_names, expression) = fields.named_values("expression-names", "expression")?;
    let [x, y] = fields.vector("origin")?;
    Ok(Ok(MorphableFit {
        shape: fields.values("shape")?,
        expression,
        expression_names,
        rotation: fields.vector("rotation")?,
        origin: Point::new(x, y),
        scale: fields.across("scale")?,
        residual: fields.across("residual")?,
        contour: fields.points("contour")?,
        mesh: fields.optional("mesh", Fields::landmarks)?,
    }))
}
