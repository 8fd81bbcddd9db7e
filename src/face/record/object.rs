// SPDX-License-Identifier: MPL-2.0
//! Faces as objects of a record (track-json: tracked_objects). Struct fields are in the order of the JSON's keys.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::profile::ChannelsJson;
use super::{Detail, Export};
use crate::face::geometry::{Point, Rect};
use crate::face::observation::{HeadPose, Landmark, Landmarks, Observation};
use crate::face::report::TrackedFace;
use crate::face::speaking::{JAW_THRESHOLD, Speaking, VisualEvidence};

/// What `source` says for every engine: readers test for this literal.
const SOURCE: &str = "face_landmarker";

/// What `label` says.
const LABEL: &str = "face";

/// A face with its position in whole pixels.
pub(super) struct Placed<'a> {
    id: u32,
    face: &'a Observation,
    centroid: (i32, i32),
    x: i32,
    y: i32,
    width: i32,
    height: i32,
}

/// Faces from left to right; those without a finite position are left out.
pub(super) fn placed(faces: &[TrackedFace]) -> Vec<Placed<'_>> {
    let mut placed: Vec<_> = faces.iter().filter_map(Placed::new).collect();
    placed.sort_by_key(|face| face.centroid.0);
    placed
}

impl<'a> Placed<'a> {
    fn new(face: &'a TrackedFace) -> Option<Self> {
        let TrackedFace { id, face } = face;
        let centroid = face.centroid();
        let Rect {
            x,
            y,
            width,
            height,
        } = face.bbox;
        all_finite(&[centroid.x, centroid.y, x, y, width, height]).then_some(Self {
            id: *id,
            face,
            // Truncated toward zero, as the readers' own files are.
            centroid: (centroid.x as i32, centroid.y as i32),
            x: x as i32,
            y: y as i32,
            width: width as i32,
            height: height as i32,
        })
    }

    fn confidence(&self) -> Thousandths {
        let known = self.face.confidence.filter(|score| score.is_finite());
        Thousandths(known.unwrap_or(0.0))
    }
}

/// An object of a dense frame.
#[derive(serde::Serialize)]
pub(super) struct DenseObject<'a> {
    id: ObjectId,
    centroid_x: i32,
    centroid_y: i32,
    bbox_xmin: i32,
    bbox_xmax: i32,
    source: &'static str,
    label: &'static str,
    confidence: Thousandths,
    blendshapes: Option<ChannelsJson<'a>>,
    bbox_ymin: i32,
    bbox_ymax: i32,
    bbox_width: i32,
    bbox_height: i32,
    is_speaking: bool,
    speaking_confidence: f32,
    speaking_method: &'static str,
    speaking_sources: SpeakingSources,
    #[serde(skip_serializing_if = "Option::is_none")]
    landmarks: Option<LandmarksJson<'a>>,
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    bbox: Option<[Thousandths; 4]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_points: Option<Vec<[Thousandths; 2]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pose: Option<PoseJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
}

impl<'a> DenseObject<'a> {
    pub(super) fn new(placed: &Placed<'a>, export: &'a Export) -> Self {
        let face = placed.face;
        let blendshapes = face.blendshapes.as_ref();
        let speaking = Speaking::from_blendshapes(blendshapes);
        let verbose = (export.detail == Detail::Verbose).then_some(face);
        Self {
            id: ObjectId(placed.id),
            centroid_x: placed.centroid.0,
            centroid_y: placed.centroid.1,
            bbox_xmin: placed.x,
            bbox_xmax: placed.x.saturating_add(placed.width),
            source: SOURCE,
            label: LABEL,
            confidence: placed.confidence(),
            blendshapes: blendshapes.and_then(|channels| export.profile.apply(channels)),
            bbox_ymin: placed.y,
            bbox_ymax: placed.y.saturating_add(placed.height),
            bbox_width: placed.width,
            bbox_height: placed.height,
            is_speaking: speaking.is_speaking,
            speaking_confidence: speaking.confidence,
            speaking_method: speaking.method.name(),
            speaking_sources: SpeakingSources {
                visual: speaking.visual.map(VisualJson::from),
            },
            landmarks: verbose.and_then(|face| LandmarksJson::new(face.landmarks.as_ref()?)),
            bbox: verbose.map(|face| rect_json(&face.bbox)),
            key_points: verbose.and_then(|face| key_points_json(&face.key_points)),
            pose: verbose.and_then(|face| PoseJson::new(face.pose.as_ref()?)),
            origin: verbose.map(|face| face.origin.name()),
        }
    }
}

/// An object of a reduced frame.
#[derive(serde::Serialize)]
pub(super) struct ReducedObject {
    id: ObjectId,
    centroid_x: i32,
    source: &'static str,
    label: &'static str,
    confidence: Thousandths,
    active_speakers: [u8; 0],
    bbox_width: i32,
    bbox_height: i32,
}

impl From<&Placed<'_>> for ReducedObject {
    fn from(placed: &Placed<'_>) -> Self {
        Self {
            id: ObjectId(placed.id),
            centroid_x: placed.centroid.0,
            source: SOURCE,
            label: LABEL,
            confidence: placed.confidence(),
            active_speakers: [],
            bbox_width: placed.width,
            bbox_height: placed.height,
        }
    }
}

/// A track's id as the readers spell it.
struct ObjectId(u32);

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("obj_{}", self.0))
    }
}

/// A number with three decimals.
#[derive(Clone, Copy)]
struct Thousandths(f32);

impl Serialize for Thousandths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = (f64::from(self.0) * 1000.0).round() / 1000.0;
        // Adding 0 turns −0 into 0.
        serializer.serialize_f64(rounded + 0.0)
    }
}

/// Evidence by its kind.
#[derive(serde::Serialize)]
struct SpeakingSources {
    #[serde(skip_serializing_if = "Option::is_none")]
    visual: Option<VisualJson>,
}

#[derive(serde::Serialize)]
struct VisualJson {
    jaw_open: f32,
    jaw_threshold: f32,
    mouth_activity: f32,
    confidence: f32,
}

impl From<VisualEvidence> for VisualJson {
    fn from(visual: VisualEvidence) -> Self {
        Self {
            jaw_open: visual.jaw_open,
            jaw_threshold: JAW_THRESHOLD,
            mouth_activity: visual.mouth_activity,
            confidence: visual.confidence,
        }
    }
}

/// `[[x,y,z]…]`, px.
struct LandmarksJson<'a>(&'a [Landmark]);

impl<'a> LandmarksJson<'a> {
    /// `None` where a point has no finite position.
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

/// `matrix` as rows, and angles in degrees.
struct PoseJson(HeadPose);

impl PoseJson {
    fn new(pose: &HeadPose) -> Option<Self> {
        all_finite(pose.matrix.as_flattened()).then_some(Self(*pose))
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

fn rect_json(rect: &Rect) -> [Thousandths; 4] {
    [rect.x, rect.y, rect.width, rect.height].map(Thousandths)
}

/// `[[x,y]…]`, px; `None` without points, or where one has no finite position.
fn key_points_json(points: &[Point]) -> Option<Vec<[Thousandths; 2]>> {
    let known = !points.is_empty() && points.iter().all(|p| all_finite(&[p.x, p.y]));
    known.then(|| points.iter().map(|p| [p.x, p.y].map(Thousandths)).collect())
}

fn all_finite(values: &[f32]) -> bool {
    values.iter().all(|value| value.is_finite())
}
