// SPDX-License-Identifier: MPL-2.0
//! The points of faces as groups, and tags that say which engine an entry is from.

use std::ops::Range;

use gst::glib;
use gst_analytics::prelude::*;
use gst_analytics::{
    AnalyticsAnyMtd, AnalyticsGroupMtd, AnalyticsKeypointDimensions, AnalyticsRelationMeta,
    RelTypes,
};

use crate::meta::region::Canvas;
use facetrack::geometry::Point;
use facetrack::observation::Observation;

/// Largest number of points in a group, as in iBUG's scheme. Every point is an entry, and the
/// library has a byte for each pair of entries. Each copy of a buffer copies these bytes.
const MAX_POINTS: usize = 68;

/// Adds a group for the key points and one for the landmarks, and relates both to the detection.
///
/// # Errors
/// Returns an error if the library refuses a group.
pub(super) fn add(
    buffer: &mut gst::BufferRef,
    detection: u32,
    face: &Observation,
    canvas: Canvas,
) -> Result<(), glib::BoolError> {
    add_group(buffer, detection, &face.key_points, &[], canvas)?;
    let Some(landmarks) = &face.landmarks else {
        return Ok(());
    };
    let points: Vec<_> = landmarks
        .points
        .iter()
        .map(|p| Point::new(p.x, p.y))
        .collect();
    add_group(buffer, detection, &points, &landmarks.confidences, canvas)
}

fn add_group(
    buffer: &mut gst::BufferRef,
    detection: u32,
    points: &[Point],
    confidences: &[f32],
    canvas: Canvas,
) -> Result<(), glib::BoolError> {
    if points.is_empty() || points.len() > MAX_POINTS {
        return Ok(());
    }
    // The whole pixel that a point is in.
    let positions: Vec<_> = points
        .iter()
        .map(|p| canvas.point(p.x, p.y))
        .flat_map(|p| [p.x.floor() as i32, p.y.floor() as i32])
        .collect();
    let mut relations = AnalyticsRelationMeta::add(buffer);
    let group = relations.add_keypoints_group(
        &format!("face-{}-kp", points.len()),
        AnalyticsKeypointDimensions::_2d,
        &positions,
        (!confidences.is_empty()).then_some(confidences),
        None,
        &[],
    )?;
    let group = group.id();
    let (to, from) = (RelTypes::CONTAIN, RelTypes::IS_PART_OF);
    relations.set_relation(to | RelTypes::RELATE_TO, detection, group)?;
    relations.set_relation(from | RelTypes::RELATE_TO, group, detection)
}

/// Gives these entries the name of the engine as a tag, except groups, which have one.
///
/// # Errors
/// Returns an error if the library refuses a tag.
pub(super) fn tag(
    buffer: &mut gst::BufferRef,
    entries: Range<usize>,
    engine: &str,
) -> Result<(), glib::BoolError> {
    for id in entries {
        let mut relations = AnalyticsRelationMeta::add(buffer);
        if relations
            .as_ref()
            .mtd::<AnalyticsGroupMtd>(id as u32)
            .is_some()
        {
            continue;
        }
        let entry = relations.mtd_mut::<AnalyticsAnyMtd>(id as u32);
        let mut entry = entry.ok_or_else(|| glib::bool_error!("the entry {id} is missing"))?;
        entry.set_semantic_tag(engine)?;
    }
    Ok(())
}
