// SPDX-License-Identifier: MPL-2.0
//! OpenSeeFace's packet: a face as its receivers read it, in the layout of `facetracker.py` (its
//! calls of `struct.pack`) and `Unity/OpenSee.cs` of emilianavt/OpenSeeFace at commit dee5bb76.
//!
//! | byte | | |
//! |--:|---|---|
//! | 0 | 1 × f64 | time, s |
//! | 8 | 1 × i32 | number of the face |
//! | 12 | 2 × f32 | width and height of the frame, px |
//! | 20 | 2 × f32 | how far the right eye and the left eye are open, 0…1 |
//! | 28 | 1 × u8 | 1 where the pose was solved, else 0 |
//! | 29 | 1 × f32 | error of the fit, px |
//! | 33 | 4 × f32 | inverse rotation as a quaternion: x, y, z, w |
//! | 49 | 3 × f32 | rotation as angles, degrees |
//! | 61 | 3 × f32 | translation |
//! | 73 | 68 × f32 | score of each point |
//! | 345 | 68 × 2 × f32 | x, y of each point, px: the 66 landmarks, the pupils of the right eye and the left eye |
//! | 889 | 70 × 3 × f32 | x, −y, −z of each point in the model's space, then of the eyeballs' centres, right and left |
//! | 1729 | 14 × f32 | features, in the order of [`Features::NAMES`] |
//!
//! Everything is little-endian and nothing is padded. Right and left are the face's own.

use std::iter;

use super::Frame;
use crate::observation::{Features, Gaze, LandmarkScheme, Landmarks, ModelFit, Observation, Pupil};

/// The port of `facetracker.py`, on which receivers listen.
pub const PORT: u16 = 11573;

/// Bytes of a packet: `packetFrameSize` of `OpenSee.cs`.
pub const SIZE: usize = 1785;

/// Points of the 3-D model: the landmarks, the pupils, the centres of the eyeballs.
const MODEL_POINTS: usize = 70;

/// The error of a fit that has failed (`estimate_depth` of `tracker.py`): receivers skip faces with
/// a large error.
const FAILED_FIT: f32 = 99999.0;

/// The packet of a face with number `id`; `None` for one without OpenSeeFace's landmarks and its
/// fitted model. Receivers use number 0 by default.
///
/// Pupils that were not searched are 0 with a score of 0, eyes without features are open, and
/// features that were not measured are 0, because the protocol has no other way to express this.
pub fn encode(face: &Observation, id: i32, frame: &Frame) -> Option<Vec<u8>> {
    let landmarks = face
        .landmarks
        .as_ref()
        .filter(|landmarks| is_complete(landmarks))?;
    let fit = face.fit.as_ref()?;
    let openness = face.features.map_or([1.0; 2], |it| it.eye_openness());
    let pupils = pupils(face.gaze);
    let Features(features) = face.features.unwrap_or(Features([0.0; 14]));

    let mut packet = Vec::with_capacity(SIZE);
    packet.extend(frame.time_of_day.to_le_bytes());
    packet.extend(id.to_le_bytes());
    push(&mut packet, [frame.width as f32, frame.height as f32]);
    push(&mut packet, openness);
    packet.push(u8::from(fit.success));
    push(&mut packet, [error(fit)]);
    push(&mut packet, fit.quaternion);
    push(&mut packet, fit.euler);
    push(&mut packet, fit.translation);
    push(&mut packet, scores(landmarks));
    push(&mut packet, pupils.map(|pupil| pupil.confidence));
    push(
        &mut packet,
        landmarks.points.iter().flat_map(|p| [p.x, p.y]),
    );
    let positions = pupils.map(|pupil| pupil.position);
    push(&mut packet, positions.into_iter().flat_map(|p| [p.x, p.y]));
    push(&mut packet, model_points(fit));
    push(&mut packet, features);
    Some(packet)
}

fn is_complete(landmarks: &Landmarks) -> bool {
    let scheme = LandmarkScheme::OpenSeeFace66;
    landmarks.scheme == scheme && landmarks.points.len() == scheme.count()
}

fn error(fit: &ModelFit) -> f32 {
    if fit.success { fit.error } else { FAILED_FIT }
}

/// The score of each landmark; 0 if there is none.
fn scores(landmarks: &Landmarks) -> impl Iterator<Item = f32> {
    let scores = landmarks.confidences.iter().copied();
    scores.chain(iter::repeat(0.0)).take(landmarks.points.len())
}

/// Returns the right pupil and the left pupil.
fn pupils(gaze: Option<Gaze>) -> [Pupil; 2] {
    gaze.map_or([Pupil::default(); 2], |gaze| [gaze.right, gaze.left])
}

/// The model's points with y and z turned round, as they are sent; 0 if there is none.
fn model_points(fit: &ModelFit) -> impl Iterator<Item = f32> {
    let points = fit.points.iter().map(|[x, y, z]| [*x, -y, -z]);
    let points = points.chain(iter::repeat([0.0; 3]));
    points.take(MODEL_POINTS).flatten()
}

fn push(packet: &mut Vec<u8>, floats: impl IntoIterator<Item = f32>) {
    packet.extend(floats.into_iter().flat_map(f32::to_le_bytes));
}

#[cfg(test)]
mod tests;
