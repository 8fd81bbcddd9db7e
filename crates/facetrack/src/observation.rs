// SPDX-License-Identifier: MPL-2.0
//! Measurements of one face by an engine. Every coordinate is `f32` in pixels of the original
//! image.

use std::sync::Arc;

use nalgebra::{Matrix3, Vector3};
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::blendshape::Blendshapes;
use super::geometry::{Point, Rect};
use crate::words::{display_as_serialized, flags};

flags! {
    /// Measurements of a face, besides its id, whole pixels, score and blendshapes. A record has
    /// the selected ones, and an engine states which of [`Fields::MEASURED`] it reports.
    pub struct Fields, words fields_words;
    LANDMARKS = 0, "landmarks": "landmarks, landmark_confidence and landmarks_106";
    BOX = 1, "box": "the box with decimals";
    KEY_POINTS = 2, "key-points": "key points of the detector";
    POSE = 3, "pose": "position and rotation of the head, which dense and jsonl records always have";
    ATTRIBUTES = 4, "attributes": "age and gender";
    EMBEDDING = 5, "embedding": "embedding, which identifies people";
    GAZE = 6, "gaze": "pupils";
    FEATURES = 7, "features": "OpenSeeFace's features and eye_openness";
    FIT = 8, "fit": "OpenSeeFace's fitted face model";
    MORPHABLE = 9, "morphable": "eos and eos_fit, the fitted morphable model";
    ORIGIN = 10, "origin": "origin and blendshapes_source";
    RAW_BLENDSHAPES = 11, "raw-blendshapes": "blendshapes_raw, the blendshapes before rest values were subtracted and gains applied";
}

impl Fields {
    /// Measurements that an engine reports or does not report, without other properties.
    pub const MEASURED: Self = Self::POSE
        .union(Self::ATTRIBUTES)
        .union(Self::GAZE)
        .union(Self::FEATURES)
        .union(Self::FIT)
        .union(Self::MORPHABLE);

    /// The measurements whose condition is true.
    pub fn of<const N: usize>(measurements: [(Self, bool); N]) -> Self {
        let present = measurements
            .into_iter()
            .filter(|(_, is_present)| *is_present);
        present.map(|(measurement, _)| measurement).collect()
    }
}

/// One face in one frame, before it has an identity.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observation {
    /// Bounding box, px, not clipped to the image.
    pub bbox: Rect,
    /// The engine's own score, 0…1; `None` where it has none.
    pub confidence: Option<f32>,
    /// Origin of the face in this frame.
    pub origin: Origin,
    /// Dense landmarks.
    pub landmarks: Option<Landmarks>,
    /// Sparse key points of a detector (eyes, nose, mouth corners), px.
    pub key_points: Vec<Point>,
    /// Expression.
    pub blendshapes: Option<Blendshapes>,
    /// Position and rotation of the head.
    pub pose: Option<HeadPose>,
    /// Gaze.
    pub gaze: Option<Gaze>,
    /// OpenSeeFace's 3-D model of a face, fitted to the landmarks.
    pub fit: Option<ModelFit>,
    /// A morphable model, fitted to the landmarks, or the reason why it could not be fitted.
    pub morphable: Option<Result<MorphableFit, FitFailure>>,
    /// OpenSeeFace's features.
    pub features: Option<Features>,
    /// InsightFace's 106 points, if [`Observation::landmarks`] have another scheme.
    pub secondary_landmarks: Option<Landmarks>,
    /// Age and gender, as estimated by a network.
    pub attributes: Option<Attributes>,
    /// The face as a point of unit length in a space where one person's faces lie close together.
    /// It identifies people, so it is measured only on request.
    pub embedding: Option<Arc<[f32]>>,
}

impl Observation {
    /// A face with a box and no other measurements.
    pub fn from_bbox(bbox: Rect) -> Self {
        Self {
            bbox,
            ..Self::default()
        }
    }

    /// The position that the tracker assigns ids with: the mean of MediaPipe's landmarks if only
    /// they give the position of the face, else the centre of the unclipped box.
    ///
    /// A face with key points has the box of its detector, also in frames without landmarks.
    pub fn centroid(&self) -> Point {
        match &self.landmarks {
            Some(landmarks) if self.is_at_mean() => landmarks.mean(),
            _ => self.bbox.center(),
        }
    }

