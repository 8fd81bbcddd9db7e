// SPDX-License-Identifier: MPL-2.0
//! eos' files and its fit.

use std::str::from_utf8;
use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use facetrack::geometry::Point;
use facetrack::morphable::{
    Expression, FaceModel, Fit, FitSettings, Fitter, LANDMARKS, LandmarkMapping, ModelContours,
    Past, ShapeModel,
};

use crate::shared::{Noise, pick, told, within};

/// Memory for a file: its numbers are in a few matrices at once, texts are trees of numbers.
fn memory(data: &[u8]) -> usize {
    (16 << 20) + 256 * data.len()
}

pub fn shape(data: &[u8]) {
    let shape = within(memory(data), || ShapeModel::from_bytes(data));
    if let Some(shape) = told(shape, &[]) {
        let written = shape_file(&shape);
        assert_eq!(ShapeModel::from_bytes(&written).as_ref(), Ok(&shape));
    }
}

pub fn expressions(data: &[u8]) {
    let all = within(memory(data), || Expression::all_from_bytes(data));
    if let Some(all) = told(all, &[]) {
        let written = expressions_file(&all);
        assert_eq!(Expression::all_from_bytes(&written).as_ref(), Ok(&all));
    }
}

pub fn mapping(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    let mapping = within(memory(data), || LandmarkMapping::from_toml(text));
    if let Some(mapping) = told(mapping, &[]) {
        let numbers = mapping.vertices.iter().map(|(landmark, _)| landmark);
        let mut numbers = numbers
            .chain(&mapping.right_contour)
            .chain(&mapping.left_contour);
        assert!(numbers.all(|landmark| *landmark < LANDMARKS));
    }
}

pub fn json(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    let contours = within(memory(data), || ModelContours::from_json(text));
    told(contours, &["line"]);
}

