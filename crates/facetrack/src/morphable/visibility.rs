// SPDX-License-Identifier: MPL-2.0
//! Visibility of vertices: eos' `vertex_visibility.hpp` and `ray_triangle_intersect.hpp`.
//!
//! The original tests every triangle against every vertex. Here the vertices are sorted by height,
//! and each triangle is tested against those between its lowest and its highest corner, with the
//! same result.

use std::ops::RangeInclusive;

use super::Pose;
use super::mesh::Mesh;
use crate::geometry::Point;

/// Minimum of twice the area of a hiding triangle in the image's plane, in squared units of the
/// model: `epsilon` in `ray_triangle_intersect`.
const MIN_AREA: f32 = 1e-6;

/// Minimum distance between a vertex and a triangle that hides it, in units of the model:
/// `is_vertex_visible`.
const MIN_DISTANCE: f32 = 1e-4;

/// A mesh seen by a camera.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The mesh in the camera's axes, around the model's origin, in its unit.
    pub mesh: Mesh,
    origin: Point,
    scale: f32,
}

impl View {
    /// The view of `mesh` in `pose`.
    pub(super) fn new(mesh: &Mesh, pose: &Pose) -> Self {
        let [x, y, z] = &mesh.axes;
        let rotated = |axis| {
            let [a, b, c] = [0, 1, 2].map(|column| pose.rotation[(axis, column)] as f32);
            let vertices = std::iter::zip(x, std::iter::zip(y, z));
            let rotated = vertices.map(|(x, (y, z))| a * x + b * y + c * z);
            rotated.collect()
        };
        Self {
            mesh: Mesh {
                axes: [0, 1, 2].map(rotated),
            },
            origin: Point::new(pose.origin[0] as f32, pose.origin[1] as f32),
            scale: pose.scale as f32,
        }
    }

    /// Position of a vertex in the image, px.
    pub(super) fn place(&self, vertex: usize) -> Point {
        let [x, y, _] = self.mesh.vertex(vertex);
        Point::new(
            self.origin.x + self.scale * x,
            self.origin.y - self.scale * y,
        )
    }
}

struct Probe {
    vertex: usize,
    /// Position in the caller's order.
    place: usize,
    position: [f32; 3],
}

/// Returns for each of `vertices` whether a triangle hides it. Triangles with the vertex as a
/// corner do not count; in the original some of them do, by rounding errors.
pub(super) fn hidden(
    view: &View,
    triangles: &[[u32; 3]],
    vertices: impl Iterator<Item = usize>,
) -> Vec<bool> {
    let probes = vertices.enumerate().map(|(place, vertex)| Probe {
        vertex,
        place,
        position: view.mesh.vertex(vertex),
    });
    let mut probes: Vec<Probe> = probes.collect();
    probes.sort_unstable_by(|a, b| a.position[1].total_cmp(&b.position[1]));
    let across = range(probes.iter().map(|probe| probe.position[0]));
    let mut hidden = vec![false; probes.len()];
    for triangle in triangles {
        let corners = triangle.map(|corner| corner as usize);
        let positions = corners.map(|corner| view.mesh.vertex(corner));
        // The vertices are on one side of the face, so that this test excludes most triangles.
        let wide = range(positions.map(|position| position[0]));
        if wide.start() > across.end() || across.start() > wide.end() {
            continue;
        }
        let high = range(positions.map(|position| position[1]));
        let first = probes.partition_point(|probe| probe.position[1] < *high.start());
        let probes = probes[first..].iter();
        for probe in probes.take_while(|probe| probe.position[1] <= *high.end()) {
            let is_foreign = wide.contains(&probe.position[0]) && !corners.contains(&probe.vertex);
            if is_foreign && hides(positions, probe.position) {
                hidden[probe.place] = true;
            }
        }
    }
    hidden
}

/// The range from the minimum to the maximum number; an empty one if there are no numbers.
fn range(numbers: impl IntoIterator<Item = f32>) -> RangeInclusive<f32> {
    let numbers = numbers.into_iter();
    numbers.fold(f32::INFINITY..=f32::NEG_INFINITY, |range, number| {
        range.start().min(number)..=range.end().max(number)
    })
}