    /// Calls `change` with x, y and the depth of every point of the face that is a position in the
    /// picture, px. The depth is 0 for points in the plane. The box is not among them; pose and 3-D
    /// models have spaces of their own.
    pub fn for_each_point(&mut self, mut change: impl FnMut(&mut f32, &mut f32, &mut f32)) {
        let mut morphable = self.morphable.as_mut().and_then(|fit| fit.as_mut().ok());
        let meshes = morphable.iter_mut().flat_map(|fit| &mut fit.mesh);
        let dense = [&mut self.landmarks, &mut self.secondary_landmarks].into_iter();
        dense
            .flatten()
            .flat_map(|landmarks| &mut landmarks.points)
            .chain(meshes.flat_map(Arc::make_mut))
            .for_each(|point| change(&mut point.x, &mut point.y, &mut point.z));
        let pupils = self.gaze.iter_mut();
        let pupils = pupils.flat_map(|gaze| [&mut gaze.right, &mut gaze.left]);
        let outline = morphable.into_iter();
        self.key_points
            .iter_mut()
            .chain(pupils.map(|pupil| &mut pupil.position))
            .chain(self.fit.iter_mut().flat_map(|fit| &mut fit.projected))
            .chain(outline.flat_map(|fit| [&mut fit.origin].into_iter().chain(&mut fit.contour)))
            .for_each(|point| change(&mut point.x, &mut point.y, &mut 0.0));
    }

    /// Multiplies every x by `scale`: from displayed to stored columns.
    pub fn scale_columns(&mut self, scale: f32) {
        self.bbox.x *= scale;
        self.bbox.width *= scale;
        self.for_each_point(|x, _, _| *x *= scale);
    }

    /// Returns true if the centroid is the mean of the landmarks.
    pub fn is_at_mean(&self) -> bool {
        let mesh = self.landmarks.as_ref().is_some_and(|landmarks| {
            landmarks.scheme == LandmarkScheme::MediaPipe478 && !landmarks.points.is_empty()
        });
        mesh && self.key_points.is_empty()
    }
}

/// Origin of a face in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A detector found it in this frame.
    #[default]
    Detected,
    /// Followed from the frame before, and measured in this frame.
    Tracked,
    /// Repeated from another frame without a measurement.
    Held,
    /// Not measured in this frame, but moved along its last motion.
    Predicted,
}

impl Origin {
    /// Returns true if the face was found in its frame.
    pub fn is_measured(self) -> bool {
        matches!(self, Self::Detected | Self::Tracked)
    }
}

/// Order and number of landmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, VariantArray)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum LandmarkScheme {
    /// MediaPipe's face mesh: 468 mesh points, then 10 iris points.
    #[serde(rename = "mediapipe-478")]
    MediaPipe478 = 478,
    /// OpenSeeFace's 66 points: iBUG's 68 in another order, without the inner corners of the mouth.
    #[serde(rename = "openseeface-66")]
    OpenSeeFace66 = 66,
    /// The 68 points of iBUG's 300-W, in their order from 0: outline, brows, nose, eyes, outer and
    /// inner lips, each from the image's left.
    #[serde(rename = "ibug-68")]
    Ibug68 = 68,
    /// InsightFace's 106 points of `2d106det`.
    #[serde(rename = "insightface-106")]
    InsightFace106 = 106,
}

impl LandmarkScheme {
    /// Every scheme.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Number of landmarks.
    pub fn count(self) -> usize {
        self as usize
    }
}

/// A landmark.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Landmark {
    /// Rightward, px.
    pub x: f32,
    /// Downward, px.
    pub y: f32,
    /// Away from the camera, px at the scale of `y`, relative to the face's centre; 0 in 2-D
    /// schemes.
    pub z: f32,
}

/// Landmarks of one face.
#[derive(Debug, Clone, PartialEq)]
pub struct Landmarks {
    /// The meaning of each index.
    pub scheme: LandmarkScheme,
    /// Points, as many as the scheme has.
    pub points: Vec<Landmark>,
    /// The engine's own score of each point, in their order; empty if it has none.
    pub confidences: Vec<f32>,
}

impl Landmarks {
    /// Points without scores.
    pub fn new(scheme: LandmarkScheme, points: Vec<Landmark>) -> Self {
        Self {
            scheme,
            points,
            confidences: Vec::new(),
        }
    }

    /// The same points with a score for each, or with none; `None` for another number.
    pub fn with_confidences(self, confidences: Vec<f32>) -> Option<Self> {
        let is_complete = confidences.is_empty() || confidences.len() == self.points.len();
        is_complete.then_some(Self {
            confidences,
            ..self
        })
    }

    /// Mean position, px; the origin without points.
    pub fn mean(&self) -> Point {
        let n = self.points.len().max(1) as f64;
        let (x, y) = self.points.iter().fold((0.0f64, 0.0f64), |(x, y), p| {
            (x + f64::from(p.x), y + f64::from(p.y))
        });
        Point::new((x / n) as f32, (y / n) as f32)
    }

