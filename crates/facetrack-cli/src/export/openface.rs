// SPDX-License-Identifier: MPL-2.0
//! A table with the columns of OpenFace's `FeatureExtraction`, as far as an engine measures them
//! (OpenFace's wiki, "Output Format"). Columns that it does not measure are absent: gaze vectors, 3-D
//! landmarks and action units.
//!
//! Coordinates of the head are OpenFace's: x to the image's right, y down, z away from the camera,
//! in millimetres; angles are in radians, with the rotation read as Rx·Ry·Rz
//! (`RotationMatrix2Euler` in its `RotationHelpers.h`).

use facetrack::observation::LandmarkScheme;

use super::frame::{Face, Frame, number};
use super::{Form, Layout, Target};
use crate::faces::{AXES, Contents};
use crate::table::{Cell, Column, FileFormat, Kind};

pub(super) const FORM: Form = Form {
    has_one_face: false,
    takes_columns: false,
    needs_landmarks: has_landmarks,
    target: Target::Table(FileFormat::Csv, |_, contents| {
        Ok(Box::new(OpenFace::new(contents)))
    }),
};

/// Millimetres per centimetre, the unit of MediaPipe's positions.
const MILLIMETRES: f32 = 10.0;

/// Elements of `pose.matrix` with the position of the head: x, y, z.
pub(super) const POSITION: [usize; 3] = [3, 7, 11];

/// Angles of the head in a record, in degrees.
const ANGLES: [&str; 3] = ["pose.yaw", "pose.pitch", "pose.roll"];

/// Numbers of a landmark: x, y, z.
const NUMBERS: usize = 3;

/// Origins of faces that were not measured in their frame.
const REPEATED: [&str; 2] = ["held", "predicted"];

/// A row per face and frame. Columns of the record, if it has them.
struct OpenFace {
    origin: Option<usize>,
    confidence: Option<usize>,
    /// The matrix of the pose. Only MediaPipe's position has a depth and a known unit.
    position: Option<usize>,
    /// The angles of the pose.
    rotation: Option<[usize; 3]>,
    /// The landmarks, if they are iBUG's.
    landmarks: Option<usize>,
}

impl OpenFace {
    /// The layout for a record with these contents.
    fn new(contents: &Contents) -> Self {
        let has_mesh = contents.landmarks == LandmarkScheme::MediaPipe478.count();
        let place = |name: &str| contents.place(name);
        let [yaw, pitch, roll] = ANGLES.map(place);
        Self {
            origin: place("origin"),
            confidence: place("confidence"),
            position: place("pose.matrix").filter(|_| has_mesh),
            rotation: yaw
                .zip(pitch)
                .zip(roll)
                .map(|((yaw, pitch), roll)| [yaw, pitch, roll]),
            landmarks: place("landmarks").filter(|_| has_landmarks(contents)),
        }
    }

    /// The cells after `timestamp`. A frame without a face has no success, and nothing measured.
    fn cells(&self, face: Option<&Face>) -> Vec<Cell> {
        let value = |column: usize, index: usize| {
            let value = face.and_then(|face| number(&face.cells[column], index));
            value.map(|value| value as f32)
        };
        let is_measured = face.is_some_and(|face| self.is_measured(face));
        let mut cells = Vec::new();
        cells.push(float(self.confidence.and_then(|column| value(column, 0))));
        cells.push(Cell::Integer(i64::from(is_measured)));
        if let Some(column) = self.position {
            let signs = std::iter::zip(POSITION, [1.0, -1.0, -1.0]);
            let value = |(index, sign)| Some(value(column, index)? * sign * MILLIMETRES);
            cells.extend(signs.map(value).map(float));
        }
        if let Some(columns) = self.rotation {
            let [yaw, pitch, roll] = columns.map(|column| value(column, 0));
            let angles = yaw.zip(pitch).zip(roll);
            let angles = angles.map(|((yaw, pitch), roll)| rotation([yaw, pitch, roll]));
            cells.extend([0, 1, 2].map(|axis| float(angles.map(|angles| angles[axis]))));
        }
        if let Some(column) = self.landmarks {
            let points = LandmarkScheme::Ibug68.count();
            let places = (0..2).flat_map(|axis| (0..points).map(move |it| NUMBERS * it + axis));
            cells.extend(places.map(|index| float(value(column, index))));
        }
        cells
    }

    /// Returns true if the face was measured in its frame.
    fn is_measured(&self, face: &Face) -> bool {
        let origin = self.origin.map(|column| &face.cells[column]);
        !matches!(origin, Some(Cell::Text(origin)) if REPEATED.contains(&origin.as_str()))
    }
}

