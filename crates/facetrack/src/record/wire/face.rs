// SPDX-License-Identifier: MPL-2.0
//! The JSON form of a face.

use std::borrow::Cow;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::fits::{Coefficients, Fit, Morphable};
use super::number::{Place, Thousandths, check_names, exact, finite, places, points, rounded};
use super::rounded::place;
use crate::blendshape::{BlendshapeSource, Blendshapes};
use crate::geometry::{Point, Rect};
use crate::observation::{
    self, Attributes, Features, Fields, Gender, HeadPose, Landmark, LandmarkScheme, Landmarks,
    Observation, Origin,
};
use crate::record::export::Export;
use crate::report::TrackedFace;
use crate::speaking::Speaking;

/// One face in one frame. An optional key is absent if its value was not measured, or not selected
/// with the properties fields and verbose.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "object"))]
#[serde(expecting = "an object")]
pub(crate) struct Face<'a> {
    id: Id,
    /// Centre of the face in pixels, truncated toward zero: the mean of the landmarks with
    /// the engine mediapipe, the centre of the box with the others.
    centroid_x: i32,
    /// Centre of the face in pixels; see centroid_x.
    centroid_y: i32,
    /// Left edge of the box in pixels, truncated toward zero; may lie outside the frame.
    bbox_xmin: i32,
    /// bbox_xmin + bbox_width.
    #[serde(default)]
    bbox_xmax: i32,
    /// For older consumers, which test for this value. It is the same for every engine;
    /// tracking_engine in the metadata names the engine.
    #[serde(skip_deserializing)]
    source: Source,
    /// For older consumers; always face.
    #[serde(skip_deserializing)]
    label: Label,
    /// The engine's own score, 0 to 1; 0 if it has none.
    confidence: Thousandths,
    /// Blendshapes by ARKit name, 0 to 1. Blendshapes that were not measured, or that
    /// blendshape-profile excludes, are absent; null if there are none.
    #[cfg_attr(test, schemars(extend("minProperties" = 1)))]
    blendshapes: Option<IndexMap<Cow<'a, str>, f32>>,
    /// Top edge of the box in pixels, truncated toward zero; may lie outside the frame.
    bbox_ymin: i32,
    /// bbox_ymin + bbox_height.
    #[serde(default)]
    bbox_ymax: i32,
    /// Width of the box in pixels, truncated.
    bbox_width: i32,
    /// Height of the box in pixels, truncated.
    bbox_height: i32,
    #[serde(flatten, skip_deserializing)]
    speaking: Speaking,
    /// Landmarks as x, y, z in pixels, in the order of landmark_scheme (fields=landmarks).
    #[serde(skip_serializing_if = "Option::is_none")]
    landmarks: Option<Vec<[Thousandths; 3]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eos: Option<Coefficients<'a>>,
    /// Box as x, y, width, height in pixels, not clipped to the frame (fields=box).
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    bbox: Option<[Thousandths; 4]>,
    /// Key points of the detector as x, y in pixels (fields=key-points). For YuNet: the eyes, the
    /// tip of the nose and the corners of the mouth.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_points: Option<Vec<Place>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pose: Option<Pose>,
    /// Estimated age in years (fields=attributes).
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<Thousandths>,
    /// Estimated gender (fields=attributes).
    #[serde(skip_serializing_if = "Option::is_none")]
    gender: Option<Gender>,
    /// Vector of unit length. Pictures of one person have similar vectors, so it identifies people
    /// (fields=embedding, and facetrack embedding=true).
    #[cfg_attr(test, schemars(length(min = 1)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding: Option<Cow<'a, [f32]>>,
    /// InsightFace's 106 points as x, y in pixels, in addition to landmarks (fields=landmarks).
    #[cfg_attr(test, schemars(length(equal = 106)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    landmarks_106: Option<Vec<Place>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gaze: Option<Gaze>,
    /// OpenSeeFace's features by name, −1 to 1, 0 at rest (fields=features).
    #[cfg_attr(test, schemars(extend("minProperties" = 1)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<IndexMap<Cow<'a, str>, f32>>,
    /// Source of the face in this frame (fields=origin): found by the detector, followed, repeated
    /// from another frame, or predicted from its motion.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    /// Score of each landmark (fields=landmarks).
    #[serde(skip_serializing_if = "Option::is_none")]
    landmark_confidence: Option<Vec<Thousandths>>,
    /// Openness of the person's right and left eye (fields=features), from 0 (closed) to 1 (as open
    /// as usual).
    #[cfg_attr(test, schemars(inner(range(min = 0, max = 1))))]
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    eye_openness: Option<[Thousandths; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<Fit<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eos_fit: Option<Morphable<'a>>,
    /// Source of the blendshapes: measured by a network, or derived from other values. Present for
    /// derived ones, and with fields=origin for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    blendshapes_source: Option<BlendshapeSource>,
    /// The blendshapes as they were measured (fields=raw-blendshapes), with the same names; present
    /// if blendshapes_corrected is.
    #[cfg_attr(test, schemars(extend("minProperties" = 1)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    blendshapes_raw: Option<IndexMap<Cow<'a, str>, f32>>,
    /// True if rest values were subtracted from blendshapes (facetrack neutral-time, neutral-file
    /// or set-neutral), or if they were multiplied (facetrack blendshape-gain); absent otherwise.
    #[cfg_attr(test, schemars(extend("const" = true)))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    blendshapes_corrected: bool,
    /// Number and order of the landmarks (fields=landmarks). In records without this key, their
    /// number identifies the scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    landmark_scheme: Option<LandmarkScheme>,
}

