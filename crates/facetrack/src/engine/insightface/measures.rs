// SPDX-License-Identifier: MPL-2.0
//! Measures each face with the networks that follow the detector.

use std::sync::Arc;

use super::network::{Answer, FaceNetwork};
use super::{Module, regions};
use crate::geometry::Point;
use crate::image::ImageView;
use crate::model::ModelError;
use crate::observation::{Attributes, Gender, Landmark, LandmarkScheme, Landmarks, Observation};

/// Measures the `faces` of `image` with `networks`. Values that are not finite stay absent.
///
/// # Errors
/// Returns [`ModelError::Run`].
pub(super) fn measure(
    networks: &mut [FaceNetwork],
    image: &ImageView<'_>,
    faces: &mut [Observation],
) -> Result<(), ModelError> {
    let mut modules = networks.iter().map(|network| network.module);
    let has_68 = modules.any(|module| module == Module::Landmark3d68);
    for network in networks {
        let (module, side) = (network.module, network.side);
        let region = |face: &Observation| match module {
            Module::Recognition => regions::aligned(&face.key_points, side),
            _ => Some(regions::around(&face.bbox)),
        };
        let regions: Vec<_> = faces.iter().map(region).collect();
        let answers = network.run(image, &regions)?;
        for (face, answer) in std::iter::zip(&mut *faces, answers) {
            let Some(answer) = answer else { continue };
            match module {
                Module::Landmark2d106 if has_68 => {
                    face.secondary_landmarks = landmarks_106(&answer, side);
                }
                Module::Landmark2d106 => face.landmarks = landmarks_106(&answer, side),
                Module::Landmark3d68 => face.landmarks = landmarks_68(&answer, side),
                Module::GenderAge => face.attributes = attributes(&answer.values),
                Module::Recognition => face.embedding = embedding(answer.values),
                Module::Detection => {}
            }
        }
    }
    Ok(())
}

/// `get` in `landmark.py` for two values per point; −1…1 span the input.
fn landmarks_106(answer: &Answer, side: usize) -> Option<Landmarks> {
    let points = answer.values.as_chunks::<2>().0.iter();
    let points = points.map(|[x, y]| in_frame(answer, side, [*x, *y, 0.0]));
    of_scheme(LandmarkScheme::InsightFace106, points.collect())
}

/// `get` in `landmark.py` for three values per point; the last 68 points are the landmarks. There z
/// points towards the viewer; here it points away from the viewer and is relative to the mean of
/// the points.
fn landmarks_68(answer: &Answer, side: usize) -> Option<Landmarks> {
    let all = answer.values.as_chunks::<3>().0;
    let own = all.len().checked_sub(LandmarkScheme::Ibug68.count())?;
    let own = all[own..].iter();
    let mut points: Vec<Landmark> = own
        .map(|[x, y, z]| in_frame(answer, side, [*x, *y, -z]))
        .collect();
    let mean = points.iter().map(|p| p.z).sum::<f32>() / points.len() as f32;
    for point in &mut points {
        point.z -= mean;
    }
    of_scheme(LandmarkScheme::Ibug68, points)
}

fn of_scheme(scheme: LandmarkScheme, points: Vec<Landmark>) -> Option<Landmarks> {
    (points.len() == scheme.count()).then(|| Landmarks::new(scheme, points))
}

/// Converts a point from −1…1, which spans the network's input, to the frame. z has the same scale.
fn in_frame(answer: &Answer, side: usize, [x, y, z]: [f32; 3]) -> Landmark {
    let half = (side / 2) as f32;
    let input = Point::new((x + 1.0) * half, (y + 1.0) * half);
    let frame_from_input = &answer.frame_from_input;
    let point = frame_from_input.apply(input);
    Landmark {
        x: point.x,
        y: point.y,
        z: z * half * libm::hypotf(frame_from_input.xx, frame_from_input.xy),
    }
}

/// `get` in `attribute.py`, without rounding the years: scores of female and male, and centuries.
fn attributes(values: &[f32]) -> Option<Attributes> {
    let [female, male, age] = values.try_into().ok()?;
    Some(Attributes {
        age: age * 100.0,
        gender: if male > female {
            Gender::Male
        } else {
            Gender::Female
        },
    })
}

/// `normed_embedding` in `common.py`.
fn embedding(mut values: Vec<f32>) -> Option<Arc<[f32]>> {
    let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt();
    for value in &mut values {
        *value /= norm;
    }
    norm.is_normal().then(|| values.into())
}

#[cfg(test)]
mod tests;
