// SPDX-License-Identifier: MPL-2.0
//! A table with the columns of OpenFace's `FeatureExtraction`, as far as an engine measures them
//! (OpenFace's wiki, "Output Format"). Columns that it does not measure are absent: gaze vectors, 3-D
//! landmarks and action units.
//!
//! Coordinates of the head are OpenFace's: x to the image's right, y down, z away from the camera,
//! in millimetres; angles are in radians, with the rotation read as Rx·Ry·Rz
//! (`RotationMatrix2Euler` in its `RotationHelpers.h`).

use facetrack::observation::{LandmarkScheme, Origin};

use super::contents::Contents;
use super::frame::{ANGLES, AXES, CHANNELS, CONFIDENCE, Face, Frame, POSITION};
use super::{Layout, tidy};
use crate::table::{Cell, Column, Kind};

/// The centimetres of MediaPipe's positions in millimetres.
const MILLIMETRES: f32 = 10.0;

/// A row per face and frame, with the columns that the record has values for.
pub struct OpenFace {
    confidence: bool,
    /// Only MediaPipe's position has a depth and a known unit.
    position: bool,
    rotation: bool,
    /// Place of the landmarks in the values of a face, if they are iBUG's.
    landmarks: Option<usize>,
}

impl OpenFace {
    /// The layout for a record with these contents.
    pub fn new(contents: &Contents) -> Self {
        let has_mesh = contents.landmarks == LandmarkScheme::MediaPipe478.count();
        let place = CHANNELS + contents.channels.len();
        Self {
            confidence: contents.has_confidence,
            position: contents.has_pose && has_mesh,
            rotation: contents.has_pose,
            landmarks: has_landmarks(contents).then_some(place),
        }
    }

    /// The cells after `timestamp`. A frame without a face has no success, and nothing measured.
    fn cells(&self, face: Option<&Face>) -> Vec<Cell> {
        let value = |place: usize| tidy::float(face.map_or(f32::NAN, |face| face.values[place]));
        let mut cells = Vec::new();
        if self.confidence {
            cells.push(value(CONFIDENCE));
        }
        cells.push(Cell::Integer(i64::from(face.is_some_and(is_measured))));
        if self.position {
            let position = face.map_or([f32::NAN; 3], position);
            cells.extend(position.map(tidy::float));
        }
        if self.rotation {
            let angles = face.map_or([f32::NAN; 3], rotation);
            cells.extend(angles.map(tidy::float));
        }
        if let Some(place) = self.landmarks {
            let points = LandmarkScheme::Ibug68.count();
            cells.extend((0..points).map(|point| value(place + 3 * point)));
            cells.extend((0..points).map(|point| value(place + 3 * point + 1)));
        }
        cells
    }
}

/// Whether the landmarks are those that OpenFace has.
pub fn has_landmarks(contents: &Contents) -> bool {
    contents.landmarks == LandmarkScheme::Ibug68.count()
}

impl Layout for OpenFace {
    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::new("frame", Kind::Integer),
            Column::new("face_id", Kind::Integer),
            Column::new("timestamp", Kind::Double),
        ];
        if self.confidence {
            columns.push(Column::new("confidence", Kind::Float));
        }
        columns.push(Column::new("success", Kind::Integer));
        let mut add = |name: String| columns.push(Column::new(name, Kind::Float));
        if self.position {
            AXES.iter().for_each(|axis| add(format!("pose_T{axis}")));
        }
        if self.rotation {
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

/// Whether the face was measured in its frame.
fn is_measured(face: &Face) -> bool {
    matches!(face.origin, Origin::Detected | Origin::Tracked)
}

fn position(face: &Face) -> [f32; 3] {
    let [x, y, z] = [0, 1, 2].map(|axis| face.values[POSITION + axis] * MILLIMETRES);
    [x, -y, -z]
}

/// Pitch, yaw and roll, rad. Our rotation is Ry(yaw)·Rx(pitch)·Rz(roll) in axes that point to the
/// right, up and to the viewer.
fn rotation(face: &Face) -> [f32; 3] {
    let [yaw, pitch, roll] = [0, 1, 2].map(|axis| face.values[ANGLES + axis].to_radians());
    let [(sin_y, cos_y), (sin_p, cos_p), (sin_r, cos_r)] = [yaw, pitch, roll].map(libm::sincosf);
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

    fn rotation_of(angles: [f32; 3]) -> [f32; 3] {
        let mut values = vec![f32::NAN; CHANNELS];
        values[ANGLES..ANGLES + 3].copy_from_slice(&angles);
        rotation(&Face {
            id: 1,
            origin: Origin::Detected,
            values,
        })
    }

    #[test]
    fn single_angles_keep_their_size() {
        let a = 30f32;
        for (angles, want) in [
            ([0.0, a, 0.0], [a, 0.0, 0.0]),
            ([a, 0.0, 0.0], [0.0, -a, 0.0]),
            ([0.0, 0.0, a], [0.0, 0.0, -a]),
        ] {
            let got = rotation_of(angles).map(f32::to_degrees);
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
        let [rx, ry, rz] = rotation_of(angles).map(f32::sin_cos);
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
