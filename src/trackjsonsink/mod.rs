// SPDX-License-Identifier: MPL-2.0
//! The element `trackjsonsink`: writes the tracking JSON.

use gst::glib;
use gst::prelude::*;

mod config;
mod imp;
mod output;
mod recording;

glib::wrapper! {
    /// Writes what `facetrack` found to a file.
    pub struct TrackJsonSink(ObjectSubclass<imp::TrackJsonSink>)
        @extends gst_base::BaseSink, gst::Element, gst::Object;
}

/// Form of the record; the words of [`crate::face::options::trackjsonsink::Format`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstTrackJsonSinkFormat")]
pub enum TrackJsonSinkFormat {
    /// One JSON object.
    #[default]
    #[enum_value(
        name = "Dense: one JSON object, all of every frame, a frame a line",
        nick = "dense"
    )]
    Dense,
    /// Lines.
    #[enum_value(
        name = "Jsonl: a JSON object a line: header, frames, trailer; flushed per line",
        nick = "jsonl"
    )]
    Jsonl,
    /// One small JSON object.
    #[enum_value(
        name = "Reduced: one JSON object with ids, positions and sizes alone",
        nick = "reduced"
    )]
    Reduced,
}

/// Registers the element with `plugin`.
///
/// # Errors
/// When GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "trackjsonsink",
        gst::Rank::NONE,
        TrackJsonSink::static_type(),
    )
}