/// Identity of the face: obj_ and a number from 1. It stays the same from frame to frame and is
/// never reused in a stream.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "id", with = "String", extend("pattern" = "^obj_[1-9][0-9]*$"))
)]
#[serde(into = "String", try_from = "String")]
struct Id(u32);

impl From<Id> for String {
    fn from(id: Id) -> Self {
        format!("obj_{}", id.0)
    }
}

impl TryFrom<String> for Id {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = text.strip_prefix("obj_");
        let id = number.and_then(|number| number.parse().ok());
        id.filter(|id| *id > 0)
            .map(Self)
            .filter(|id| String::from(*id) == text)
            .ok_or_else(|| format!("{text:?} is not an id such as obj_1"))
    }
}

/// The literal that older consumers test for.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
enum Source {
    #[default]
    FaceLandmarker,
}

/// The kind of object.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
enum Label {
    #[default]
    Face,
}

/// Position and rotation of the head, if the engine measures it.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(expecting = "an object")]
struct Pose {
    /// Transform from head to camera coordinates, a 4×4 matrix, row by row. The camera looks along
    /// −z; y points up. The unit of the translation depends on the engine: cm with MediaPipe's
    /// networks, mm of the model with eos, units of the model with OpenSeeFace, about the width of
    /// the face with InsightFace.
    matrix: [[f32; 4]; 4],
    /// Rotation about the vertical axis in degrees; positive to the person's left.
    #[serde(skip_deserializing)]
    yaw: Thousandths,
    /// Rotation about the axis through both ears in degrees; positive down.
    #[serde(skip_deserializing)]
    pitch: Thousandths,
    /// Rotation about the viewing axis in degrees; positive to the person's right shoulder.
    #[serde(skip_deserializing)]
    roll: Thousandths,
}

impl Pose {
    fn new(pose: HeadPose) -> Option<Self> {
        finite(pose.matrix.as_flattened())?;
        let angles = pose.euler_degrees();
        Some(Self {
            matrix: pose.matrix,
            yaw: Thousandths(angles.yaw),
            pitch: Thousandths(angles.pitch),
            roll: Thousandths(angles.roll),
        })
    }
}

/// The pupils of the person's right and left eye (fields=gaze).
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(expecting = "an object")]
struct Gaze {
    /// Right eye.
    right: Pupil,
    /// Left eye.
    left: Pupil,
}

/// A pupil. With a confidence of 0 its position has no meaning.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "pupil"))]
#[serde(expecting = "an object")]
struct Pupil {
    /// In pixels.
    x: Thousandths,
    /// In pixels.
    y: Thousandths,
    /// The engine's own score, 0 to 1; 0 if it has none.
    confidence: Thousandths,
}

impl Pupil {
    fn new(pupil: observation::Pupil) -> Option<Self> {
        let [x, y, confidence] = rounded([pupil.position.x, pupil.position.y, pupil.confidence])?;
        Some(Self { x, y, confidence })
    }
}

impl From<Pupil> for observation::Pupil {
    fn from(pupil: Pupil) -> Self {
        Self {
            position: Point::new(pupil.x.0, pupil.y.0),
            confidence: pupil.confidence.0,
        }
    }
}

