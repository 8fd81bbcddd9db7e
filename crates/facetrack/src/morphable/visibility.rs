// SPDX-License-Identifier: MPL-2.0
//! Visibility of vertices: eos' `vertex_visibility.hpp` and `ray_triangle_intersect.hpp`.
//!
//! The original tests every triangle against every vertex. Here the vertices are sorted into strips
//! of the image's plane, and each triangle is tested against the strips that it overlaps, with the
//! same result.

use super::Pose;
use super::mesh::Mesh;
use crate::geometry::Point;

/// Minimum of twice the area of a hiding triangle in the image's plane, in squared units of the
/// model: `epsilon` in `ray_triangle_intersect`.
const MIN_AREA: f32 = 1e-6;

/// Minimum distance between a vertex and a triangle that hides it, in units of the model:
/// `is_vertex_visible`.
const MIN_DISTANCE: f32 = 1e-4;

/// Number of strips.
const STRIPS: usize = 128;

/// A mesh seen by a camera.
#[derive(Debug, Default)]
pub struct View {
    /// x, y and z of the vertices in the camera's axes, around the model's origin, in its unit.
    axes: [Vec<f32>; 3],
    origin: Point,
    scale: f32,
}

impl View {
    /// Computes the view of `mesh` in `pose`.
    pub fn show(&mut self, mesh: &Mesh, pose: &Pose) {
        let [x, y, z] = [0, 1, 2].map(|axis| mesh.axis(axis));
        for (axis, rotated) in self.axes.iter_mut().enumerate() {
            let [a, b, c] = [0, 1, 2].map(|column| pose.rotation[(axis, column)] as f32);
            let vertices = std::iter::zip(x, std::iter::zip(y, z));
            rotated.clear();
            rotated.extend(vertices.map(|(x, (y, z))| a * x + b * y + c * z));
        }
        self.origin = Point::new(pose.origin[0] as f32, pose.origin[1] as f32);
        self.scale = pose.scale as f32;
    }

    /// x, y and z of the vertices in the camera's axes.
    pub fn axes(&self) -> [&[f32]; 3] {
        let [x, y, z] = &self.axes;
        [x, y, z]
    }

    /// Position of a vertex in the image, px.
    pub fn place(&self, vertex: usize) -> Point {
        let [x, y, _] = &self.axes;
        Point::new(
            self.origin.x + self.scale * x[vertex],
            self.origin.y - self.scale * y[vertex],
        )
    }

    fn vertex(&self, vertex: usize) -> [f32; 3] {
        [0, 1, 2].map(|axis| self.axes[axis][vertex])
    }
}

/// Working memory of the test.
#[derive(Debug, Default)]
pub struct Visibility {
    /// The tested vertices, by strip.
    probes: Vec<Probe>,
    /// Whether each vertex is hidden, in the caller's order.
    hidden: Vec<bool>,
    /// Index of each strip's first probe, and the end of the last strip.
    starts: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    vertex: usize,
    /// Position in the caller's order.
    place: usize,
    position: [f32; 3],
}

impl Visibility {
    /// Whether a triangle hides each of `vertices`. Triangles with that corner do not count; in the
    /// original some of them do, by rounding errors.
    pub fn hidden(
        &mut self,
        view: &View,
        triangles: &[[u32; 3]],
        vertices: impl Iterator<Item = usize>,
    ) -> &[bool] {
        self.probes.clear();
        self.probes
            .extend(vertices.enumerate().map(|(place, vertex)| Probe {
                vertex,
                place,
                position: view.vertex(vertex),
            }));
        self.hidden.clear();
        self.hidden.resize(self.probes.len(), false);
        let [x, y, z] = view.axes();
        let [across, along, _] =
            [0, 1, 2].map(|axis| Range::of(self.probes.iter().map(|p| p.position[axis])));
        let strips = Strips::new(&along);
        self.line_up(&strips);
        for triangle in triangles {
            let corners = triangle.map(|corner| corner as usize);
            // The vertices are on one side of the face, so that this test excludes most triangles.
            let wide = Range::of(corners.map(|corner| x[corner]));
            if !wide.meets(&across) {
                continue;
            }
            let high = Range::of(corners.map(|corner| y[corner]));
            if !high.meets(&along) {
                continue;
            }
            let positions = corners.map(|corner| [x[corner], y[corner], z[corner]]);
            let waiting = self.starts[strips.of(high.low)]..self.starts[strips.of(high.high) + 1];
            for probe in &self.probes[waiting] {
                let is_near = wide.holds(probe.position[0]) && high.holds(probe.position[1]);
                let is_foreign = is_near && !corners.contains(&probe.vertex);
                if is_foreign && hides(positions, probe.position) {
                    self.hidden[probe.place] = true;
                }
            }
        }
        &self.hidden
    }

