// SPDX-License-Identifier: MPL-2.0
//! The element `trackjsonsink`: writes the tracking JSON.

use std::sync::LazyLock;

use gst::glib;
use gst::prelude::*;

mod config;
mod following;
mod imp;
mod output;
mod recording;
mod upstream;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "trackjsonsink",
        gst::DebugColorFlags::empty(),
        Some("Tracking JSON sink"),
    )
});

glib::wrapper! {
    /// Writes what `facetrack` found to a file.
    pub struct TrackJsonSink(ObjectSubclass<imp::TrackJsonSink>)
        @extends gst_base::BaseSink, gst::Element, gst::Object;
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
