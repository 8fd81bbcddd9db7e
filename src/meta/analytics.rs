// SPDX-License-Identifier: MPL-2.0
//! Replaces `crate::analytics` without the feature of that name, and does nothing.

use gst::glib;

use super::region::Canvas;
use super::sightings::Sighting;
use facetrack::report::FrameReport;

/// The metadata that was added to a buffer.
pub(super) struct Added {
    /// A number for each face's region of interest: its track's.
    pub(super) numbers: Vec<u32>,
    /// How many pieces there are.
    pub(super) pieces: Option<u32>,
}

/// Adds nothing.
pub(super) fn add(
    _: &mut gst::BufferRef,
    report: &FrameReport,
    _: Canvas,
    _: &[Sighting],
) -> Result<Added, glib::BoolError> {
    Ok(Added {
        numbers: report.faces.iter().map(|face| face.id).collect(),
        pieces: None,
    })
}

/// Whether this is a relation meta that holds this many pieces.
pub(super) fn holds(_: &gst::MetaRef<'_, gst::Meta>, _: u32) -> bool {
    false
}
