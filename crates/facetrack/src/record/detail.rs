// SPDX-License-Identifier: MPL-2.0
//! The parts of a face that [`Fields`] select. Struct fields are in the order of the JSON's keys; what was not measured, or has
//! a number that is not finite, is left out.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::Fields;
use super::morphable::{CoefficientsJson, MorphableJson};
use super::number::{PointsJson, Thousandths, all_finite};
use crate::geometry::Rect;
use crate::observation::{
    Features, Gaze, HeadPose, Landmark, LandmarkScheme, Landmarks, ModelFit, Observation, Pupil,
};

/// Everything that is known of a face and not in [`DenseObject`](super::object::DenseObject).
#[derive(serde::Serialize)]
pub(super) struct DetailJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    landmarks: Option<LandmarksJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eos: Option<CoefficientsJson<'a>>,
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    bbox: Option<[Thousandths; 4]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_points: Option<PointsJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pose: Option<PoseJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<Thousandths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gender: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding: Option<&'a [f32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    landmarks_106: Option<PlaneJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gaze: Option<GazeJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<FeaturesJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    landmark_confidence: Option<ScoresJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eye_openness: Option<[Thousandths; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<FitJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eos_fit: Option<MorphableJson<'a>>,
}

impl<'a> DetailJson<'a> {
    pub(super) fn new(face: &'a Observation, fields: Fields) -> Self {
        let wants = |field| fields.contains(field);
        let landmarks = face.landmarks.as_ref().filter(|_| wants(Fields::LANDMARKS));
        let attributes = face
            .attributes
            .filter(|looks| wants(Fields::ATTRIBUTES) && looks.age.is_finite());
        let features = face
            .features
            .filter(|features| wants(Fields::FEATURES) && all_finite(&features.0));
        let morphable = face.morphable.as_ref().filter(|_| wants(Fields::MORPHABLE));
        let fitted = morphable.and_then(|fit| fit.as_ref().ok());
        let embedding = face.embedding.as_deref();
        Self {
            landmarks: landmarks.and_then(LandmarksJson::new),
            eos: fitted.and_then(CoefficientsJson::new),
            bbox: wants(Fields::BOX).then(|| rect_json(&face.bbox)),
            key_points: Some(&face.key_points)
                .filter(|points| wants(Fields::KEY_POINTS) && !points.is_empty())
                .and_then(|points| PointsJson::new(points)),
            pose: face
                .pose
                .filter(|_| wants(Fields::POSE))
                .and_then(PoseJson::new),
            age: attributes.map(|looks| Thousandths(looks.age)),
            gender: attributes.map(|looks| looks.gender.name()),
            embedding: embedding.filter(|e| wants(Fields::EMBEDDING) && all_finite(e)),
            landmarks_106: contour(face)
                .filter(|_| wants(Fields::LANDMARKS))
                .and_then(PlaneJson::new),
            gaze: face
                .gaze
                .filter(|_| wants(Fields::GAZE))
                .and_then(GazeJson::new),
            features: features.map(FeaturesJson),
            origin: wants(Fields::ORIGIN).then(|| face.origin.name()),
            landmark_confidence: landmarks.and_then(|l| ScoresJson::new(&l.confidences)),
            eye_openness: features.map(|features| features.eye_openness().map(Thousandths)),
            fit: face
                .fit
                .as_ref()
                .filter(|_| wants(Fields::FIT))
                .and_then(FitJson::new),
            eos_fit: morphable.and_then(MorphableJson::new),
        }
    }
}

/// InsightFace's 106 points, wherever they are.
fn contour(face: &Observation) -> Option<&Landmarks> {
    [&face.contour, &face.landmarks]
        .into_iter()
        .flatten()
        .find(|points| points.scheme == LandmarkScheme::InsightFace106)
}

fn rect_json(rect: &Rect) -> [Thousandths; 4] {
    [rect.x, rect.y, rect.width, rect.height].map(Thousandths)
}

/// `[[x,y,z]…]`, px.
struct LandmarksJson<'a>(&'a [Landmark]);

