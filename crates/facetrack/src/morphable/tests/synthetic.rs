// SPDX-License-Identifier: MPL-2.0
//! A synthetic head for tests without model files: half an ellipsoid with a nose and a mouth that
//! can open.

use nalgebra::{Matrix3, Rotation3};

use crate::geometry::Point;
use crate::morphable::{Expression, FaceModel, LandmarkMapping, ModelContours, Pose, ShapeModel};

/// Rows and columns of vertices.
const ROWS: usize = 40;
const COLUMNS: usize = 45;

/// Columns of squares, from the left, and the row of the mouth's opening.
const MOUTH: (std::ops::Range<usize>, usize) = (18..26, 12);

/// Columns of the outline.
const SIDES: [usize; 2] = [5, COLUMNS - 6];

/// The longitude of the outer columns, degrees: the head ends a little behind the ears.
const SIDE: f32 = 110.0;

/// Uniform noise: Knuth's 64-bit linear congruential generator.
pub(crate) struct Noise(pub u64);

impl Noise {
    /// −1…1.
    pub(crate) fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// `count` numbers of −1…1.
    pub(crate) fn take(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// A camera that looks at the head from these angles in degrees.
pub(crate) fn pose(yaw: f32, pitch: f32, roll: f32, scale: f64) -> Pose {
    let turn = |axis: nalgebra::Vector3<f64>, angle: f32| {
        Rotation3::new(axis * f64::from(angle).to_radians()).into_inner()
    };
    let [x, y, z] = [0, 1, 2].map(|axis| Matrix3::identity().column(axis).into_owned());
    Pose {
        rotation: turn(y, yaw) * turn(x, pitch) * turn(z, roll),
        origin: [320.0, 180.0],
        scale,
    }
}

/// The vertex in a row from below and a column from the image's left.
fn vertex(row: usize, column: usize) -> usize {
    row * COLUMNS + column
}

fn place(vertex: usize) -> [f32; 3] {
    let (row, column) = (vertex / COLUMNS, vertex % COLUMNS);
    let along = |index: usize, count: usize| 2.0 * index as f32 / (count - 1) as f32 - 1.0;
    let longitude = (SIDE * along(column, COLUMNS)).to_radians();
    let latitude = (75.0 * along(row, ROWS)).to_radians();
    let [x, y] = [
        75.0 * longitude.sin() * latitude.cos(),
        100.0 * latitude.sin(),
    ];
    let nose = 25.0 * (-(x / 12.0).powi(2) - (y / 20.0).powi(2)).exp();
    let is_front = if longitude.cos() > 0.0 { 1.0 } else { 0.0 };
    [
        x,
        y,
        80.0 * (longitude.cos() * latitude.cos() - 1.0) + is_front * nose,
    ]
}

/// Positions of the landmarks seen from the front, in iBUG's order, without the outline.
fn seen_from_the_front() -> Vec<(usize, [f32; 2])> {
    let ring = |center: [f32; 2], [a, b]: [f32; 2], first: usize, count: usize| {
        (0..count).map(move |i| {
            let angle = std::f32::consts::PI * (1.0 - 2.0 * i as f32 / count as f32);
            (
                first + i,
                [center[0] + a * angle.cos(), center[1] + b * angle.sin()],
            )
        })
    };
    let brows = (17..27).map(|i| {
        let from_nose = if i < 22 { 22 - i } else { i - 21 } as f32;
        let side = if i < 22 { -1.0 } else { 1.0 };
        (i, [side * (4.0 + 9.0 * from_nose), 45.0])
    });
    let bridge = (27..31).map(|i| (i, [0.0, 32.0 - 9.0 * (i - 27) as f32]));
    let nostrils = (31..36).map(|i| (i, [7.0 * (i as f32 - 33.0), -12.0]));
    let chin = std::iter::once((8, [0.0, -82.0]));
    chin.chain(brows)
        .chain(bridge)
        .chain(nostrils)
        .chain(ring([-33.0, 28.0], [13.0, 7.0], 36, 6))
        .chain(ring([33.0, 28.0], [13.0, 7.0], 42, 6))
        .chain(ring([0.0, -40.0], [24.0, 11.0], 48, 12))
        .chain(ring([0.0, -40.0], [14.0, 5.0], 60, 8))
        .collect()
}

/// The head. Its mapping leaves out what eos' does.
pub(crate) fn head() -> FaceModel {
    let mean: Vec<_> = (0..ROWS * COLUMNS).map(place).collect();
    let nearest = |[x, y]: [f32; 2]| {
        let distance = |v: &usize| (mean[*v][0] - x).hypot(mean[*v][1] - y) - 0.1 * mean[*v][2];
        let vertices = 0..mean.len();
        vertices
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
            .unwrap()
    };
    let mapped = seen_from_the_front().into_iter();
    let mapped = mapped.filter(|(landmark, _)| ![60, 64].contains(landmark));
    let sides = |column| (8..30).map(|row| vertex(row, column)).collect();
    // Ten components: waves of growing fineness in each axis, those across alike on both sides.
    let wave = |v: &[f32; 3], part: usize| {
        let (x, y) = (v[0] / 75.0, v[1] / 100.0);
        let fineness = 1.0 + (part / 3) as f32;
        let value = 6.0 / fineness * (fineness * (2.0 * y + part as f32)).sin();
        match part % 3 {
            0 => [value * x, 0.0, 0.0],
            1 => [0.0, value * (fineness * 2.0 * x).cos(), 0.0],
            _ => [0.0, 0.0, value * (fineness * 2.0 * x).cos()],
        }
    };
    let components = 10;
    let basis = mean.iter().flat_map(|v| {
        let parts: Vec<_> = (0..components).map(|part| wave(v, part)).collect();
        (0..3).flat_map(move |axis| parts.clone().into_iter().map(move |move_by| move_by[axis]))
    });
    let offsets = |of: &dyn Fn([f32; 3]) -> [f32; 3]| mean.iter().map(|v| of(*v)).collect();
    let open = |[x, y, _]: [f32; 3]| {
        let near = (-(x / 30.0).powi(2)).exp();
        [0.0, if y < -45.0 { -15.0 * near } else { 0.0 }, 0.0]
    };
    let smile = |[x, y, _]: [f32; 3]| {
        let near = (-((y + 40.0) / 12.0).powi(2) - ((x.abs() - 24.0) / 12.0).powi(2)).exp();
        [6.0 * near * x.signum(), 8.0 * near, -2.0 * near]
    };
    let expression = |name: &str, offsets: Vec<[f32; 3]>| Expression {
        name: name.to_owned(),
        offsets,
    };
    FaceModel::new(
        ShapeModel {
            basis: basis.collect(),
            components,
            triangles: triangles(),
            texture_coordinates: Vec::new(),
            mean: mean.clone(),
        },
        vec![
            expression("open", offsets(&open)),
            expression("smile", offsets(&smile)),
        ],
        LandmarkMapping {
            vertices: mapped
                .map(|(landmark, place)| (landmark, nearest(place)))
                .collect(),
            right_contour: (0..8).collect(),
            left_contour: (9..17).collect(),
        },
        ModelContours {
            right: sides(SIDES[0]),
            left: sides(SIDES[1]),
        },
    )
    .unwrap()
}

fn triangles() -> Vec<[u32; 3]> {
    let (columns, row) = MOUTH;
    let squares = (0..ROWS - 1).flat_map(|row| (0..COLUMNS - 1).map(move |column| (row, column)));
    let skin = squares.filter(|(r, column)| *r != row || !columns.contains(column));
    skin.flat_map(|(row, column)| {
        let corner = |up, right| vertex(row + up, column + right) as u32;
        [
            [corner(0, 0), corner(0, 1), corner(1, 1)],
            [corner(0, 0), corner(1, 1), corner(1, 0)],
        ]
    })
    .collect()
}

/// The vertices of a face of the head.
pub(crate) fn vertices(model: &FaceModel, shape: &[f32], expression: &[f32]) -> Vec<[f32; 3]> {
    let vertex = |v: usize| {
        [0, 1, 2].map(|axis| {
            let moves = std::iter::zip(model.shape().basis_row(v, axis), shape);
            let offsets = model.expressions().iter().map(|e| &e.offsets[v][axis]);
            let all = moves.chain(std::iter::zip(offsets, expression));
            model.shape().mean[v][axis] + all.map(|(a, b)| a * b).sum::<f32>()
        })
    };
    (0..model.shape().mean.len()).map(vertex).collect()
}

/// The landmarks of a face of the head in an image. On a side that faces the camera the outline is
/// where the model's contour is, on the other it is where the head ends.
pub(crate) fn landmarks(
    model: &FaceModel,
    pose: &Pose,
    shape: &[f32],
    expression: &[f32],
) -> [Point; 68] {
    let all = vertices(model, shape, expression);
    let seen: Vec<Point> = all.iter().map(|vertex| pose.project(*vertex)).collect();
    let mut points = model.landmark_vertices().map(|vertex| seen[vertex]);
    for i in 0..8 {
        let row = 26 - 2 * i;
        let ends = seen[vertex(row, 0)..vertex(row + 1, 0)].iter();
        let by_x = |a: &&Point, b: &&Point| a.x.total_cmp(&b.x);
        let [left, right] = [SIDES[0], SIDES[1]].map(|column| seen[vertex(row, column)]);
        let is_left_away = pose.yaw() < 0.0;
        points[i] = if is_left_away {
            *ends.clone().min_by(by_x).unwrap()
        } else {
            left
        };
        points[16 - i] = if is_left_away {
            right
        } else {
            *ends.max_by(by_x).unwrap()
        };
    }
    points
}