    fn line_up(&mut self, strips: &Strips) {
        let strip = |probe: &Probe| strips.of(probe.position[1]);
        self.probes
            .sort_unstable_by_key(|probe| (strip(probe), probe.place));
        self.starts.clear();
        let probes = &self.probes;
        let start = |wanted| probes.partition_point(|probe| strip(probe) < wanted);
        self.starts.extend((0..=STRIPS).map(start));
    }
}

/// A range of numbers, ends included.
struct Range {
    low: f32,
    high: f32,
}

impl Range {
    fn of(numbers: impl IntoIterator<Item = f32>) -> Self {
        let nothing = Self {
            low: f32::INFINITY,
            high: f32::NEG_INFINITY,
        };
        numbers.into_iter().fold(nothing, |range, number| Self {
            low: range.low.min(number),
            high: range.high.max(number),
        })
    }

    fn holds(&self, number: f32) -> bool {
        self.low <= number && number <= self.high
    }

    fn meets(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Strips of equal height.
struct Strips {
    low: f32,
    per_unit: f32,
}

impl Strips {
    fn new(range: &Range) -> Self {
        Self {
            low: range.low,
            per_unit: STRIPS as f32 / (range.high - range.low).max(f32::MIN_POSITIVE),
        }
    }

    /// The strip of a position, clamped to the first and last.
    fn of(&self, place: f32) -> usize {
        (((place - self.low) * self.per_unit) as usize).min(STRIPS - 1)
    }
}

/// Whether a triangle is between `probe` and a camera in z direction: Möller & Trumbore, "Fast,
/// Minimum Storage Ray/Triangle Intersection", 1997, for a ray along z.
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
    fn strips_find_what_every_triangle_tried_finds() {
        let model = head();
        let (sampler, mut mesh) = (Sampler::new(&model), Mesh::default());
        let (mut view, mut visibility) = (View::default(), Visibility::default());
        let triangles = &model.shape().triangles;
        let mut noise = Noise(9);
        let (mut hidden, mut seen) = (0, 0);
        for round in 0..12 {
            sampler.sample(&noise.take(10), &[0.5, 0.5], &mut mesh);
            let [yaw, pitch, roll] = [100.0, 40.0, 180.0].map(|most| most * noise.next());
            view.show(&mesh, &pose(yaw, pitch, roll, 1.0));
            let vertices: Vec<_> = (round % 7..model.shape().mean.len()).step_by(7).collect();
            let found = visibility.hidden(&view, triangles, vertices.iter().copied());
            assert_eq!(found.len(), vertices.len());
            for (vertex, is_hidden) in std::iter::zip(vertices, found) {
                let mut foreign = triangles
                    .iter()
                    .map(|triangle| triangle.map(|corner| corner as usize))
                    .filter(|corners| !corners.contains(&vertex));
                let position = view.vertex(vertex);
                let wanted = foreign.any(|c| hides(c.map(|corner| view.vertex(corner)), position));
                assert_eq!(*is_hidden, wanted, "round {round}, vertex {vertex}");
                hidden += usize::from(wanted);
                seen += usize::from(!wanted);
            }
        }
        assert!(hidden > 100 && seen > 100, "{hidden} {seen}");
        assert!(
            visibility
                .hidden(&view, triangles, std::iter::empty())
                .is_empty()
        );
        assert_eq!(
            visibility
                .hidden(&view, triangles, std::iter::once(0))
                .len(),
            1
        );
    }
}
