// SPDX-License-Identifier: MPL-2.0
//! A fitted morphable model as a structure.

use super::MetaError;
use super::fields::{Fields, Scale, bytes_from_floats, bytes_from_landmarks, bytes_from_points};
use super::fields::{malformed, names_from};
use facetrack::observation::{FitFailure, MorphableFit};

/// The field of a fit that there is not, and the only one then.
const FAILURE: &str = "failure";

pub(super) fn structure_from_morphable(
    fit: &Result<MorphableFit, FitFailure>,
    scale: Scale,
) -> gst::Structure {
    let mut fields = gst::Structure::new_empty("morphable");
    match fit {
        Ok(fit) => write(&mut fields, fit, scale),
        Err(failure) => fields.set(FAILURE, failure.name()),
    }
    fields
}

fn write(fields: &mut gst::StructureRef, fit: &MorphableFit, scale: Scale) {
    fields.set("shape", bytes_from_floats(fit.shape.iter().copied()));
    let expression = fit.expression.iter().copied();
    fields.set("expression", bytes_from_floats(expression));
    fields.set("expression-names", fit.expression_names.join(","));
    fields.set("rotation", bytes_from_floats(fit.rotation));
    fields.set("origin", bytes_from_points(&[fit.origin], scale));
    fields.set("scale", f64::from(fit.scale) / scale.x);
    fields.set("residual", f64::from(fit.residual) / scale.x);
    fields.set("contour", bytes_from_points(&fit.contour, scale));
    if let Some(mesh) = &fit.mesh {
        fields.set("mesh", bytes_from_landmarks(mesh, scale));
    }
}

pub(super) fn morphable_from_structure(
    fields: Fields<'_>,
    scale: Scale,
) -> Result<Result<MorphableFit, FitFailure>, MetaError> {
    let failure = fields.optional(FAILURE, |fields, name| {
        fields.named(name, FitFailure::from_name)
    })?;
    match failure {
        Some(failure) => Ok(Err(failure)),
        None => read(fields, scale).map(Ok),
    }
}

fn read(fields: Fields<'_>, scale: Scale) -> Result<MorphableFit, MetaError> {
    let expression = fields.values("expression")?;
    let expression_names = names_from(fields.text("expression-names")?);
    if expression_names.len() != expression.len() {
        return Err(malformed("expression"));
    }
    let [x, y] = fields.vector("origin")?;
    Ok(MorphableFit {
        shape: fields.values("shape")?,
        expression,
        expression_names,
        rotation: fields.vector("rotation")?,
        origin: scale.point(x, y),
        scale: (fields.double("scale")? * scale.x) as f32,
        residual: (fields.double("residual")? * scale.x) as f32,
        contour: fields.points("contour", scale)?,
        mesh: fields.optional("mesh", |fields, name| {
            Ok(fields.landmarks(name, scale)?.collect())
        })?,
    })
}
