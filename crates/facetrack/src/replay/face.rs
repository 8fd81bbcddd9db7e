// SPDX-License-Identifier: MPL-2.0
//! One face of a record, read back: the inverse of `record::object` and `record::detail`. What follows from other figures,
//! such as the angles of a pose or what is told of speech, is not read.

use std::sync::Arc;

use serde::Deserialize;

use super::fits::{CoefficientsJson, FitJson, MorphableJson};
use super::pairs::Pairs;
use super::rounded::{self, WholePixels};
use crate::blendshape::{BlendshapeSource, Blendshapes};
use crate::geometry::{Point, Rect};
use crate::observation::{
    Attributes, Features, Gaze, Gender, HeadPose, Landmark, LandmarkScheme, Landmarks, Observation,
    Origin, Pupil,
};
use crate::report::TrackedFace;

/// A face as JSON.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct FaceJson {
    id: String,
    centroid_x: i32,
    centroid_y: i32,
    bbox_xmin: i32,
    bbox_ymin: i32,
    bbox_width: i32,
    bbox_height: i32,
    confidence: f32,
    blendshapes: Option<Pairs<f32>>,
    blendshapes_source: Option<String>,
    origin: Option<String>,
    #[serde(rename = "box")]
    bbox: Option<[f32; 4]>,
    landmarks: Option<Vec<[f32; 3]>>,
    landmark_confidence: Option<Vec<f32>>,
    landmarks_106: Option<Vec<[f32; 2]>>,
    #[serde(default)]
    key_points: Vec<[f32; 2]>,
    pose: Option<PoseJson>,
    age: Option<f32>,
    gender: Option<String>,
    embedding: Option<Vec<f32>>,
    gaze: Option<GazeJson>,
    features: Option<Pairs<f32>>,
    fit: Option<FitJson>,
    eos: Option<CoefficientsJson>,
    eos_fit: Option<MorphableJson>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct PoseJson {
    matrix: [[f32; 4]; 4],
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct GazeJson {
    right: PupilJson,
    left: PupilJson,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct PupilJson {
    x: f32,
    y: f32,
    confidence: f32,
}

impl From<PupilJson> for Pupil {
    fn from(pupil: PupilJson) -> Self {
        Self {
            position: Point::new(pupil.x, pupil.y),
            confidence: pupil.confidence,
        }
    }
}

impl FaceJson {
    /// The face with its identity. `channels` are those of the last face's blendshapes, which this one shares or replaces.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn tracked(self, channels: &mut Arc<[String]>) -> Result<TrackedFace, String> {
        let id = self.id()?;
        let face = self.observation(channels);
        let face = face.map_err(|reason| format!("obj_{id}: {reason}"))?;
        Ok(TrackedFace { id, face })
    }

    fn id(&self) -> Result<u32, String> {
        let number = self.id.strip_prefix("obj_");
        let id = number.and_then(|number| number.parse().ok());
        id.filter(|id| *id > 0)
            .ok_or_else(|| format!("{:?} is no id such as obj_1", self.id))
    }

    fn observation(mut self, channels: &mut Arc<[String]>) -> Result<Observation, String> {
        let landmarks = self.landmarks.take();
        let landmarks = landmarks
            .map(|points| read_landmarks(points, self.landmark_confidence.take()))
            .transpose()?;
        let contour = self.landmarks_106.take().map(read_contour).transpose()?;
        let blendshapes = self.blendshapes.take();
        let morphable = self.eos_fit.take();
        let mut face = Observation {
            // Records without decimals do not say it.
            origin: known(self.origin.as_deref(), Origin::from_name)?.unwrap_or_default(),
            // A record has 0 for an engine without a score.
            confidence: Some(self.confidence).filter(|confidence| *confidence != 0.0),
            contour: contour.filter(|contour| !has_scheme(&landmarks, contour.scheme)),
            landmarks,
            key_points: points(&self.key_points),
            blendshapes: blendshapes
                .map(|pairs| read_blendshapes(pairs, channels))
                .transpose()?
                .map(|blendshapes| self.sourced(blendshapes))
                .transpose()?,
            pose: self.pose.as_ref().map(|pose| HeadPose {
                matrix: pose.matrix,
            }),
            attributes: self.attributes()?,
            embedding: self.embedding.take().map(Arc::from),
            gaze: self.gaze.take().map(|gaze| Gaze {
                right: gaze.right.into(),
                left: gaze.left.into(),
            }),
            features: self.features.as_ref().map(read_features).transpose()?,
            fit: self.fit.take().map(FitJson::fit),
            morphable: morphable
                .map(|fit| fit.morphable(self.eos.take()))
                .transpose()?
                .flatten(),
            ..Observation::from_bbox(Rect::default())
        };
        self.place(&mut face);
        Ok(face)
    }

    /// Gives the face its box, and with it the centroid that is recorded.
    fn place(&self, face: &mut Observation) {
        let centroid = (self.centroid_x, self.centroid_y);
        let whole = WholePixels {
            x: self.bbox_xmin,
            y: self.bbox_ymin,
            width: self.bbox_width,
            height: self.bbox_height,
            center: (!face.is_at_mean()).then_some(centroid),
        };
        face.bbox = match self.bbox {
            Some(rounded) => rounded::bbox(rounded, whole),
            None => Rect::new(
                whole.x as f32,
                whole.y as f32,
                whole.width as f32,
                whole.height as f32,
            ),
        };
        if face.is_at_mean()
            && let Some(landmarks) = &mut face.landmarks
        {
            rounded::center_landmarks(landmarks, centroid);
        }
    }

    fn sourced(&self, blendshapes: Blendshapes) -> Result<Blendshapes, String> {
        let source = known(
            self.blendshapes_source.as_deref(),
            BlendshapeSource::from_name,
        )?;
        Ok(blendshapes.from_source(source.unwrap_or_default()))
    }

    fn attributes(&self) -> Result<Option<Attributes>, String> {
        let gender = known(self.gender.as_deref(), Gender::from_name)?;
        match (self.age, gender) {
            (Some(age), Some(gender)) => Ok(Some(Attributes { age, gender })),
            (None, None) => Ok(None),
            _ => Err("`age` and `gender` go together".to_owned()),
        }
    }
}

/// What a word means, where there is one.
fn known<T>(word: Option<&str>, from_name: fn(&str) -> Option<T>) -> Result<Option<T>, String> {
    let Some(word) = word else {
        return Ok(None);
    };
    let meaning = from_name(word).ok_or_else(|| format!("{word:?} means nothing"))?;
    Ok(Some(meaning))
}

pub(super) fn points(points: &[[f32; 2]]) -> Vec<Point> {
    points.iter().map(|[x, y]| Point::new(*x, *y)).collect()
}

/// Every scheme has its own number of points.
fn read_landmarks(
    points: Vec<[f32; 3]>,
    confidences: Option<Vec<f32>>,
) -> Result<Landmarks, String> {
    let scheme = LandmarkScheme::ALL
        .into_iter()
        .find(|scheme| scheme.count() == points.len());
    let scheme = scheme.ok_or_else(|| format!("no engine has {} landmarks", points.len()))?;
    let confidences = confidences.unwrap_or_default();
    if !confidences.is_empty() && confidences.len() != points.len() {
        return Err("`landmark_confidence` is not as long as `landmarks`".to_owned());
    }
    let landmark = |[x, y, z]: [f32; 3]| Landmark { x, y, z };
    Ok(Landmarks {
        confidences,
        ..Landmarks::new(scheme, points.into_iter().map(landmark).collect())
    })
}

fn read_contour(points: Vec<[f32; 2]>) -> Result<Landmarks, String> {
    let scheme = LandmarkScheme::InsightFace106;
    if points.len() != scheme.count() {
        return Err(format!("`landmarks_106` has {} points", points.len()));
    }
    let landmark = |[x, y]: [f32; 2]| Landmark { x, y, z: 0.0 };
    Ok(Landmarks::new(
        scheme,
        points.into_iter().map(landmark).collect(),
    ))
}

fn has_scheme(landmarks: &Option<Landmarks>, scheme: LandmarkScheme) -> bool {
    landmarks
        .as_ref()
        .is_some_and(|landmarks| landmarks.scheme == scheme)
}

fn read_blendshapes(
    Pairs(pairs): Pairs<f32>,
    channels: &mut Arc<[String]>,
) -> Result<Blendshapes, String> {
    let same = channels.len() == pairs.len()
        && std::iter::zip(channels.iter(), &pairs).all(|(known, (name, _))| known == name);
    let (names, values): (Vec<String>, Vec<f32>) = pairs.into_iter().unzip();
    if !same {
        check_names(&names)?;
        *channels = names.into();
    }
    Ok(Blendshapes::new(channels.clone(), values))
}

/// Metadata lists names with commas between them.
pub(super) fn check_names(names: &[String]) -> Result<(), String> {
    let broken =
        |name: &&String| name.is_empty() || name.contains(|c: char| c == ',' || c.is_control());
    names
        .iter()
        .find(broken)
        .map_or(Ok(()), |name| Err(format!("{name:?} is no name")))
}

fn read_features(pairs: &Pairs<f32>) -> Result<Features, String> {
    let mut features = Features([0.0; 14]);
    for (value, name) in std::iter::zip(&mut features.0, Features::NAMES) {
        *value = *pairs
            .get(name)
            .ok_or_else(|| format!("there is no feature {name:?}"))?;
    }
    Ok(features)
}
