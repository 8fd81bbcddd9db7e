// SPDX-License-Identifier: MPL-2.0
//! Faces as objects of a record (track-json: tracked_objects). Struct fields are in the order of the JSON's keys.

use serde::ser::{Serialize, Serializer};

use super::detail::DetailJson;
use super::number::{Thousandths, all_finite};
use super::profile::ChannelsJson;
use super::{Export, Fields};
use crate::blendshape::{BlendshapeSource, Blendshapes};
use crate::geometry::Rect;
use crate::observation::Observation;
use crate::report::TrackedFace;
use crate::speaking::{JAW_THRESHOLD, Speaking, VisualEvidence};

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
    #[serde(flatten)]
    detail: Option<DetailJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blendshapes_source: Option<&'static str>,
}

impl<'a> DenseObject<'a> {
    pub(super) fn new(placed: &Placed<'a>, export: &'a Export) -> Self {
        let face = placed.face;
        let blendshapes = face.blendshapes.as_ref();
        let speaking = Speaking::from_blendshapes(blendshapes);
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
            detail: (export.fields != Fields::NONE).then(|| DetailJson::new(face, export.fields)),
            blendshapes_source: blendshapes.and_then(|channels| told_source(channels, export)),
        }
    }
}

/// Readers of plain records take blendshapes, and the speech told from them, for measured, so that derived ones say it.
fn told_source(channels: &Blendshapes, export: &Export) -> Option<&'static str> {
    let source = channels.source();
    let told = export.fields.contains(Fields::ORIGIN) || source == BlendshapeSource::Derived;
    told.then(|| source.name())
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