/// One face in one frame of a reduced file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "reducedObject"))]
pub(super) struct ReducedFace {
    id: Id,
    /// Centre of the face in pixels, truncated toward zero.
    centroid_x: i32,
    /// For older consumers; always the same.
    source: Source,
    /// For older consumers; always face.
    label: Label,
    /// The engine's own score, 0 to 1; 0 if it has none.
    confidence: Thousandths,
    /// For older consumers; always empty.
    active_speakers: [u8; 0],
    /// Width of the box in pixels.
    bbox_width: i32,
    /// Height of the box in pixels.
    bbox_height: i32,
}

impl From<Face<'_>> for ReducedFace {
    fn from(face: Face<'_>) -> Self {
        Self {
            id: face.id,
            centroid_x: face.centroid_x,
            source: face.source,
            label: face.label,
            confidence: face.confidence,
            active_speakers: [],
            bbox_width: face.bbox_width,
            bbox_height: face.bbox_height,
        }
    }
}

impl<'a> Face<'a> {
    /// The parts of a face that `export` selects; `None` for a face without a position, or
    /// smaller than a pixel.
    pub(super) fn new(tracked: &'a TrackedFace, export: &Export) -> Option<Self> {
        let TrackedFace { id, face } = tracked;
        let centroid = face.centroid();
        let bbox = &face.bbox;
        let [x, y, width, height] = [bbox.x, bbox.y, bbox.width, bbox.height];
        // Truncated toward zero, as in the files that older consumers know.
        let whole = |side: f32| finite([side]).map(|[side]| side as i32);
        let (bbox_xmin, bbox_width) = (whole(x)?, whole(width)?);
        let (bbox_ymin, bbox_height) = (whole(y)?, whole(height)?);
        if bbox_width < 1 || bbox_height < 1 {
            return None;
        }
        let blendshapes = face.blendshapes.as_ref();
        let exported = blendshapes
            .and_then(|channels| export.profile.apply(channels.names(), channels.values()));
        let landmarks = face.landmarks.as_ref();
        let morphable = face.morphable.as_ref();
        let attributes = face.attributes.filter(|looks| looks.age.is_finite());
        let features = face.features.filter(|it| finite(it.0).is_some());
        let known = face.confidence.filter(|score| score.is_finite());
        let points = export.part(Fields::LANDMARKS, || solid(&landmarks?.points));
        let landmark_scheme = points.as_ref().and(landmarks).map(|it| it.scheme);
        Some(Self {
            id: Id(*id),
            centroid_x: whole(centroid.x)?,
            centroid_y: whole(centroid.y)?,
            bbox_xmin,
            bbox_xmax: bbox_xmin.saturating_add(bbox_width),
            source: Source::default(),
            label: Label::default(),
            confidence: Thousandths(known.unwrap_or(0.0)),
            blendshapes_corrected: exported.is_some()
                && blendshapes.is_some_and(Blendshapes::is_corrected),
            blendshapes: exported,
            bbox_ymin,
            bbox_ymax: bbox_ymin.saturating_add(bbox_height),
            bbox_width,
            bbox_height,
            speaking: Speaking::from_blendshapes(blendshapes),
            landmarks: points,
            eos: export.part(Fields::MORPHABLE, || {
                Coefficients::new(morphable?.as_ref().ok()?)
            }),
            bbox: export.part(Fields::BOX, || rounded([x, y, width, height])),
            key_points: export
                .part(Fields::KEY_POINTS, || places(&face.key_points))
                .filter(|points| !points.is_empty()),
            pose: face.pose.and_then(Pose::new),
            age: export.part(Fields::ATTRIBUTES, || Some(Thousandths(attributes?.age))),
            gender: export.part(Fields::ATTRIBUTES, || Some(attributes?.gender)),
            embedding: export.part(Fields::EMBEDDING, || {
                Some(finite(face.embedding.as_deref()?)?.into())
            }),
            landmarks_106: export.part(Fields::LANDMARKS, || flat(&insightface(face)?.points)),
            gaze: export.part(Fields::GAZE, || {
                Some(Gaze {
                    right: Pupil::new(face.gaze?.right)?,
                    left: Pupil::new(face.gaze?.left)?,
                })
            }),
            features: export.part(Fields::FEATURES, || {
                let names = Features::NAMES.map(Cow::Borrowed);
                Some(std::iter::zip(names, features?.0).collect())
            }),
            origin: export.part(Fields::ORIGIN, || Some(face.origin)),
            landmark_confidence: export
                .part(Fields::LANDMARKS, || {
                    let scores = finite(&landmarks?.confidences)?.iter();
                    Some(scores.copied().map(Thousandths).collect::<Vec<_>>())
                })
                .filter(|scores| !scores.is_empty()),
            eye_openness: export.part(Fields::FEATURES, || {
                Some(features?.eye_openness().map(Thousandths))
            }),
            fit: export.part(Fields::FIT, || Fit::new(face.fit.as_ref()?)),
            eos_fit: export.part(Fields::MORPHABLE, || Morphable::new(morphable?)),
            blendshapes_source: blendshapes.and_then(|channels| stated_source(channels, export)),
            blendshapes_raw: export.part(Fields::RAW_BLENDSHAPES, || {
                let channels = blendshapes?;
                export.profile.apply(channels.names(), channels.raw()?)
            }),
            landmark_scheme,
        })
    }

