// SPDX-License-Identifier: MPL-2.0
//! What a fit yields.

use super::{FaceModel, Pose};
use crate::observation::{Landmark, LandmarkScheme, Landmarks};

/// A fitted face. All figures are finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The camera.
    pub pose: Pose,
    /// Coefficients of all components, in standard deviations; those that were not fitted are 0.
    pub shape: Vec<f32>,
    /// Coefficients of the expressions, from 0 on.
    pub expression: Vec<f32>,
    /// Mean distance of the landmarks with a vertex of their own from that vertex, px.
    pub residual: f32,
    /// The landmarks of the outline, each with its vertex, in the landmarks' order. On a side that faces the camera that is
    /// the vertex which it was matched with last; on one that is turned away the nearest of those at the edge of what is seen
    /// that were matched with this side, or, without any, the nearest of the model's contour.
    pub contour: Vec<(usize, usize)>,
    /// Every vertex, in the model's space and unit.
    pub vertices: Vec<[f32; 3]>,
}

impl Fit {
    /// The 68 landmarks of the fitted mesh, px: [`LandmarkScheme::Ibug68`]. Those of the outline are the vertices of
    /// [`Fit::contour`]; the others have vertices of their own.
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

    /// A vertex in the image, and how many px farther away it is than the model's origin.
    fn seen(&self, vertex: usize) -> Landmark {
        let vertex = self.vertices[vertex];
        let place = self.pose.project(vertex);
        Landmark {
            x: place.x,
            y: place.y,
            z: self.pose.depth(vertex),
        }
    }

    /// Whether every figure is a number.
    pub(super) fn is_finite(&self) -> bool {
        let pose = &self.pose;
        let mut camera = pose
            .rotation
            .iter()
            .chain(&pose.origin)
            .chain([&pose.scale]);
        let figures = self
            .shape
            .iter()
            .chain(&self.expression)
            .chain([&self.residual]);
        let mut figures = figures.chain(self.vertices.as_flattened());
        camera.all(|figure| figure.is_finite()) && figures.all(|figure| figure.is_finite())
    }
}
