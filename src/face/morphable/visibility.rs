// SPDX-License-Identifier: MPL-2.0
//! Which vertices the camera sees: eos' `vertex_visibility.hpp` and `ray_triangle_intersect.hpp`.
//!
//! The original tries every triangle for every vertex. Here the vertices in question wait in strips of the image's plane, and
//! each triangle asks the strips that it reaches into; what is found is the same.

/// Twice the area of a triangle in the image's plane, in squared units of the model, from which on it hides something:
/// `epsilon` in `ray_triangle_intersect`.
const LEAST_AREA: f32 = 1e-6;

/// How far in front of a vertex a triangle must be to hide it, in units of the model: `is_vertex_visible`.
const LEAST_DISTANCE: f32 = 1e-4;

/// Strips that the vertices wait in.
const STRIPS: usize = 128;

/// Memory to work in.
#[derive(Debug, Default)]
pub struct Visibility {
    /// Vertices in question, strip by strip from the lowest y on, and whether they are hidden.
    waiting: Vec<(usize, bool)>,
    /// Where each strip begins in `waiting`, and the end of the last.
    starts: Vec<usize>,
}

impl Visibility {
    /// Keeps those of `vertices` that no triangle of the mesh hides from a camera along z. `mesh` has the rotated x, y and z.
    pub fn keep_visible(
        &mut self,
        mesh: [&[f32]; 3],
        triangles: &[[u32; 3]],
        vertices: &mut Vec<usize>,
    ) {
        let [x, y, z] = mesh;
        let Some(strips) = Strips::around(vertices.iter().map(|v| y[*v])) else {
            return;
        };
        self.line_up(&strips, vertices, y);
        for triangle in triangles {
            let corners = triangle.map(|corner| corner as usize);
            let [lowest, highest] = extent(corners.map(|corner| y[corner]));
            if highest < strips.lowest || lowest > strips.highest {
                continue;
            }
            let reached = strips.of(lowest)..=strips.of(highest);
            let waiting = self.starts[*reached.start()]..self.starts[reached.end() + 1];
            let corners = corners.map(|corner| [x[corner], y[corner], z[corner]]);
            for (vertex, is_hidden) in &mut self.waiting[waiting] {
                *is_hidden = *is_hidden || hides(corners, [x[*vertex], y[*vertex], z[*vertex]]);
            }
        }
        vertices.clear();
        let visible = self.waiting.iter().filter(|(_, is_hidden)| !is_hidden);
        vertices.extend(visible.map(|(vertex, _)| vertex));
        vertices.sort_unstable();
    }

    fn line_up(&mut self, strips: &Strips, vertices: &[usize], y: &[f32]) {
        self.waiting.clear();
        self.waiting.extend(vertices.iter().map(|v| (*v, false)));
        self.waiting
            .sort_unstable_by(|a, b| y[a.0].total_cmp(&y[b.0]));
        self.starts.clear();
        for strip in 0..=STRIPS {
            let start = self
                .waiting
                .partition_point(|(v, _)| strips.of(y[*v]) < strip);
            self.starts.push(start);
        }
    }
}

/// Strips of equal height.
struct Strips {
    lowest: f32,
    highest: f32,
    per_unit: f32,
}

impl Strips {
    /// Strips from the lowest to the highest of `places`; `None` without places.
    fn around(places: impl Iterator<Item = f32>) -> Option<Self> {
        let extent = places.fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], place| {
            [low.min(place), high.max(place)]
        });
        let [lowest, highest] = extent;
        let per_unit = STRIPS as f32 / (highest - lowest).max(f32::MIN_POSITIVE);
        (lowest <= highest).then_some(Self {
            lowest,
            highest,
            per_unit,
        })
    }

    /// The strip of a place; beyond the ends it is the first or last.
    fn of(&self, place: f32) -> usize {
        (((place - self.lowest) * self.per_unit) as usize).min(STRIPS - 1)
    }
}

fn extent([a, b, c]: [f32; 3]) -> [f32; 2] {
    [a.min(b).min(c), a.max(b).max(c)]
}

/// Whether a triangle lies between `probe` and a camera along z: Möller & Trumbore, "Fast, Minimum Storage Ray/Triangle
/// Intersection", 1997, for a ray along z, in the original's order of operations.
pub fn hides([a, b, c]: [[f32; 3]; 3], probe: [f32; 3]) -> bool {
    let minus = |p: [f32; 3], q: [f32; 3]| [p[0] - q[0], p[1] - q[1], p[2] - q[2]];
    let (ab, ac) = (minus(b, a), minus(c, a));
    let double_area = ac[0] * ab[1] - ac[1] * ab[0];
    if double_area.abs() < LEAST_AREA {
        return false;
    }
    let inverse = 1.0 / double_area;
    let from_a = minus(probe, a);
    let u = (ac[0] * from_a[1] - ac[1] * from_a[0]) * inverse;
    if !(0.0..=1.0).contains(&u) {
        return false;
    }
    let normal = [
        from_a[1] * ab[2] - from_a[2] * ab[1],
        from_a[2] * ab[0] - from_a[0] * ab[2],
        from_a[0] * ab[1] - from_a[1] * ab[0],
    ];
    let v = normal[2] * inverse;
    if v < 0.0 || u + v > 1.0 {
        return false;
    }
    let distance = (ac[0] * normal[0] + (ac[1] * normal[1] + ac[2] * normal[2])) * inverse;
    distance > LEAST_DISTANCE
}