    pub(super) fn centroid_x(&self) -> i32 {
        self.centroid_x
    }

    /// The face with its id. If its blendshapes have the names in `channels`, it shares them; else
    /// `channels` is replaced.
    ///
    /// # Errors
    /// Returns a description of an invalid value.
    pub(super) fn tracked(self, channels: &mut Arc<[String]>) -> Result<TrackedFace, String> {
        let Id(id) = self.id;
        let face = self.observation(channels);
        let face = face.map_err(|reason| format!("obj_{id}: {reason}"))?;
        Ok(TrackedFace { id, face })
    }

    fn observation(self, channels: &mut Arc<[String]>) -> Result<Observation, String> {
        let whole = [
            self.bbox_xmin,
            self.bbox_ymin,
            self.bbox_width,
            self.bbox_height,
        ];
        let centroid = (self.centroid_x, self.centroid_y);
        let scores = self.landmark_confidence.unwrap_or_default();
        let scheme = self.landmark_scheme;
        let landmarks = self.landmarks;
        let landmarks = landmarks.map(|points| read_landmarks(scheme, points, scores));
        let landmarks = landmarks.transpose()?;
        let secondary = self.landmarks_106.map(read_106).transpose()?;
        let scheme = landmarks.as_ref().map(|landmarks| landmarks.scheme);
        let morphable = self.eos_fit.map(|fit| fit.fit(self.eos)).transpose()?;
        let (raw, source) = (self.blendshapes_raw, self.blendshapes_source);
        let blendshapes = self.blendshapes;
        let blendshapes = blendshapes.map(|values| read_blendshapes(values, raw, source, channels));
        let mut blendshapes = blendshapes.transpose()?;
        if self.blendshapes_corrected {
            blendshapes = blendshapes.map(Blendshapes::assume_corrected);
        }
        let mut face = Observation {
            // Records without decimals do not state it.
            origin: self.origin.unwrap_or_default(),
            // A record has 0 for an engine without a score.
            confidence: Some(self.confidence.0).filter(|confidence| *confidence != 0.0),
            secondary_landmarks: secondary.filter(|it| Some(it.scheme) != scheme),
            landmarks,
            key_points: points(self.key_points.unwrap_or_default()),
            blendshapes,
            pose: self.pose.map(|Pose { matrix, .. }| HeadPose { matrix }),
            attributes: attributes(self.age, self.gender)?,
            embedding: self.embedding.map(Arc::from),
            gaze: self.gaze.map(|gaze| observation::Gaze {
                right: gaze.right.into(),
                left: gaze.left.into(),
            }),
            features: self.features.as_ref().map(read_features).transpose()?,
            fit: self.fit.map(Fit::into),
            morphable: morphable.flatten(),
            ..Observation::from_bbox(Rect::default())
        };
        let stated = self.bbox.map(exact);
        place(&mut face, stated, whole, centroid);
        // Half a step of rounding gives a box of no extent one.
        let is_flat = stated.is_some_and(|[.., width, height]| width <= 0.0 || height <= 0.0);
        if is_flat || !face.bbox.has_extent() {
            return Err("its box has no extent, or is infinite".to_owned());
        }
        Ok(face)
    }
}

