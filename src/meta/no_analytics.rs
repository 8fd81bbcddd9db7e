// SPDX-License-Identifier: MPL-2.0
//! Replaces `analytics` without the feature of that name, and does nothing.

use gst::glib;

use super::region::Canvas;
use super::track_times::TrackTimes;
use facetrack::report::FrameReport;

/// Adds nothing. The number of each face's region of interest is its track's.
pub(super) fn add(
    _: &mut gst::BufferRef,
    report: &FrameReport,
    _: Canvas,
    _: &[TrackTimes],
) -> Result<(Vec<u32>, Option<u32>), glib::BoolError> {
    Ok((report.faces.iter().map(|face| face.id).collect(), None))
}

/// Returns true if this is a relation meta that holds this many pieces.
pub(super) fn holds(_: &gst::MetaRef<'_, gst::Meta>, _: u32) -> bool {
    false
}