    /// The smallest box around the points, px.
    pub fn extent(&self) -> Rect {
        Rect::enclosing(self.points.iter().map(|p| Point::new(p.x, p.y))).unwrap_or_default()
    }
}

/// Rotation and translation of the head in camera space (right-handed, y up, looking along −z).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadPose {
    /// Camera from head, row-major, 4×4; the translation in the engine's unit (MediaPipe:
    /// centimetres; eos: millimetres of the model; InsightFace: about the width of a face; both at
    /// depth 0, which their cameras do not know).
    pub matrix: [[f32; 4]; 4],
}

impl HeadPose {
    /// The pose of this rotation, which may be scaled, and translation; `None` if a value is not
    /// finite in `f32`.
    pub(crate) fn new(rotation: &Matrix3<f64>, translation: &Vector3<f64>) -> Option<Self> {
        let mut matrix = rotation.to_homogeneous();
        matrix.fixed_view_mut::<3, 1>(0, 3).copy_from(translation);
        // Its arrays are columns.
        let matrix: [[f32; 4]; 4] = matrix.transpose().map(|value| value as f32).into();
        let is_finite = matrix.iter().flatten().all(|value| value.is_finite());
        is_finite.then_some(Self { matrix })
    }

    /// Yaw, pitch and roll in degrees: the rotation read as Ry(yaw)·Rx(pitch)·Rz(roll). Positive
    /// yaw turns the face to the image's right, positive pitch lowers the chin, positive roll tilts
    /// it counter-clockwise in the image.
    ///
    /// A uniform scale in the matrix does not change the angles.
    pub fn euler_degrees(&self) -> EulerAngles {
        let m = &self.matrix;
        let squares = m[..3].iter().map(|row| row[0] * row[0]);
        let scale = squares.sum::<f32>().sqrt();
        let scale = if scale > 0.0 { scale } else { 1.0 };
        let r = |row: usize, column: usize| m[row][column] / scale;
        EulerAngles {
            yaw: libm::atan2f(r(0, 2), r(2, 2)).to_degrees(),
            pitch: libm::asinf((-r(1, 2)).clamp(-1.0, 1.0)).to_degrees(),
            roll: libm::atan2f(r(1, 0), r(1, 1)).to_degrees(),
        }
    }
}

/// Head rotation in degrees; see [`HeadPose::euler_degrees`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EulerAngles {
    /// Around the vertical axis.
    pub yaw: f32,
    /// Around the axis through the ears.
    pub pitch: f32,
    /// Around the viewing axis.
    pub roll: f32,
}

/// Gaze: the pupils of the face's right eye and left eye.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gaze {
    /// The eye on the right side of the face.
    pub right: Pupil,
    /// The eye on the left side of the face.
    pub left: Pupil,
}

/// The middle of an iris.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pupil {
    /// Position, px.
    pub position: Point,
    /// The engine's own score; if it is 0, the position has no meaning.
    pub confidence: f32,
}

/// A 3-D model of a face as a camera sees it, fitted to landmarks: OpenSeeFace's, in its
/// conventions, which its receivers read. [`Observation::pose`] has the position of the head in the
/// conventions of every engine.
///
/// The camera's first axis points down the image, the second to its right, the third away from the
/// viewer; its focal length is the image's width w, its principal point (row w/2, column h/2). The
/// model's axes point to the right side of the face, up, and out of it; its unit is about the width
/// of a face. OpenSeeFace finds the face behind the camera, at a negative distance, where it looks
/// like a face in front of the camera that is rotated by half a turn around the line of sight.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelFit {
    /// True if the solver has found a solution; otherwise the error is 99999 and all other values
    /// are 0.
    pub success: bool,
    /// Distance of the outline and the tip of the nose from the model, px: about a root mean
    /// square.
    pub error: f32,
    /// The inverse rotation as a quaternion (x, y, z, w).
    pub quaternion: [f32; 4],
    /// The rotation as angles in degrees around the camera's axes: `cv::RQDecomp3x3`.
    pub euler: [f32; 3],
    /// The rotation as axis times angle in radians (Rodrigues).
    pub rotation: [f32; 3],
    /// Camera from model, in units of the model.
    pub translation: [f32; 3],
    /// The landmarks in the model's space, as many as the scheme has, then the pupils and the
    /// centres of the eyeballs, right before left. In a good fit they are moved, levelled and
    /// scaled so that nose and width are the model's.
    pub points: Vec<[f32; 3]>,
    /// The requested points of the model, projected into the picture, px.
    pub projected: Vec<Point>,
}