/// Returns the source if the record states it. Readers of records without it assume that
/// blendshapes are measured, so derived ones are marked.
fn stated_source(channels: &Blendshapes, export: &Export) -> Option<BlendshapeSource> {
    let source = channels.source();
    let is_stated = export.fields.contains(Fields::ORIGIN) || source == BlendshapeSource::Derived;
    is_stated.then_some(source)
}

/// Returns InsightFace's 106 points, which may be the landmarks or the secondary ones.
fn insightface(face: &Observation) -> Option<&Landmarks> {
    [&face.secondary_landmarks, &face.landmarks]
        .into_iter()
        .flatten()
        .find(|points| points.scheme == LandmarkScheme::InsightFace106)
}

fn solid(landmarks: &[Landmark]) -> Option<Vec<[Thousandths; 3]>> {
    let points = landmarks.iter().map(|p| rounded([p.x, p.y, p.z]));
    points.collect()
}

fn flat(landmarks: &[Landmark]) -> Option<Vec<Place>> {
    landmarks.iter().map(|p| rounded([p.x, p.y])).collect()
}

/// Reads landmarks. Older records do not state the scheme; each of their schemes has another number
/// of points.
fn read_landmarks(
    stated: Option<LandmarkScheme>,
    points: Vec<[Thousandths; 3]>,
    scores: Vec<Thousandths>,
) -> Result<Landmarks, String> {
    let count = points.len();
    let mut schemes = LandmarkScheme::ALL.iter().copied();
    let is_right = |scheme: &LandmarkScheme| {
        scheme.count() == count && stated.is_none_or(|stated| stated == *scheme)
    };
    let scheme = schemes.find(is_right);
    let scheme = scheme.ok_or_else(|| match stated {
        Some(stated) => format!("{stated} does not have {count} landmarks"),
        None => format!("no engine has {count} landmarks"),
    })?;
    let points = points.into_iter().map(exact);
    let points = points.map(|[x, y, z]| Landmark { x, y, z }).collect();
    let scores = scores.into_iter().map(|score| score.0).collect();
    Landmarks::new(scheme, points)
        .with_confidences(scores)
        .ok_or_else(|| "`landmark_confidence` and `landmarks` differ in length".to_owned())
}

fn read_106(points: Vec<Place>) -> Result<Landmarks, String> {
    let scheme = LandmarkScheme::InsightFace106;
    if points.len() != scheme.count() {
        return Err(format!("`landmarks_106` has {} points", points.len()));
    }
    let points = points.into_iter().map(exact);
    let landmark = |[x, y]: [f32; 2]| Landmark { x, y, z: 0.0 };
    Ok(Landmarks::new(scheme, points.map(landmark).collect()))
}

fn read_blendshapes(
    values: IndexMap<Cow<'_, str>, f32>,
    raw: Option<IndexMap<Cow<'_, str>, f32>>,
    source: Option<BlendshapeSource>,
    channels: &mut Arc<[String]>,
) -> Result<Blendshapes, String> {
    let values = values
        .into_iter()
        .map(|(name, value)| (name.into_owned(), value));
    let (names, values): (Vec<String>, Vec<f32>) = values.unzip();
    if **channels != *names {
        check_names(&names)?;
        *channels = names.into();
    }
    let has_same_names = |raw: &IndexMap<_, f32>| raw.keys().eq(channels.iter());
    let blendshapes = if raw.as_ref().is_none_or(has_same_names) {
        let raw = raw.map(|raw| raw.into_values().collect());
        Blendshapes::restored(channels.clone(), values, raw, source.unwrap_or_default())
    } else {
        None
    };
    blendshapes
        .ok_or_else(|| "`blendshapes_raw` and `blendshapes` differ in their names".to_owned())
}

fn read_features(values: &IndexMap<Cow<'_, str>, f32>) -> Result<Features, String> {
    let mut features = Features([0.0; 14]);
    for (value, name) in std::iter::zip(&mut features.0, Features::NAMES) {
        *value = *values
            .get(name)
            .ok_or_else(|| format!("there is no feature {name:?}"))?;
    }
    Ok(features)
}

fn attributes(
    age: Option<Thousandths>,
    gender: Option<Gender>,
) -> Result<Option<Attributes>, String> {
    match (age, gender) {
        (Some(Thousandths(age)), Some(gender)) => Ok(Some(Attributes { age, gender })),
        (None, None) => Ok(None),
        _ => Err("only one of `age` and `gender` is present".to_owned()),
    }
}
