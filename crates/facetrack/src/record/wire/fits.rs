// SPDX-License-Identifier: MPL-2.0
//! The JSON form of fitted face models.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::number::{Place, Thousandths, check_names, exact, finite, places, points, rounded};
use crate::geometry::Point;
use crate::observation::{FitFailure, ModelFit, MorphableFit};

/// OpenSeeFace's 3-D face model fitted to the landmarks, in its conventions (fields=fit).
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(expecting = "an object")]
pub(super) struct Fit<'a> {
    /// True if the fit is usable; if false, the other values have no meaning.
    success: bool,
    /// Distance of the jaw line and the tip of the nose from the model in pixels.
    error: Thousandths,
    /// The inverse of fit.rotation, as a quaternion x, y, z, w.
    quaternion: [f32; 4],
    /// Rotation about x, y, z in degrees.
    euler: [Thousandths; 3],
    /// Rotation axis times angle in radians.
    rotation: [f32; 3],
    /// Position of the model's origin relative to the camera, in units of the model.
    translation: [f32; 3],
    /// Landmarks in the model's space, then both pupils, then the centres of both eyeballs; of each
    /// pair, the right one first.
    landmarks_3d: Cow<'a, [[f32; 3]]>,
    /// Points of the model in the frame as x, y in pixels, as selected by pnp-points.
    projected: Vec<Place>,
}

impl<'a> Fit<'a> {
    pub(super) fn new(fit: &'a ModelFit) -> Option<Self> {
        finite(fit.points.as_flattened())?;
        let [error] = rounded([fit.error])?;
        Some(Self {
            success: fit.success,
            error,
            quaternion: finite(fit.quaternion)?,
            euler: rounded(fit.euler)?,
            rotation: finite(fit.rotation)?,
            translation: finite(fit.translation)?,
            landmarks_3d: (&fit.points).into(),
            projected: places(&fit.projected)?,
        })
    }
}

impl From<Fit<'_>> for ModelFit {
    fn from(fit: Fit<'_>) -> Self {
        Self {
            success: fit.success,
            error: fit.error.0,
            quaternion: fit.quaternion,
            euler: exact(fit.euler),
            rotation: fit.rotation,
            translation: fit.translation,
            points: fit.landmarks_3d.into_owned(),
            projected: points(fit.projected),
        }
    }
}

/// Coefficients of the fitted morphable model (fields=morphable); absent without a fit.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(inline, deny_unknown_fields)
)]
#[serde(expecting = "an object")]
pub(super) struct Coefficients<'a> {
    /// Shape, in standard deviations of each component.
    shape_coeffs: Cow<'a, [f32]>,
    /// Strength of each expression, from 0.
    #[cfg_attr(test, schemars(inner(range(min = 0))))]
    expression_coeffs: Cow<'a, [f32]>,
}

impl<'a> Coefficients<'a> {
    pub(super) fn new(fit: &'a MorphableFit) -> Option<Self> {
        Some(Self {
            shape_coeffs: finite(&fit.shape)?.into(),
            expression_coeffs: finite(&fit.expression)?.into(),
        })
    }
}

/// Other results of the fitted morphable model, or the reason why the fit failed
/// (fields=morphable).
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(inline, extend("oneOf" = [
        {
            "required": ["expressions", "rotation", "origin", "scale", "residual", "contour"],
            "not": {"required": ["failure"]},
        },
        {"required": ["failure"]},
    ]))
)]
#[serde(default, expecting = "an object")]
pub(super) struct Morphable<'a> {
    /// Names of the expression_coeffs, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    expressions: Option<Cow<'a, [String]>>,
    /// Rotation from the model to the camera as a unit quaternion x, y, z, w.
    #[serde(skip_serializing_if = "Option::is_none")]
    rotation: Option<[f32; 4]>,
    /// The model's origin, in pixels of the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Place>,
    /// Pixels per millimetre of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<f32>,
    /// Mean distance of the landmarks from their vertices in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    residual: Option<Thousandths>,
    /// Vertices that were matched with the landmarks of the jaw line, in pixels of the frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    contour: Option<Vec<Place>>,
    /// Reason why the fit failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FitFailure>,
}

impl<'a> Morphable<'a> {
    pub(super) fn new(fit: &'a Result<MorphableFit, FitFailure>) -> Option<Self> {
        let fit = match fit {
            Ok(fit) => fit,
            Err(failure) => {
                return Some(Self {
                    failure: Some(*failure),
                    ..Self::default()
                });
            }
        };
        let [scale] = finite([fit.scale])?;
        let [residual] = rounded([fit.residual])?;
        Some(Self {
            expressions: Some(Cow::Borrowed(&fit.expression_names)),
            rotation: Some(finite(fit.rotation)?),
            origin: Some(rounded([fit.origin.x, fit.origin.y])?),
            scale: Some(scale),
            residual: Some(residual),
            contour: Some(places(&fit.contour)?),
            failure: None,
        })
    }

    /// The fit with these coefficients; `None` without them, since a fit has no meaning then.
    ///
    /// # Errors
    /// Returns a description of an invalid value.
    pub(super) fn fit(
        self,
        coefficients: Option<Coefficients<'_>>,
    ) -> Result<Option<Result<MorphableFit, FitFailure>>, String> {
        if let Some(failure) = self.failure {
            return Ok(Some(Err(failure)));
        }
        let Some(coefficients) = coefficients else {
            return Ok(None);
        };
        let names = self.expressions.as_deref().unwrap_or_default();
        if names.len() != coefficients.expression_coeffs.len() {
            return Err("`expression_coeffs` and `expressions` differ in length".to_owned());
        }
        check_names(names)?;
        let fit = self.whole(coefficients);
        Ok(Some(Ok(fit.ok_or("`eos_fit` is not whole")?)))
    }

    /// The fit, if every part of it is there.
    fn whole(self, coefficients: Coefficients<'_>) -> Option<MorphableFit> {
        let [x, y] = exact(self.origin?);
        Some(MorphableFit {
            shape: coefficients.shape_coeffs.into_owned(),
            expression: coefficients.expression_coeffs.into_owned(),
            expression_names: self.expressions?.into(),
            rotation: self.rotation?,
            origin: Point::new(x, y),
            scale: self.scale?,
            residual: self.residual?.0,
            contour: points(self.contour?),
            mesh: None,
        })
    }
}