/// A morphable model of a face, fitted to landmarks under a scaled orthographic camera: see
/// [`morphable`](super::morphable).
#[derive(Debug, Clone, PartialEq)]
pub struct MorphableFit {
    /// Coefficients of the shape's principal components, in standard deviations; as many as the
    /// model has.
    pub shape: Vec<f32>,
    /// Coefficients of the expressions, from 0 on.
    pub expression: Vec<f32>,
    /// Names of the expressions, in their order.
    pub expression_names: Arc<[String]>,
    /// Camera from model as a unit quaternion (x, y, z, w), in the conventions of [`HeadPose`].
    pub rotation: [f32; 4],
    /// Position of the model's origin in the image, px.
    pub origin: Point,
    /// Pixels per unit of the model, which is a millimetre.
    pub scale: f32,
    /// Mean distance of the landmarks with a vertex of their own from that vertex, px.
    pub residual: f32,
    /// The outline as the camera sees it, px: the vertices that the outline's landmarks were
    /// matched with, in the order of the landmarks.
    pub contour: Vec<Point>,
    /// Every vertex as the camera sees it, in the units of a [`Landmark`]: px, and px away from the
    /// camera relative to the landmarks' mean; `None` unless requested.
    pub mesh: Option<Arc<[Landmark]>>,
}

/// Reason why a morphable model was not fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum FitFailure {
    /// The face has no landmarks.
    NoLandmarks,
    /// A landmark is not a number, or beyond every image.
    NotFinite,
    /// The landmarks lie on a line or on one point.
    Degenerate,
    /// Most landmarks are outside of the image.
    OutOfFrame,
    /// The equations have no finite solution.
    Unsolvable,
}

impl FitFailure {
    /// Every failure.
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

impl std::error::Error for FitFailure {}

display_as_serialized!(Origin, LandmarkScheme, FitFailure, Gender);

/// OpenSeeFace's features: movements of parts of a face, each relative to the range seen in this
/// face before: −1…1, 0 at rest. Closing eyes, a closing mouth, and sinking brows or corners of the
/// mouth are negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features(pub [f32; 14]);

impl Features {
    /// Names of the features, in the order of OpenSeeFace's packets; `l` and `r` are sides of the
    /// face.
    pub const NAMES: [&str; 14] = [
        "eye_l",
        "eye_r",
        "eyebrow_steepness_l",
        "eyebrow_updown_l",
        "eyebrow_quirk_l",
        "eyebrow_steepness_r",
        "eyebrow_updown_r",
        "eyebrow_quirk_r",
        "mouth_corner_updown_l",
        "mouth_corner_inout_l",
        "mouth_corner_updown_r",
        "mouth_corner_inout_r",
        "mouth_open",
        "mouth_wide",
    ];

    /// A feature by its name.
    pub fn get(&self, name: &str) -> Option<f32> {
        let index = Self::NAMES.iter().position(|known| *known == name)?;
        Some(self.0[index])
    }

    /// Opening of the right eye and of the left eye: 0 for a closed eye, 1 for one as open as
    /// usual.
    pub fn eye_openness(&self) -> [f32; 2] {
        [self.0[1], self.0[0]].map(|eye| 1.0 - (-eye).clamp(0.0, 1.0))
    }
}

/// Age and gender, as estimated by a network from the face's appearance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attributes {
    /// Years.
    pub age: f32,
    /// Estimated gender.
    pub gender: Gender,
}

/// Classes of InsightFace's `genderage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum Gender {
    /// Index 0.
    Female,
    /// Index 1.
    Male,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_face_is_followed_by_its_landmarks_unless_a_detectors_box_says_where_it_is() {
        let found = Observation::from_bbox(Rect::new(0.0, 0.0, 100.0, 80.0));
        let mut point = Landmark::default();
        let points = (0..478).map(|i| {
            point.x = i as f32;
            point
        });
        let landmarks = Some(Landmarks::new(
            LandmarkScheme::MediaPipe478,
            points.collect(),
        ));
        let (center, mean) = (Point::new(50.0, 40.0), Point::new(238.5, 0.0));
        for (key_points, landmarks, want) in [
            (0, None, center),
            (5, None, center),
            (0, landmarks.clone(), mean),
            (5, landmarks, center),
        ] {
            let face = Observation {
                key_points: vec![Point::default(); key_points],
                landmarks,
                ..found.clone()
            };
            assert_eq!(face.centroid(), want);
        }
    }
}