impl<'a> LandmarksJson<'a> {
    fn new(landmarks: &'a Landmarks) -> Option<Self> {
        let points = &landmarks.points;
        points
            .iter()
            .all(|p| all_finite(&[p.x, p.y, p.z]))
            .then_some(Self(points))
    }
}

impl Serialize for LandmarksJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|p| [p.x, p.y, p.z].map(Thousandths)))
    }
}

/// `[[x,y]…]` of landmarks without a depth, px.
struct PlaneJson<'a>(&'a [Landmark]);

impl<'a> PlaneJson<'a> {
    fn new(landmarks: &'a Landmarks) -> Option<Self> {
        let points = &landmarks.points;
        let finite = points.iter().all(|p| all_finite(&[p.x, p.y]));
        finite.then_some(Self(points))
    }
}

impl Serialize for PlaneJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|p| [p.x, p.y].map(Thousandths)))
    }
}

/// A score for each landmark.
struct ScoresJson<'a>(&'a [f32]);

impl<'a> ScoresJson<'a> {
    fn new(scores: &'a [f32]) -> Option<Self> {
        (!scores.is_empty() && all_finite(scores)).then_some(Self(scores))
    }
}

impl Serialize for ScoresJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().copied().map(Thousandths))
    }
}

/// `matrix` as rows, and angles in degrees.
struct PoseJson(HeadPose);

impl PoseJson {
    fn new(pose: HeadPose) -> Option<Self> {
        all_finite(pose.matrix.as_flattened()).then_some(Self(pose))
    }
}

impl Serialize for PoseJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let angles = self.0.euler_degrees();
        let mut pose = serializer.serialize_struct("Pose", 4)?;
        pose.serialize_field("matrix", &self.0.matrix)?;
        pose.serialize_field("yaw", &Thousandths(angles.yaw))?;
        pose.serialize_field("pitch", &Thousandths(angles.pitch))?;
        pose.serialize_field("roll", &Thousandths(angles.roll))?;
        pose.end()
    }
}

/// The pupils, px.
#[derive(serde::Serialize)]
struct GazeJson {
    right: PupilJson,
    left: PupilJson,
}

impl GazeJson {
    fn new(gaze: Gaze) -> Option<Self> {
        Some(Self {
            right: PupilJson::new(gaze.right)?,
            left: PupilJson::new(gaze.left)?,
        })
    }
}

#[derive(serde::Serialize)]
struct PupilJson {
    x: Thousandths,
    y: Thousandths,
    confidence: Thousandths,
}

impl PupilJson {
    fn new(pupil: Pupil) -> Option<Self> {
        let known = [pupil.position.x, pupil.position.y, pupil.confidence];
        let [x, y, confidence] = known.map(Thousandths);
        all_finite(&known).then_some(Self { x, y, confidence })
    }
}

/// Name → value.
struct FeaturesJson(Features);

impl Serialize for FeaturesJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(std::iter::zip(Features::NAMES, self.0.0))
    }
}

/// The fitted face model of OpenSeeFace.
#[derive(serde::Serialize)]
struct FitJson<'a> {
    success: bool,
    error: Thousandths,
    quaternion: [f32; 4],
    euler: [Thousandths; 3],
    rotation: [f32; 3],
    translation: [f32; 3],
    landmarks_3d: &'a [[f32; 3]],
    projected: PointsJson<'a>,
}

impl<'a> FitJson<'a> {
    fn new(fit: &'a ModelFit) -> Option<Self> {
        let finite = all_finite(&fit.quaternion)
            && all_finite(&fit.euler)
            && all_finite(&fit.rotation)
            && all_finite(&fit.translation)
            && all_finite(fit.points.as_flattened())
            && fit.error.is_finite();
        finite.then_some(Self {
            success: fit.success,
            error: Thousandths(fit.error),
            quaternion: fit.quaternion,
            euler: fit.euler.map(Thousandths),
            rotation: fit.rotation,
            translation: fit.translation,
            landmarks_3d: &fit.points,
            projected: PointsJson::new(&fit.projected)?,
        })
    }
}
