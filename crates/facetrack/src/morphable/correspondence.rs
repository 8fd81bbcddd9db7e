// SPDX-License-Identifier: MPL-2.0
//! Vertices for the landmarks of the outline: eos' `contour_correspondence.hpp` for the side that
//! faces the camera, `closest_edge_fitting.hpp` for the other side.

use super::mesh::Mesh;
use super::visibility::{View, Visibility};
use super::{FaceModel, Pose};
use crate::geometry::Point;

/// Maximum yaw, degrees, at which both sides of a face are visible: `frontal_range_threshold` of
/// `select_contour`.
const FRONTAL_YAW: f64 = 7.5;

/// Maximum squared distance between a landmark and its vertex, px², for a scale of 1 px per unit of
/// the model; proportional to the scale. `fit_shape_and_pose`'s argument to
/// `find_occluding_edge_correspondences`.
const EDGE_DISTANCE: f64 = 180.0;

/// Finds vertices for the landmarks of the outline. It keeps its working memory and the last
/// matches.
#[derive(Debug, Default)]
pub struct Outline {
    /// Landmarks of the sides that face the camera, each with the nearest vertex of the model's
    /// contour.
    facing: Vec<(usize, usize)>,
    /// Vertices of the silhouette, each with the nearest landmark of the side that is turned away.
    occluding: Vec<(usize, usize)>,
    view: View,
    fronts: Vec<i8>,
    at_edge: Vec<bool>,
    candidates: Vec<usize>,
    visibility: Visibility,
}

impl Outline {
    /// Matches the outline with `mesh` as seen in `pose`.
    pub fn find(&mut self, model: &FaceModel, landmarks: &[Point], mesh: &Mesh, pose: &Pose) {
        self.view.show(mesh, pose);
        self.find_facing(model, landmarks, pose.yaw());
        let away = if pose.yaw() >= 0.0 {
            &model.mapping().left_contour
        } else {
            &model.mapping().right_contour
        };
        self.find_edges(model);
        self.match_edges(model, landmarks, away, (EDGE_DISTANCE * pose.scale) as f32);
    }

    /// Pairs of landmark and vertex. A landmark may occur more than once.
    pub fn matches(&self) -> impl Iterator<Item = &(usize, usize)> {
        self.facing.iter().chain(&self.occluding)
    }

    /// The vertex of each landmark of the outline, in the order of the landmarks: see
    /// [`Fit::contour`](super::Fit::contour).
    pub fn vertices(&self, model: &FaceModel, landmarks: &[Point]) -> Vec<(usize, usize)> {
        let mut vertices = self.facing.clone();
        let (mapping, contours) = (model.mapping(), model.contours());
        let edges: Vec<usize> = self.occluding.iter().map(|(_, vertex)| *vertex).collect();
        for (side, contour) in [
            (&mapping.right_contour, &contours.right),
            (&mapping.left_contour, &contours.left),
        ] {
            let candidates = if edges.is_empty() { contour } else { &edges };
            for landmark in side {
                if vertices.iter().all(|(matched, _)| matched != landmark) {
                    let vertex = self.nearest(landmarks[*landmark], candidates);
                    vertices.extend(vertex.map(|vertex| (*landmark, vertex)));
                }
            }
        }
        vertices.sort_unstable();
        vertices
    }

    /// `select_contour` and `get_nearest_contour_correspondences`.
    fn find_facing(&mut self, model: &FaceModel, landmarks: &[Point], yaw: f64) {
        let (mapping, contours) = (model.mapping(), model.contours());
        self.candidates.clear();
        self.facing.clear();
        let mut sides: [&[usize]; 2] = [&[]; 2];
        if yaw >= -FRONTAL_YAW {
            sides[0] = &mapping.right_contour;
            self.candidates.extend_from_slice(&contours.right);
        }
        if yaw <= FRONTAL_YAW {
            sides[1] = &mapping.left_contour;
            self.candidates.extend_from_slice(&contours.left);
        }
        for landmark in sides.into_iter().flatten() {
            let vertex = self.nearest(landmarks[*landmark], &self.candidates);
            self.facing.extend(vertex.map(|vertex| (*landmark, vertex)));
        }
    }

    /// The candidate that is seen nearest to `landmark`.
    fn nearest(&self, landmark: Point, candidates: &[usize]) -> Option<usize> {
        let distance = |vertex: &usize| squared_distance(landmark, self.view.place(*vertex));
        let candidates = candidates.iter().copied();
        candidates.min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    /// Collects the vertices of edges between triangles that face the camera and triangles that do
    /// not: `occluding_boundary_vertices` without its last step.
    fn find_edges(&mut self, model: &FaceModel) {
        let [x, y, _] = self.view.axes();
        let front = |triangle: &[u32; 3]| {
            let [a, b, c] = triangle.map(|corner| corner as usize);
            let area = (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]);
            i8::from(area > 0.0) - i8::from(area < 0.0)
        };
        self.fronts.clear();
        self.fronts
            .extend(model.shape().triangles.iter().map(front));
        self.at_edge.clear();
        self.at_edge.resize(model.shape().mean.len(), false);
        for edge in &model.topology().edges {
            let [a, b] = edge
                .triangles
                .map(|triangle| self.fronts[triangle as usize]);
            if a != b {
                for vertex in edge.vertices {
                    self.at_edge[vertex as usize] = true;
                }
            }
        }
        let edges = self.at_edge.iter().enumerate();
        let edges = edges.filter_map(|(vertex, is_at_edge)| is_at_edge.then_some(vertex));
        self.candidates.clear();
        self.candidates.extend(edges);
    }

    /// `find_occluding_edge_correspondences` for the candidates. The original tests the visibility
    /// of all of them first.
    fn match_edges(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        away: &[usize],
        farthest: f32,
    ) {
        self.occluding.clear();
        for vertex in &self.candidates {
            let place = self.view.place(*vertex);
            let distances = away
                .iter()
                .map(|l| (squared_distance(landmarks[*l], place), *l));
            let nearest = distances.min_by(|a, b| a.0.total_cmp(&b.0));
            let near = nearest.filter(|(distance, _)| *distance <= farthest);
            self.occluding
                .extend(near.map(|(_, landmark)| (landmark, *vertex)));
        }
        let vertices = self.occluding.iter().map(|(_, vertex)| *vertex);
        let triangles = &model.shape().triangles;
        let hidden = self.visibility.hidden(&self.view, triangles, vertices);
        let mut hidden = hidden.iter();
        self.occluding
            .retain(|_| !hidden.next().is_some_and(|is_hidden| *is_hidden));
    }
}

fn squared_distance(a: Point, b: Point) -> f32 {
    (a.x - b.x).powi(2) + (a.y - b.y).powi(2)
}
