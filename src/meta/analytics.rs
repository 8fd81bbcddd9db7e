// SPDX-License-Identifier: MPL-2.0
//! Describes faces with GStreamer's own analytics library, for elements and applications that do
//! not know this plugin.
//!
//! Every buffer has one `GstAnalyticsRelationMeta`, also if it has no faces: without one,
//! `objectdetectionoverlay` of GStreamer 1.26 keeps drawing the boxes of the previous frame. Each
//! face has
//!
//! - an object detection: type `face`, the box in whole pixels cut to the frame, the engine's
//!   confidence; 0 if it has none, as in DL Streamer's `add_region`, since the library cannot
//!   express a missing value;
//! - a tracking: the track's id, and the running times at which it appeared and was last measured,
//!   as in `ioutracker`;
//! - a classification, if there are blendshapes: a class for each channel, with its name and its
//!   value; negative values are 0.
//!
//! The detection relates to its tracking, as in `ioutracker`. It contains its classification, which
//! is part of it, as in DL Streamer. It does not relate to the classification, because
//! `objectdetectionoverlay` would then write the first channel at the box instead of `face`.

#[cfg(feature = "analytics-keypoints")]
mod key_points;
#[cfg(feature = "analytics-tensor")]
mod tensor;

use gst::glib;
use gst_analytics::prelude::*;
use gst_analytics::{AnalyticsODMtd, AnalyticsRelationMeta, AnalyticsTrackingMtd, RelTypes};

use crate::meta::region::{self, Canvas};
use crate::meta::track_times::TrackTimes;
use facetrack::blendshape::Blendshapes;
use facetrack::observation::Observation;
use facetrack::report::{FrameReport, TrackedFace};

/// Adds the faces of a report; `times` has one entry for each. Returns the number of pieces, and
/// the id of each face's detection. The region of interest gets the same id, with which DL Streamer
/// finds one from the other.
///
/// # Errors
/// Returns an error if the library refuses a piece.
pub(crate) fn add(
    buffer: &mut gst::BufferRef,
    report: &FrameReport,
    canvas: Canvas,
    times: &[TrackTimes],
) -> Result<(Vec<u32>, Option<u32>), glib::BoolError> {
    let before = AnalyticsRelationMeta::add(buffer).len();
    let faces = std::iter::zip(&report.faces, times);
    let numbers = faces
        .map(|(face, time)| add_face(buffer, face, canvas, *time))
        .collect::<Result<_, _>>()?;
    let after = AnalyticsRelationMeta::add(buffer).len();
    #[cfg(feature = "analytics-keypoints")]
    key_points::tag(buffer, before..after, &report.source.engine)?;
    Ok((numbers, u32::try_from(after - before).ok()))
}

/// Returns true if this is a relation meta with this many pieces that begins with a face. The
/// library cannot remove single pieces. Elements that crop the picture drop the relations, so
/// another element may have added the same number of other pieces since.
pub(crate) fn holds(meta: &gst::MetaRef<'_, gst::Meta>, pieces: u32) -> bool {
    let face = glib::Quark::from_str(region::TYPE);
    meta.downcast_ref::<AnalyticsRelationMeta>()
        .is_some_and(|relations| {
            let first = relations.iter::<AnalyticsODMtd>().next();
            let is_face = first.is_some_and(|it| it.id() == 0 && it.obj_type() == Some(face));
            relations.len() == pieces as usize && (is_face || pieces == 0)
        })
}

fn add_face(
    buffer: &mut gst::BufferRef,
    tracked: &TrackedFace,
    canvas: Canvas,
    time: TrackTimes,
) -> Result<u32, glib::BoolError> {
    let detection = add_detection(buffer, &tracked.face, canvas)?;
    let tracking = add_tracking(buffer, tracked.id, time)?;
    AnalyticsRelationMeta::add(buffer).set_relation(RelTypes::RELATE_TO, detection, tracking)?;
    if let Some(blendshapes) = &tracked.face.blendshapes {
        let classification = add_classification(buffer, blendshapes)?;
        let mut relations = AnalyticsRelationMeta::add(buffer);
        relations.set_relation(RelTypes::CONTAIN, detection, classification)?;
        relations.set_relation(RelTypes::IS_PART_OF, classification, detection)?;
    }
    #[cfg(feature = "analytics-tensor")]
    if let Some(landmarks) = &tracked.face.landmarks {
        tensor::add(buffer, detection, landmarks, canvas)?;
    }
    #[cfg(feature = "analytics-keypoints")]
    key_points::add(buffer, detection, &tracked.face, canvas)?;
    Ok(detection)
}

fn add_detection(
    buffer: &mut gst::BufferRef,
    face: &Observation,
    canvas: Canvas,
) -> Result<u32, glib::BoolError> {
    let pixels = canvas.pixels(&face.bbox);
    let [x, y, width, height] = pixels.map(|side| i32::try_from(side).unwrap_or(i32::MAX));
    let label = glib::Quark::from_str(region::TYPE);
    let confidence = face.confidence.unwrap_or(0.0);
    let mut relations = AnalyticsRelationMeta::add(buffer);
    let detection = relations.add_od_mtd(label, x, y, width, height, confidence)?;
    Ok(detection.id())
}

fn add_tracking(
    buffer: &mut gst::BufferRef,
    track: u32,
    time: TrackTimes,
) -> Result<u32, glib::BoolError> {
    let mut relations = AnalyticsRelationMeta::add(buffer);
    let first = time.first;
    let id = relations.add_tracking_mtd(u64::from(track), first)?.id();
    let mut tracking = relations
        .mtd_mut::<AnalyticsTrackingMtd>(id)
        .ok_or_else(|| glib::bool_error!("the tracking metadata of track {track} is missing"))?;
    tracking.update_last_seen(time.last)?;
    Ok(id)
}

fn add_classification(
    buffer: &mut gst::BufferRef,
    blendshapes: &Blendshapes,
) -> Result<u32, glib::BoolError> {
    // DL Streamer's reader refuses a face with a negative value.
    let (levels, quarks): (Vec<_>, Vec<_>) = blendshapes
        .iter()
        .map(|(name, value)| (value.max(0.0), glib::Quark::from_str(name)))
        .unzip();
    let mut relations = AnalyticsRelationMeta::add(buffer);
    Ok(relations.add_cls_mtd(&levels, &quarks)?.id())
}
