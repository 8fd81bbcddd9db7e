// SPDX-License-Identifier: MPL-2.0
//! A frame on its way from the record to the table: each face as numbers in a fixed order, so that
//! they can be smoothed and interpolated. A value that was not measured is NaN here, and in no file.

use facetrack::observation::{Observation, Origin};
use facetrack::report::TrackedFace;

use super::contents::Contents;

/// The axes.
pub const AXES: [&str; 3] = ["x", "y", "z"];

/// Place of the score.
pub const CONFIDENCE: usize = 0;

/// Place of the box: x, y, width, height in px.
pub const BOX: usize = 1;

/// Place of the angles of the head: yaw, pitch, roll in degrees.
pub const ANGLES: usize = BOX + 4;

/// Place of the position of the head: x, y, z in the engine's unit.
pub const POSITION: usize = ANGLES + 3;

/// Place of the blendshapes. The landmarks follow: x, y, z of each in px.
pub const CHANNELS: usize = POSITION + 3;

/// A frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// From 1.
    pub number: u64,
    /// Time of the record, ns.
    pub pts: Option<u64>,
    /// The same, or computed from the frame rate; ns.
    pub time: Option<u64>,
    /// Whether the engine has analysed it, or repeated its faces.
    pub is_analysed: bool,
    pub faces: Vec<Face>,
}

/// A face.
#[derive(Debug, Clone, PartialEq)]
pub struct Face {
    pub id: u32,
    pub origin: Origin,
    pub values: Vec<f32>,
}

impl Frame {
    /// The time, ns.
    ///
    /// # Errors
    /// There is none.
    pub fn time(&self) -> Result<u64, String> {
        self.time.ok_or_else(|| {
            let number = self.number;
            format!("frame {number} has no time, and the record has no frame rate")
        })
    }

    /// The face with this id.
    pub fn face(&self, id: u32) -> Option<&Face> {
        self.faces.iter().find(|face| face.id == id)
    }
}

impl Face {
    /// The measurements of a face that `contents` lists.
    pub fn new(tracked: &TrackedFace, contents: &Contents) -> Self {
        let face = &tracked.face;
        let bbox = face.bbox;
        let mut values = vec![face.confidence.unwrap_or(f32::NAN)];
        values.extend([bbox.x, bbox.y, bbox.width, bbox.height]);
        values.extend(pose(face));
        let channel = |name: &String| face.blendshapes.as_ref()?.get(name);
        let channels = contents.channels.iter();
        values.extend(channels.map(|name| channel(name).unwrap_or(f32::NAN)));
        let landmarks = face.landmarks.iter();
        let landmarks = landmarks.filter(|it| it.points.len() == contents.landmarks);
        let points = landmarks.flat_map(|it| &it.points);
        values.extend(points.flat_map(|point| [point.x, point.y, point.z]));
        values.resize(
            CHANNELS + contents.channels.len() + 3 * contents.landmarks,
            f32::NAN,
        );
        Self {
            id: tracked.id,
            origin: face.origin,
            values,
        }
    }
}

/// Angles and position of the head.
fn pose(face: &Observation) -> [f32; 6] {
    face.pose.map_or([f32::NAN; 6], |pose| {
        let angles = pose.euler_degrees();
        let [x, y, z] = [0, 1, 2].map(|row| pose.matrix[row][3]);
        [angles.yaw, angles.pitch, angles.roll, x, y, z]
    })
}

/// The way from a value to another one at this place; for angles the shorter way around.
pub fn difference(place: usize, from: f32, to: f32) -> f32 {
    let difference = to - from;
    if (ANGLES..POSITION).contains(&place) {
        difference - 360.0 * (difference / 360.0).round()
    } else {
        difference
    }
}

/// A value at this place, with angles from −180° to 180°.
pub fn normalized(place: usize, value: f32) -> f32 {
    difference(place, 0.0, value)
}

#[cfg(test)]
mod tests {
    use facetrack::observation::{Landmark, LandmarkScheme, Landmarks};

    use super::*;

    #[test]
    fn landmarks_of_another_number_are_missing() {
        let contents = Contents {
            landmarks: LandmarkScheme::Ibug68.count(),
            ..Contents::default()
        };
        for scheme in LandmarkScheme::ALL {
            let points = vec![Landmark::default(); scheme.count()];
            let face = Observation {
                landmarks: Some(Landmarks::new(*scheme, points)),
                ..Observation::default()
            };
            let values = Face::new(&TrackedFace { id: 1, face }, &contents).values;
            let landmarks = &values[CHANNELS..];
            assert_eq!(landmarks.len(), 3 * contents.landmarks);
            let is_measured = *scheme == LandmarkScheme::Ibug68;
            let is_right = |value: &f32| value.is_nan() != is_measured;
            assert!(landmarks.iter().all(is_right), "{scheme:?}");
        }
    }
}
