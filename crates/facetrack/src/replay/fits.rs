// SPDX-License-Identifier: MPL-2.0
//! Fitted face models of a record, read back.

use serde::Deserialize;

use super::face::{check_names, points};
use crate::geometry::Point;
use crate::observation::{FitFailure, ModelFit, MorphableFit};

/// OpenSeeFace's model as JSON.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct FitJson {
    success: bool,
    error: f32,
    quaternion: [f32; 4],
    euler: [f32; 3],
    rotation: [f32; 3],
    translation: [f32; 3],
    landmarks_3d: Vec<[f32; 3]>,
    projected: Vec<[f32; 2]>,
}

impl FitJson {
    pub(super) fn fit(self) -> ModelFit {
        ModelFit {
            success: self.success,
            error: self.error,
            quaternion: self.quaternion,
            euler: self.euler,
            rotation: self.rotation,
            translation: self.translation,
            points: self.landmarks_3d,
            projected: points(&self.projected),
        }
    }
}

/// Coefficients of a morphable model as JSON.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct CoefficientsJson {
    shape_coeffs: Vec<f32>,
    expression_coeffs: Vec<f32>,
}

/// The rest of the model, or why there is none, as JSON.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct MorphableJson {
    failure: Option<String>,
    expressions: Option<Vec<String>>,
    rotation: Option<[f32; 4]>,
    origin: Option<[f32; 2]>,
    scale: Option<f32>,
    residual: Option<f32>,
    contour: Option<Vec<[f32; 2]>>,
}

impl MorphableJson {
    /// The fit with these coefficients; `None` where they are missing, since the fit is nothing without.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn morphable(
        self,
        coefficients: Option<CoefficientsJson>,
    ) -> Result<Option<Result<MorphableFit, FitFailure>>, String> {
        if let Some(failure) = &self.failure {
            let known = FitFailure::from_name(failure);
            return known
                .map(|failure| Some(Err(failure)))
                .ok_or_else(|| format!("there is no failure {failure:?}"));
        }
        coefficients
            .map(|coefficients| self.fit(coefficients).map(Ok))
            .transpose()
    }

    fn fit(self, coefficients: CoefficientsJson) -> Result<MorphableFit, String> {
        let missing = || "`eos_fit` is not whole".to_owned();
        let expressions = self.expressions.ok_or_else(missing)?;
        if expressions.len() != coefficients.expression_coeffs.len() {
            return Err("`expression_coeffs` are not as many as `expressions`".to_owned());
        }
        check_names(&expressions)?;
        let [x, y] = self.origin.ok_or_else(missing)?;
        Ok(MorphableFit {
            shape: coefficients.shape_coeffs,
            expression: coefficients.expression_coeffs,
            expression_names: expressions.into(),
            rotation: self.rotation.ok_or_else(missing)?,
            origin: Point::new(x, y),
            scale: self.scale.ok_or_else(missing)?,
            residual: self.residual.ok_or_else(missing)?,
            contour: points(&self.contour.ok_or_else(missing)?),
            mesh: None,
        })
    }
}