/// A file with the model, all of whose eigenvalues are 1.
fn shape_file(shape: &ShapeModel) -> Vec<u8> {
    let (rows, columns) = (3 * shape.mean.len(), shape.components);
    let by_column = (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
    let basis = by_column.map(|(row, column)| shape.basis[row * columns + column]);
    let mut file = 4_i32.to_le_bytes().to_vec();
    file.extend(matrix(rows, 1, shape.mean.as_flattened().iter().copied()));
    file.extend(matrix(rows, columns, basis));
    file.extend(matrix(columns, 1, vec![1.0; columns]));
    file.extend((shape.triangles.len() as u64).to_le_bytes());
    let corners = shape.triangles.as_flattened().iter();
    file.extend(corners.flat_map(|corner| corner.to_le_bytes()));
    // No colours.
    (0..3).for_each(|_| file.extend(matrix(0, 0, [])));
    file.extend(0_u64.to_le_bytes());
    // Neither expressions nor landmark definitions.
    file.extend([1, 1]);
    file.extend((shape.texture_coordinates.len() as u64).to_le_bytes());
    let coordinates = shape.texture_coordinates.as_flattened().iter();
    file.extend(coordinates.flat_map(|number| f64::from(*number).to_le_bytes()));
    file.extend(0_u64.to_le_bytes());
    file
}

fn expressions_file(all: &[Expression]) -> Vec<u8> {
    let mut file = (all.len() as u64).to_le_bytes().to_vec();
    for Expression { name, offsets } in all {
        file.extend((name.len() as u64).to_le_bytes());
        file.extend(name.as_bytes());
        let values = offsets.as_flattened().iter().copied();
        file.extend(matrix(3 * offsets.len(), 1, values));
    }
    file
}

fn matrix(rows: usize, columns: usize, values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    let sides = [rows, columns].into_iter();
    let sides = sides.flat_map(|side| (side as i32).to_le_bytes());
    let values = values.into_iter().flat_map(f32::to_le_bytes);
    sides.chain(values).collect()
}

/// Bytes that a model and its landmarks are built from, most often.
const LONGEST: usize = 1024;

pub fn fit(data: &[u8]) {
    if data.len() > LONGEST {
        return;
    }
    let mut input = Unstructured::new(data);
    let Ok(model) = model(&mut input) else { return };
    let settings = FitSettings {
        iterations: pick(&mut input, 0..=3),
        shape_coefficients: Some(pick(&mut input, 0..=4)),
        lambda: input.arbitrary().unwrap_or(30.0),
    };
    let mut fitter = Fitter::new(Arc::new(model), settings);
    let mut past = Past::default();
    for _ in 0..2 {
        let Ok(landmarks) = landmarks(&mut input, fitter.model()) else {
            return;
        };
        let followed = within(16 << 20, || fitter.follow(&landmarks, &mut past));
        if let Some(fit) = told(followed, &[]) {
            assert_sound(&fit, fitter.model());
        }
        let fitted = fitter.fit(&landmarks);
        assert_eq!(fitted, fitter.fit(&landmarks), "it depends on the past");
        if let Some(fit) = told(fitted, &[]) {
            assert_sound(&fit, fitter.model());
        }
    }
}

/// A bent sheet of triangles with noise in everything. Some landmarks have a vertex.
fn model(input: &mut Unstructured) -> Result<FaceModel> {
    let (rows, columns) = (pick(input, 3..=6), pick(input, 3..=6));
    let mut noise = Noise::new(input);
    let (jitter, components) = (input.arbitrary::<u8>()?, pick(input, 1..=4));
    let count = rows * columns;
    let mean = (0..count).map(|vertex| {
        let (x, y) = ((vertex % columns) as f32, (vertex / columns) as f32);
        let bent = -(x - columns as f32 / 2.0).powi(2);
        [20.0 * x, 20.0 * y, 5.0 * bent].map(|at| at + noise.next() * f32::from(jitter) / 8.0)
    });
    let mean: Vec<[f32; 3]> = mean.collect();
    let basis = noise.take(3 * count * components);
    let expressions = (0..pick(input, 1..=3)).map(|index| Expression {
        name: index.to_string(),
        offsets: noise.take(3 * count).as_chunks().0.to_vec(),
    });
    let expressions = expressions.collect();
    let mut vertices: Vec<(usize, usize)> = Vec::new();
    for landmark in 0..LANDMARKS {
        if input.arbitrary().unwrap_or(landmark % 2 == 0) {
            vertices.push((landmark, pick(input, 0..=count - 1)));
        }
    }
    let side = |column: usize| (0..rows).map(|row| row * columns + column).collect();
    FaceModel::new(
        ShapeModel {
            mean,
            components,
            basis,
            texture_coordinates: Vec::new(),
            triangles: triangles(rows, columns),
        },
        expressions,
        LandmarkMapping {
            vertices,
            right_contour: (0..pick(input, 0..=8)).collect(),
            left_contour: (9..9 + pick(input, 0..=8)).collect(),
        },
        ModelContours {
            right: side(0),
            left: side(columns - 1),
        },
    )
    .map_err(|_| arbitrary::Error::IncorrectFormat)
}

fn triangles(rows: usize, columns: usize) -> Vec<[u32; 3]> {
    let squares = (0..rows - 1).flat_map(|row| (0..columns - 1).map(move |column| (row, column)));
    let corners = squares.flat_map(|(row, column)| {
        let corner = |up, right| ((row + up) * columns + column + right) as u32;
        [
            [corner(0, 0), corner(0, 1), corner(1, 1)],
            [corner(0, 0), corner(1, 1), corner(1, 0)],
        ]
    });
    corners.collect()
}

/// Any numbers, or the vertices of the landmarks seen by a camera, with some noise.
fn landmarks(input: &mut Unstructured, model: &FaceModel) -> Result<Vec<Point>> {
    if input.ratio(1, 8)? {
        return (0..LANDMARKS)
            .map(|_| Ok(Point::new(input.arbitrary()?, input.arbitrary()?)))
            .collect();
    }
    let [yaw, pitch, roll] = input
        .arbitrary::<[i8; 3]>()?
        .map(|angle| f32::from(angle) / 40.0);
    let scale = 2.0_f32.powi(input.int_in_range(-20..=20)?);
    let shift = f32::from(input.arbitrary::<i16>()?);
    let (mut noise, size) = (
        Noise::new(input),
        f32::from(input.arbitrary::<u8>()?) / 16.0,
    );
    let points = model.landmark_vertices().map(|vertex| {
        let [x, y, z] = model.shape().mean[vertex];
        let (x, z) = (x * yaw.cos() + z * yaw.sin(), z * yaw.cos() - x * yaw.sin());
        let y = y * pitch.cos() - z * pitch.sin();
        let (x, y) = (
            x * roll.cos() - y * roll.sin(),
            x * roll.sin() + y * roll.cos(),
        );
        let [x, y] = [x, y].map(|at| scale * (at + size * noise.next()) + shift);
        Point::new(x, y)
    });
    Ok(points.into())
}

fn assert_sound(fit: &Fit, model: &FaceModel) {
    assert!(
        fit.expression.iter().all(|value| *value >= 0.0),
        "{:?}",
        fit.expression
    );
    assert!(fit.residual >= 0.0, "{}", fit.residual);
    let head = fit.pose.head_at([0.0; 3]).expect("finite numbers");
    let [a, b, c] = [0, 1, 2].map(|row| head.matrix[row]);
    // The translation, the last column, is 0.
    let rows = [a, b, c];
    let squares = rows.iter().flatten().map(|value| value * value);
    let is_rotation = (squares.sum::<f32>() - 3.0).abs() < 1e-5;
    let determinant = a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
        + a[2] * (b[0] * c[1] - b[1] * c[0]);
    assert!(is_rotation && determinant > 0.0, "{:?}", fit.pose);
    assert!(fit.pose.scale > 0.0, "{}", fit.pose.scale);
    let points = fit.landmarks(model).points;
    let is_finite = |value: f32| value.is_finite();
    assert!(
        points
            .iter()
            .all(|p| [p.x, p.y, p.z].into_iter().all(is_finite))
    );
}