/// Returns true if a triangle is between `probe` and a camera in z direction: Möller & Trumbore,
/// "Fast, Minimum Storage Ray/Triangle Intersection", 1997, for a ray along z.
fn hides([a, b, c]: [[f32; 3]; 3], probe: [f32; 3]) -> bool {
    let minus = |p: [f32; 3], q: [f32; 3]| [p[0] - q[0], p[1] - q[1], p[2] - q[2]];
    let (ab, ac, from_a) = (minus(b, a), minus(c, a), minus(probe, a));
    let double_area = ac[0] * ab[1] - ac[1] * ab[0];
    if double_area.abs() < MIN_AREA {
        return false;
    }
    let inverse = 1.0 / double_area;
    let u = (ac[0] * from_a[1] - ac[1] * from_a[0]) * inverse;
    let v = (from_a[0] * ab[1] - from_a[1] * ab[0]) * inverse;
    if u < 0.0 || v < 0.0 || u + v > 1.0 {
        return false;
    }
    let height = u * ab[2] + v * ac[2] - from_a[2];
    height > MIN_DISTANCE
}

#[cfg(test)]
mod tests {
    use super::super::mesh::Sampler;
    use super::super::tests::synthetic::{Noise, head, pose};
    use super::*;

    #[test]
    fn a_triangle_hides_what_is_behind_it() {
        let triangle = [[0.0, 0.0, 1.0], [4.0, 0.0, 1.0], [0.0, 4.0, 5.0]];
        let [a, b, c] = triangle;
        for (probe, is_hidden) in [
            ([1.0, 1.0, 0.0], true),
            ([1.0, 1.0, 1.9], true),
            ([1.0, 1.0, 2.1], false),
            ([0.0, 0.0, 0.0], true),
            ([0.0, 0.0, 1.0], false),
            ([2.1, 2.1, 0.0], false),
            ([-0.1, 1.0, 0.0], false),
            ([1.0, -0.1, 0.0], false),
        ] {
            assert_eq!(hides([a, b, c], probe), is_hidden, "{probe:?}");
            assert_eq!(hides([b, a, c], probe), is_hidden, "{probe:?} from behind");
        }
        let edge_on = [[0.0, 0.0, 1.0], [4.0, 0.0, 1.0], [2.0, 0.0, 5.0]];
        assert!(!hides(edge_on, [2.0, 0.0, 0.0]));
    }

    #[test]
    fn sorted_vertices_find_what_every_triangle_tried_finds() {
        let model = head();
        let (sampler, mut mesh) = (Sampler::new(&model), Mesh::default());
        let triangles = &model.shape().triangles;
        let mut noise = Noise(9);
        let (mut hidden, mut seen) = (0, 0);
        for round in 0..12 {
            sampler.sample(&noise.take(10), &[0.5, 0.5], &mut mesh);
            let [yaw, pitch, roll] = [100.0, 40.0, 180.0].map(|most| most * noise.next());
            let view = View::new(&mesh, &pose(yaw, pitch, roll, 1.0));
            let vertices: Vec<_> = (round % 7..model.shape().mean.len()).step_by(7).collect();
            let found = super::hidden(&view, triangles, vertices.iter().copied());
            assert_eq!(found.len(), vertices.len());
            for (vertex, is_hidden) in std::iter::zip(vertices, found) {
                let mut foreign = triangles
                    .iter()
                    .map(|triangle| triangle.map(|corner| corner as usize))
                    .filter(|corners| !corners.contains(&vertex));
                let position = view.mesh.vertex(vertex);
                let wanted =
                    foreign.any(|c| hides(c.map(|corner| view.mesh.vertex(corner)), position));
                assert_eq!(is_hidden, wanted, "round {round}, vertex {vertex}");
                hidden += usize::from(wanted);
                seen += usize::from(!wanted);
            }
        }
        assert!(hidden > 100 && seen > 100, "{hidden} {seen}");
        let view = View::new(&mesh, &pose(0.0, 0.0, 0.0, 1.0));
        assert!(super::hidden(&view, triangles, std::iter::empty()).is_empty());
        let one = super::hidden(&view, triangles, std::iter::once(0));
        assert_eq!(one.len(), 1);
    }
}
