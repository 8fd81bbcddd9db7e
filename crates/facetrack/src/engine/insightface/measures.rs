// SPDX-License-Identifier: MPL-2.0
//! What is measured of each face: the networks of a pack behind the detector.

use std::sync::Arc;

use super::network::{Answer, FaceNetwork};
use super::pack::Opened;
use super::{Module, regions};
use crate::geometry::{Point, RotatedRect};
use crate::image::ImageView;
use crate::model::ModelError;
use crate::observation::{Attributes, Gender, Landmark, LandmarkScheme, Landmarks, Observation};

/// The networks that look at faces, as far as there are any.
#[derive(Default)]
pub struct Measures {
    landmarks_106: Option<FaceNetwork>,
    landmarks_68: Option<FaceNetwork>,
    gender_age: Option<FaceNetwork>,
    recognition: Option<FaceNetwork>,
}

impl Measures {
    /// Takes a network of the pack.
    ///
    /// # Errors
    /// Those of [`FaceNetwork::new`], and [`ModelError::Tensors`] for an embedding of images of a side that faces are not
    /// aligned to.
    pub fn add(&mut self, opened: Opened) -> Result<(), ModelError> {
        let slot = match opened.module {
            Module::Detection => return Ok(()),
            Module::Landmark2d106 => &mut self.landmarks_106,
            Module::Landmark3d68 => &mut self.landmarks_68,
            Module::GenderAge => &mut self.gender_age,
            Module::Recognition => &mut self.recognition,
        };
        let (module, path) = (opened.module, opened.path.clone());
        let network = FaceNetwork::new(opened)?;
        if module == Module::Recognition && !regions::is_aligned_side(network.side()) {
            return Err(ModelError::Tensors {
                path,
                expected: "embeddings of faces of a multiple of 112 or 128 pixels".to_owned(),
                actual: format!("{0}×{0} pixels", network.side()),
            });
        }
        *slot = Some(network);
        Ok(())
    }

    /// Dense landmarks that are measured: of two, [`Observation::landmarks`] has the first and [`Observation::contour`] the
    /// second.
    pub fn schemes(&self) -> impl Iterator<Item = LandmarkScheme> {
        let in_space = self.landmarks_68.as_ref().map(|_| LandmarkScheme::Ibug68);
        let in_picture = self.landmarks_106.as_ref();
        in_space
            .into_iter()
            .chain(in_picture.map(|_| LandmarkScheme::InsightFace106))
    }

    /// Whether age and gender are measured.
    pub fn has_attributes(&self) -> bool {
        self.gender_age.is_some()
    }

    /// Length of an embedding; 0 without.
    pub fn embedding_len(&self) -> usize {
        self.recognition.as_ref().map_or(0, FaceNetwork::values)
    }

    /// Measures `faces`, which `image` shows, each network all of them in one run. What does not come out as numbers stays
    /// absent.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn measure(
        &mut self,
        image: &ImageView<'_>,
        faces: &mut [Observation],
    ) -> Result<(), ModelError> {
        let squares: Vec<Option<RotatedRect>> = faces
            .iter()
            .map(|face| Some(regions::around(&face.bbox)))
            .collect();
        let has_68 = self.landmarks_68.is_some();
        if let Some(network) = &mut self.landmarks_106 {
            let side = network.side();
            each(network.run(image, &squares)?, faces, |face, answer| {
                let place = if has_68 {
                    &mut face.contour
                } else {
                    &mut face.landmarks
                };
                *place = landmarks_106(&answer, side);
            });
        }
        if let Some(network) = &mut self.landmarks_68 {
            let side = network.side();
            each(network.run(image, &squares)?, faces, |face, answer| {
                face.landmarks = landmarks_68(&answer, side);
            });
        }
        if let Some(network) = &mut self.gender_age {
            each(network.run(image, &squares)?, faces, |face, answer| {
                face.attributes = attributes(&answer.values);
            });
        }
        if let Some(network) = &mut self.recognition {
            let side = network.side();
            let aligned: Vec<Option<RotatedRect>> = faces
                .iter()
                .map(|face| regions::aligned(&face.key_points, side))
                .collect();
            each(network.run(image, &aligned)?, faces, |face, answer| {
                face.embedding = embedding(answer.values);
            });
        }
        Ok(())
    }
}

/// Gives each face its answer.
fn each(
    answers: Vec<Option<Answer>>,
    faces: &mut [Observation],
    mut take: impl FnMut(&mut Observation, Answer),
) {
    for (face, answer) in faces.iter_mut().zip(answers) {
        if let Some(answer) = answer {
            take(face, answer);
        }
    }
}

/// `get` in `landmark.py` for two values a point: −1…1 are the sides of the input.
fn landmarks_106(answer: &Answer, side: usize) -> Option<Landmarks> {
    let points = answer.values.as_chunks::<2>().0.iter();
    let points = points.map(|[x, y]| in_frame(answer, side, [*x, *y, 0.0]));
    of_scheme(LandmarkScheme::InsightFace106, points.collect())
}

/// `get` in `landmark.py` for three values a point, of which the last are the 68. There z points to the viewer; here away
/// from the viewer, and is counted from the points' mean.
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

/// A point whose x and y of −1…1 are the sides of the network's input; z is of the same scale.
fn in_frame(answer: &Answer, side: usize, [x, y, z]: [f32; 3]) -> Landmark {
    let half = (side / 2) as f32;
    let input = Point::new((x + 1.0) * half, (y + 1.0) * half);
    let frame_from_input = &answer.frame_from_input;
    let point = frame_from_input.apply(input);
    Landmark {
        x: point.x,
        y: point.y,
        z: z * half * frame_from_input.xx.hypot(frame_from_input.xy),
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
