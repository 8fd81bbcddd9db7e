// SPDX-License-Identifier: MPL-2.0
//! A fitted morphable model in a verbose record. Its mesh is in the metadata alone.

use super::number::{PointsJson, Thousandths, all_finite};
use crate::geometry::Point;
use crate::observation::{FitFailure, MorphableFit};

/// The coefficients, as the readers of the key `eos` know them.
#[derive(serde::Serialize)]
pub(super) struct CoefficientsJson<'a> {
    shape_coeffs: &'a [f32],
    expression_coeffs: &'a [f32],
}

impl<'a> CoefficientsJson<'a> {
    pub(super) fn new(fit: &'a MorphableFit) -> Option<Self> {
        let finite = all_finite(&fit.shape) && all_finite(&fit.expression);
        finite.then_some(Self {
            shape_coeffs: &fit.shape,
            expression_coeffs: &fit.expression,
        })
    }
}

/// The rest of the fit, or why there is none.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub(super) enum MorphableJson<'a> {
    Fitted {
        expressions: &'a [String],
        rotation: [f32; 4],
        origin: [Thousandths; 2],
        scale: f32,
        residual: Thousandths,
        contour: PointsJson<'a>,
    },
    Failed {
        failure: &'static str,
    },
}

impl<'a> MorphableJson<'a> {
    pub(super) fn new(fit: &'a Result<MorphableFit, FitFailure>) -> Option<Self> {
        match fit {
            Ok(fit) => Self::fitted(fit),
            Err(failure) => Some(Self::Failed {
                failure: failure.name(),
            }),
        }
    }

    fn fitted(fit: &'a MorphableFit) -> Option<Self> {
        let Point { x, y } = fit.origin;
        let finite = all_finite(&fit.rotation) && all_finite(&[x, y, fit.scale, fit.residual]);
        finite.then_some(Self::Fitted {
            expressions: &fit.expression_names,
            rotation: fit.rotation,
            origin: [x, y].map(Thousandths),
            scale: fit.scale,
            residual: Thousandths(fit.residual),
            contour: PointsJson::new(&fit.contour)?,
        })
    }
}
