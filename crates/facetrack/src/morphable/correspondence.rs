// SPDX-License-Identifier: MPL-2.0
//! Vertices for the landmarks of the outline: eos' `contour_correspondence.hpp` for the side that
//! faces the camera, `closest_edge_fitting.hpp` for the other side.

use super::mesh::Mesh;
use super::visibility::{self, View};
use super::{FaceModel, Pose};
use crate::geometry::Point;

/// Maximum yaw, degrees, at which both sides of a face are visible: `frontal_range_threshold` of
/// `select_contour`.
const FRONTAL_YAW: f64 = 7.5;

/// Maximum squared distance between a landmark and its vertex, px², for a scale of 1 px per unit of
/// the model; proportional to the scale. `fit_shape_and_pose`'s argument to
/// `find_occluding_edge_correspondences`.
const EDGE_DISTANCE: f64 = 180.0;

/// Finds vertices for the landmarks of the outline. It keeps the last matches.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Landmarks of the sides that face the camera, each with the nearest vertex of the model's
    /// contour.
    facing: Vec<(usize, usize)>,
    /// Vertices of the silhouette, each with the nearest landmark of the side that is turned away.
    occluding: Vec<(usize, usize)>,
    view: View,
}

/// A side of the outline: its landmarks, and the vertices of the model's contour there.
type Side<'a> = (&'a [usize], &'a [usize]);

/// The right side and the left side of the face.
fn sides(model: &FaceModel) -> [Side<'_>; 2] {
    let (mapping, contours) = (model.mapping(), model.contours());
    [
        (&mapping.right_contour, &contours.right),
        (&mapping.left_contour, &contours.left),
    ]
}

impl Outline {
    /// Matches the outline with `mesh` as seen in `pose`.
    pub(super) fn find(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        mesh: &Mesh,
        pose: &Pose,
    ) {
        self.view = View::new(mesh, pose);
        self.find_facing(model, landmarks, pose.yaw());
        let [right, left] = sides(model);
        let (away, _) = if pose.yaw() >= 0.0 { left } else { right };
        self.match_edges(model, landmarks, away, (EDGE_DISTANCE * pose.scale) as f32);
    }

    /// Pairs of landmark and vertex. A landmark may occur more than once.
    pub(super) fn matches(&self) -> impl Iterator<Item = &(usize, usize)> {
        self.facing.iter().chain(&self.occluding)
    }

    /// The vertex of each landmark of the outline, in the order of the landmarks: see
    /// [`Fit::contour`](super::Fit::contour).
    pub(super) fn vertices(&self, model: &FaceModel, landmarks: &[Point]) -> Vec<(usize, usize)> {
        let mut vertices = self.facing.clone();
        let edges: Vec<usize> = self.occluding.iter().map(|(_, vertex)| *vertex).collect();
        for (side, contour) in sides(model) {
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

    /// Finds the correspondences of the sides that face the camera: `select_contour` and
    /// `get_nearest_contour_correspondences`.
    fn find_facing(&mut self, model: &FaceModel, landmarks: &[Point], yaw: f64) {
        let shown = [yaw >= -FRONTAL_YAW, yaw <= FRONTAL_YAW];
        let sides = std::iter::zip(sides(model), shown).filter(|(_, is_shown)| *is_shown);
        let (facing, contours): (Vec<_>, Vec<_>) = sides.map(|(side, _)| side).unzip();
        let candidates = contours.concat();
        let pairs = facing.into_iter().flatten().filter_map(|landmark| {
            let vertex = self.nearest(landmarks[*landmark], &candidates)?;
            Some((*landmark, vertex))
        });
        self.facing = pairs.collect();
    }

    /// The candidate that is seen nearest to `landmark`.
    fn nearest(&self, landmark: Point, candidates: &[usize]) -> Option<usize> {
        let distance = |vertex: &usize| squared_distance(landmark, self.view.place(*vertex));
        let candidates = candidates.iter().copied();
        candidates.min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    /// The vertices of edges between triangles that face the camera and triangles that do not, in
    /// ascending order: `occluding_boundary_vertices` without its last step.
    fn edges(&self, model: &FaceModel) -> Vec<usize> {
        let [x, y, _] = &self.view.mesh.axes;
        let front = |triangle: &[u32; 3]| {
            let [a, b, c] = triangle.map(|corner| corner as usize);
            let area = (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]);
            i8::from(area > 0.0) - i8::from(area < 0.0)
        };
        let fronts: Vec<i8> = model.shape().triangles.iter().map(front).collect();
        let edges = model.edges.iter().filter(|edge| {
            let [a, b] = edge.triangles.map(|triangle| fronts[triangle as usize]);
            a != b
        });
        let vertices = edges.flat_map(|edge| edge.vertices);
        let mut vertices: Vec<usize> = vertices.map(|vertex| vertex as usize).collect();
        vertices.sort_unstable();
        vertices.dedup();
        vertices
    }

    /// Finds the correspondences of vertices at edges: `find_occluding_edge_correspondences`. The
    /// original tests the visibility of all of them first.
    fn match_edges(
        &mut self,
        model: &FaceModel,
        landmarks: &[Point],
        away: &[usize],
        farthest: f32,
    ) {
        let pairs = self.edges(model).into_iter().filter_map(|vertex| {
            let place = self.view.place(vertex);
            let distances = away
                .iter()
                .map(|l| (squared_distance(landmarks[*l], place), *l));
            let nearest = distances.min_by(|a, b| a.0.total_cmp(&b.0));
            let (_, landmark) = nearest.filter(|(distance, _)| *distance <= farthest)?;
            Some((landmark, vertex))
        });
        let pairs: Vec<_> = pairs.collect();
        let vertices = pairs.iter().map(|(_, vertex)| *vertex);
        let hidden = visibility::hidden(&self.view, &model.shape().triangles, vertices);
        let pairs = std::iter::zip(pairs, hidden).filter(|(_, is_hidden)| !is_hidden);
        self.occluding = pairs.map(|(pair, _)| pair).collect();
    }
}

fn squared_distance(a: Point, b: Point) -> f32 {
    let (x, y) = (a.x - b.x, a.y - b.y);
    x * x + y * y
}