/// Returns true if the landmarks are those that OpenFace has.
fn has_landmarks(contents: &Contents) -> bool {
    contents.landmarks == LandmarkScheme::Ibug68.count()
}

fn float(value: Option<f32>) -> Cell {
    value.map_or(Cell::Missing, Cell::Float)
}

impl Layout for OpenFace {
    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::new("frame", Kind::Integer),
            Column::new("face_id", Kind::Integer),
            Column::new("timestamp", Kind::Double),
            Column::new("confidence", Kind::Float),
            Column::new("success", Kind::Integer),
        ];
        let mut add = |name: String| columns.push(Column::new(name, Kind::Float));
        if self.position.is_some() {
            AXES.iter().for_each(|axis| add(format!("pose_T{axis}")));
        }
        if self.rotation.is_some() {
            AXES.iter().for_each(|axis| add(format!("pose_R{axis}")));
        }
        if self.landmarks.is_some() {
            let points = LandmarkScheme::Ibug68.count();
            (0..points).for_each(|point| add(format!("x_{point}")));
            (0..points).for_each(|point| add(format!("y_{point}")));
        }
        columns
    }

    fn rows(&self, frame: &Frame) -> Result<Vec<Vec<Cell>>, String> {
        let time = frame.time()? as f64 / 1e9;
        let faces = frame.faces.iter().map(Some);
        let none = frame.faces.is_empty().then_some(None);
        let row = |face: Option<&Face>| {
            // OpenFace counts faces from 0, also where there is none.
            let id = face.map_or(0, |face| i64::from(face.id) - 1);
            let mut row = vec![Cell::Integer(frame.number as i64), Cell::Integer(id)];
            row.push(Cell::Double(time));
            row.extend(self.cells(face));
            row
        };
        Ok(faces.chain(none).map(row).collect())
    }
}

/// Pitch, yaw and roll, rad, of yaw, pitch and roll in degrees. Our rotation is Ry(yaw)·Rx(pitch)·Rz(roll) in axes that point to the
/// right, up and to the viewer.
pub(super) fn rotation(angles: [f32; 3]) -> [f32; 3] {
    let angles = angles.map(f32::to_radians);
    let [(sin_y, cos_y), (sin_p, cos_p), (sin_r, cos_r)] = angles.map(libm::sincosf);
    // Elements of the matrix in OpenFace's axes.
    let r00 = cos_y * cos_r + sin_y * sin_p * sin_r;
    let r01 = cos_y * sin_r - sin_y * sin_p * cos_r;
    let r02 = -sin_y * cos_p;
    let (r12, r22) = (-sin_p, cos_y * cos_p);
    [
        libm::atan2f(-r12, r22),
        libm::asinf(r02.clamp(-1.0, 1.0)),
        libm::atan2f(-r01, r00),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_angles_keep_their_size() {
        let a = 30f32;
        for (angles, want) in [
            ([0.0, a, 0.0], [a, 0.0, 0.0]),
            ([a, 0.0, 0.0], [0.0, -a, 0.0]),
            ([0.0, 0.0, a], [0.0, 0.0, -a]),
        ] {
            let got = rotation(angles).map(f32::to_degrees);
            for (got, want) in got.into_iter().zip(want) {
                assert!((got - want).abs() < 1e-4, "{angles:?}: {got} {want}");
            }
        }
    }

    /// The matrices of both conventions are the same rotation.
    #[test]
    fn the_rotation_is_the_same_in_the_other_order() {
        type Matrix = [[f32; 3]; 3];
        let product = |a: Matrix, b: Matrix| -> Matrix {
            [0, 1, 2].map(|i| [0, 1, 2].map(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
        };
        let x = |(s, c): (f32, f32)| [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]];
        let y = |(s, c): (f32, f32)| [[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]];
        let z = |(s, c): (f32, f32)| [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]];
        let angles = [20f32, -35.0, 50.0];
        let [yaw, pitch, roll] = angles.map(|angle| angle.to_radians().sin_cos());
        let ours = product(product(y(yaw), x(pitch)), z(roll));
        let [rx, ry, rz] = rotation(angles).map(f32::sin_cos);
        let theirs = product(product(x(rx), y(ry)), z(rz));
        let sign = [1.0, -1.0, -1.0];
        for i in 0..3 {
            for j in 0..3 {
                let flipped = sign[i] * ours[i][j] * sign[j];
                assert!((theirs[i][j] - flipped).abs() < 1e-6, "{i} {j}");
            }
        }
    }
}
