// SPDX-License-Identifier: MPL-2.0
//! Which vertices the outline's landmarks belong to: eos' `contour_correspondence.hpp` for the side that faces the camera,
//! `closest_edge_fitting.hpp` for the other.

use super::mesh::Mesh;
use super::visibility::Visibility;
use super::{FaceModel, Pose};
use crate::face::geometry::Point;

/// Degrees to either side within which a face shows both of its sides: `frontal_range_threshold` of `select_contour`.
const FRONTAL_YAW: f64 = 7.5;

/// The greatest squared distance of a landmark from the vertex that it is matched with, px², at one pixel per unit of the
/// model, and proportional to that: `fit_shape_and_pose`'s argument to `find_occluding_edge_correspondences`.
const EDGE_DISTANCE: f64 = 180.0;

/// Landmarks and the vertices that they were matched with.
pub type Matches = Vec<(usize, usize)>;

/// Finds vertices for the landmarks of the outline. It keeps memory to work in, and what it found last.
#[derive(Debug, Default)]
pub struct Outline {
    /// Landmarks of the sides that face the camera, each with the nearest vertex of the model's contour.
    pub facing: Matches,
    /// Vertices at the edge of what is seen, each with the nearest landmark of the side that is turned away.
    pub occluding: Matches,
    rotated: [Vec<f32>; 3],
    fronts: Vec<i8>,
    at_edge: Vec<bool>,
    candidates: Vec<usize>,
    visibility: Visibility,
}

impl Outline {
    /// Matches the outline with `mesh` as `pose` shows it.
    pub fn find(&mut self, model: &FaceModel, landmarks: &[Point], mesh: &Mesh, pose: &Pose) {
        self.find_facing(model, landmarks, mesh, pose);
        self.find_occluding(model, landmarks, mesh, pose);
    }

    /// `select_contour` and `get_nearest_contour_correspondences`.
    fn find_facing(&mut self, model: &FaceModel, landmarks: &[Point], mesh: &Mesh, pose: &Pose) {
        let (yaw, mapping, contours) = (pose.yaw(), model.mapping(), model.contours());
        let (mut wanted, mut candidates) = (Vec::new(), Vec::new());
        if yaw >= -FRONTAL_YAW {
            wanted.extend_from_slice(&mapping.right_contour);
            candidates.extend_from_slice(&contours.right);
        }
        if yaw <= FRONTAL_YAW {
            wanted.extend_from_slice(&mapping.left_contour);
            candidates.extend_from_slice(&contours.left);
        }
        self.facing.clear();
        for landmark in wanted {
            let vertex = nearest(landmarks[landmark], &candidates, mesh, pose);
            self.facing.extend(vertex.map(|vertex| (landmark, vertex)));
        }
    }

    /// `find_occluding_edge_correspondences`.
    fn find_occluding(&mut self, model: &FaceModel, landmarks: &[Point], mesh: &Mesh, pose: &Pose) {
        self.occluding.clear();
        let wanted = away_side(model, pose);
        self.rotate(mesh, pose);
        self.find_edges(model);
        let farthest = (EDGE_DISTANCE * pose.scale) as f32;
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.retain(|vertex| {
            let place = self.place(*vertex, pose);
            let mut distances = wanted
                .iter()
                .map(|l| squared_distance(landmarks[*l], place));
            distances.any(|distance| distance <= farthest)
        });
        let [x, y, z] = &self.rotated;
        let triangles = &model.shape().triangles;
        self.visibility
            .keep_visible([x, y, z], triangles, &mut candidates);
        for vertex in &candidates {
            let place = self.place(*vertex, pose);
            let distance = |landmark: &usize| squared_distance(landmarks[*landmark], place);
            let nearest = wanted
                .iter()
                .min_by(|a, b| distance(a).total_cmp(&distance(b)));
            self.occluding
                .extend(nearest.map(|landmark| (*landmark, *vertex)));
        }
        self.candidates = candidates;
    }

    fn rotate(&mut self, mesh: &Mesh, pose: &Pose) {
        let [x, y, z] = [0, 1, 2].map(|axis| mesh.axis(axis));
        for (axis, rotated) in self.rotated.iter_mut().enumerate() {
            let [a, b, c] = [0, 1, 2].map(|column| pose.rotation[(axis, column)] as f32);
            rotated.clear();
            let vertices = std::iter::zip(x, std::iter::zip(y, z));
            rotated.extend(vertices.map(|(x, (y, z))| a * x + b * y + c * z));
        }
    }

    /// Where a vertex is in the image, px.
    fn place(&self, vertex: usize, pose: &Pose) -> Point {
        let [x, y, _] = &self.rotated;
        let scale = pose.scale as f32;
        Point::new(
            pose.origin[0] as f32 + scale * x[vertex],
            pose.origin[1] as f32 - scale * y[vertex],
        )
    }

    /// The vertices of the edges between triangles that face the camera and others: `occluding_boundary_vertices` without
    /// its last step.
    fn find_edges(&mut self, model: &FaceModel) {
        let [x, y, _] = &self.rotated;
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
        let all = self.at_edge.iter().enumerate();
        self.candidates.clear();
        self.candidates
            .extend(all.filter_map(|(vertex, is_at_edge)| is_at_edge.then_some(vertex)));
    }
}

/// Landmarks of the side that is turned away.
fn away_side<'a>(model: &'a FaceModel, pose: &Pose) -> &'a [usize] {
    let mapping = model.mapping();
    if pose.yaw() >= 0.0 {
        &mapping.left_contour
    } else {
        &mapping.right_contour
    }
}

/// The one of `candidates` that is seen nearest to `landmark`.
fn nearest(landmark: Point, candidates: &[usize], mesh: &Mesh, pose: &Pose) -> Option<usize> {
    let distance = |vertex: &usize| squared_distance(landmark, pose.project(mesh.vertex(*vertex)));
    let candidates = candidates.iter().copied();
    candidates.min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

fn squared_distance(a: Point, b: Point) -> f32 {
    (a.x - b.x).powi(2) + (a.y - b.y).powi(2)
}
