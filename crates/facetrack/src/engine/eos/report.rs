// SPDX-License-Identifier: MPL-2.0
//! Converts a fit into the values that a face reports.

use std::sync::Arc;

use crate::geometry::Point;
use crate::morphable::{FaceModel, Fit};
use crate::observation::{FitFailure, HeadPose, Landmark, Landmarks, MorphableFit, Observation};

/// Converts fits of one model.
pub(super) struct Reporter {
    model: Arc<FaceModel>,
    /// Names of the expressions, shared by all faces.
    expression_names: Arc<[String]>,
    /// True if every vertex is reported.
    mesh: bool,
}

impl Reporter {
    /// Creates a converter for fits of `model`, with every vertex if `mesh` is true.
    pub(super) fn new(model: Arc<FaceModel>, mesh: bool) -> Self {
        let names = model.expressions().iter();
        Self {
            expression_names: names.map(|expression| expression.name.clone()).collect(),
            model,
            mesh,
        }
    }

    /// Adds `fit` to `face`, in a frame of `frame_size` pixels.
    ///
    /// # Errors
    /// Returns [`FitFailure::Unsolvable`] if a value of the fit is not finite in `f32`; `face` is
    /// unchanged.
    pub(super) fn report(
        &self,
        face: &mut Observation,
        fit: Fit,
        frame_size: (usize, usize),
    ) -> Result<(), FitFailure> {
        let landmarks = fit.landmarks(&self.model);
        let pose = pose(&fit, frame_size).ok_or(FitFailure::Unsolvable)?;
        let report = MorphableFit {
            expression_names: self.expression_names.clone(),
            rotation: fit.pose.quaternion(),
            origin: Point::new(fit.pose.origin[0] as f32, fit.pose.origin[1] as f32),
            scale: fit.pose.scale as f32,
            residual: fit.residual,
            contour: contour(&fit),
            mesh: self.mesh.then(|| self.mesh(&fit, &landmarks)).flatten(),
            shape: fit.shape,
            expression: fit.expression,
        };
        if !(are_finite(&report) && landmarks.points.iter().all(is_finite)) {
            return Err(FitFailure::Unsolvable);
        }
        face.landmarks = Some(landmarks);
        face.pose = Some(pose);
        face.morphable = Some(Ok(report));
        Ok(())
    }

    /// Projection of every vertex, with depths relative to the same origin as the depths of
    /// `landmarks`; `None` for a model without landmarks.
    fn mesh(&self, fit: &Fit, landmarks: &Landmarks) -> Option<Arc<[Landmark]>> {
        let (landmark, vertex) = *self.model.mapping().vertices.first()?;
        let origin = fit.pose.depth(fit.vertices[vertex]) - landmarks.points.get(landmark)?.z;
        let seen = (0..fit.vertices.len()).map(|vertex| {
            let seen = fit.seen(vertex);
            Landmark {
                z: seen.z - origin,
                ..seen
            }
        });
        Some(seen.collect())
    }
}

/// Projections of the outline's vertices.
fn contour(fit: &Fit) -> Vec<Point> {
    let vertices = fit.contour.iter().map(|(_, vertex)| fit.vertices[*vertex]);
    vertices.map(|vertex| fit.pose.project(vertex)).collect()
}

/// The head's rotation, and the position of the model's origin relative to the centre of the image,
/// in units of the model.
fn pose(fit: &Fit, (width, height): (usize, usize)) -> Option<HeadPose> {
    let [x, y] = fit.pose.origin;
    let right = (x - width as f64 / 2.0) / fit.pose.scale;
    let up = (height as f64 / 2.0 - y) / fit.pose.scale;
    fit.pose.head_at([right, up, 0.0])
}

/// Returns true if the projections of `fit` are finite. The rest of it is finite in every [`Fit`].
fn are_finite(fit: &MorphableFit) -> bool {
    let mut mesh = fit.mesh.iter().flat_map(|mesh| mesh.iter());
    let mut points = fit.contour.iter().chain([&fit.origin]);
    fit.scale.is_finite() && points.all(|p| (p.x + p.y).is_finite()) && mesh.all(is_finite)
}

/// Returns true if all coordinates are finite.
pub(super) fn is_finite(point: &Landmark) -> bool {
    point.x.is_finite() && point.y.is_finite() && point.z.is_finite()
}
