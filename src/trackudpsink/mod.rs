// SPDX-License-Identifier: MPL-2.0
//! The element `trackudpsink`: sends faces to OpenSeeFace's receivers.

use std::sync::LazyLock;

use gst::glib;
use gst::prelude::*;

mod imp;
mod receiver;
mod sending;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "trackudpsink",
        gst::DebugColorFlags::empty(),
        Some("Tracking UDP sink"),
    )
});

glib::wrapper! {
    /// Sends what `facetrack` found as OpenSeeFace's UDP packets.
    pub struct TrackUdpSink(ObjectSubclass<imp::TrackUdpSink>)
        @extends gst_base::BaseSink, gst::Element, gst::Object;
}

/// Registers the element with `plugin`.
///
/// # Errors
/// When GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "trackudpsink",
        gst::Rank::NONE,
        TrackUdpSink::static_type(),
    )
}
