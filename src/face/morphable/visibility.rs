// SPDX-License-Identifier: MPL-2.0
//! Which vertices the camera sees: eos' `vertex_visibility.hpp` and `ray_triangle_intersect.hpp`.
//!
//! The original tries every triangle for every vertex. Here the vertices in question wait in strips of the image's plane, and
//! each triangle asks those strips alone that it reaches into; what is found is the same.

use super::Pose;
use super::mesh::Mesh;
use crate::face::geometry::Point;

/// Twice the area of a triangle in the image's plane, in squared units of the model, from which on it hides something:
/// `epsilon` in `ray_triangle_intersect`.
const LEAST_AREA: f32 = 1e-6;

/// How far in front of a vertex a triangle must be to hide it, in units of the model: `is_vertex_visible`.
const LEAST_DISTANCE: f32 = 1e-4;

/// Strips that the vertices wait in.
const STRIPS: usize = 128;

/// A mesh as a camera sees it.
#[derive(Debug, Default)]
pub struct View {
    /// x, y and z of the vertices in the camera's axes, around the model's origin, in its unit.
    axes: [Vec<f32>; 3],
    origin: Point,
    scale: f32,
}

impl View {
    /// Shows `mesh`.
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

    /// Where a vertex is in the image, px.
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

/// Memory to work in.
#[derive(Debug, Default)]
pub struct Visibility {
    /// Vertices in question.
    probes: Vec<Probe>,
    /// Whether they are hidden, in the order in which they were given.
    hidden: Vec<bool>,
    /// Where each strip's vertices begin in `probes`, and the end of the last.
    starts: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    vertex: usize,
    /// Which of the vertices given.
    place: usize,
    position: [f32; 3],
}

impl Visibility {
    /// Whether other triangles hide each of `vertices`. Its own ones do not: they do in the original here and there, by its
    /// roundings.
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
            let wide = Range::of(corners.map(|corner| x[corner]));
            let high = Range::of(corners.map(|corner| y[corner]));
            if !(wide.meets(&across) && high.meets(&along)) {
                continue;
            }
            let waiting = self.starts[strips.of(high.low)]..self.starts[strips.of(high.high) + 1];
            if waiting.is_empty() {
                continue;
            }
            let positions = corners.map(|corner| [x[corner], y[corner], z[corner]]);
            for probe in &self.probes[waiting] {
                if !corners.contains(&probe.vertex) && hides(positions, probe.position) {
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

/// From the lowest to the highest of some numbers.
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

    /// The strip of a place; beyond the ends it is the first or last.
    fn of(&self, place: f32) -> usize {
        (((place - self.low) * self.per_unit) as usize).min(STRIPS - 1)
    }
}

/// Whether a triangle lies between `probe` and a camera along z: Möller & Trumbore, "Fast, Minimum Storage Ray/Triangle
/// Intersection", 1997, for a ray along z.
fn hides([a, b, c]: [[f32; 3]; 3], probe: [f32; 3]) -> bool {
    let minus = |p: [f32; 3], q: [f32; 3]| [p[0] - q[0], p[1] - q[1], p[2] - q[2]];
    let (ab, ac, from_a) = (minus(b, a), minus(c, a), minus(probe, a));
    let double_area = ac[0] * ab[1] - ac[1] * ab[0];
    if double_area.abs() < LEAST_AREA {
        return false;
    }
    let inverse = 1.0 / double_area;
    let u = (ac[0] * from_a[1] - ac[1] * from_a[0]) * inverse;
    let v = (from_a[0] * ab[1] - from_a[1] * ab[0]) * inverse;
    if u < 0.0 || v < 0.0 || u + v > 1.0 {
        return false;
    }
    let height = u * ab[2] + v * ac[2] - from_a[2];
    height > LEAST_DISTANCE
}
