// SPDX-License-Identifier: MPL-2.0
//! The result of a fit.

use super::{FaceModel, Pose};
use crate::observation::{Landmark, LandmarkScheme, Landmarks};

/// A fitted face. All values are finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The camera.
    pub pose: Pose,
    /// Coefficients of all components, in standard deviations; 0 for components that were not
    /// fitted.
    pub shape: Vec<f32>,
    /// Coefficients of the expressions, not negative.
    pub expression: Vec<f32>,
    /// Mean distance between the landmarks that have a vertex of their own and these vertices, px.
    pub residual: f32,
    /// The landmarks of the outline, each with its vertex, in the order of the landmarks. On a side
    /// that faces the camera it is the vertex that the landmark was matched with last. On a side
    /// that is turned away it is the nearest of the vertices at the silhouette that were matched
    /// with this side, or, without any, the nearest vertex of the model's contour.
    pub contour: Vec<(usize, usize)>,
    /// Every vertex, in the model's space and unit.
    pub vertices: Vec<[f32; 3]>,
}

impl Fit {
    /// The 68 landmarks of the fitted mesh, px: [`LandmarkScheme::Ibug68`]. Landmarks of the
    /// outline are the vertices of [`Fit::contour`]; the others have vertices of their own.
    pub fn landmarks(&self, model: &FaceModel) -> Landmarks {
        let mut vertices = *model.landmark_vertices();
        for (landmark, vertex) in &self.contour {
            vertices[*landmark] = *vertex;
        }
        let mut points = vertices.map(|vertex| self.seen(vertex));
        let middle = points.iter().map(|point| point.z).sum::<f32>() / points.len() as f32;
        for point in &mut points {
            point.z -= middle;
        }
        Landmarks::new(LandmarkScheme::Ibug68, points.into())
    }

    /// A vertex in the image, with its depth relative to the model's origin, px.
    pub fn seen(&self, vertex: usize) -> Landmark {
        let vertex = self.vertices[vertex];
        let place = self.pose.project(vertex);
        Landmark {
            x: place.x,
            y: place.y,
            z: self.pose.depth(vertex),
        }
    }

    /// Returns true if every value is finite.
    pub(super) fn is_finite(&self) -> bool {
        let values = self.shape.iter().chain(&self.expression);
        let mut values = values
            .chain([&self.residual])
            .chain(self.vertices.as_flattened());
        self.pose.is_finite() && values.all(|value| value.is_finite())
    }
}
