// SPDX-License-Identifier: MPL-2.0
//! The element `trackjsonload`: attaches what a tracking JSON says to the frames that it was recorded of.

use gst::glib;
use gst::prelude::*;

mod imp;
mod replaying;

glib::wrapper! {
    /// Attaches what `trackjsonsink` wrote.
    pub struct TrackJsonLoad(ObjectSubclass<imp::TrackJsonLoad>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element with `plugin`.
///
/// # Errors
/// When GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "trackjsonload",
        gst::Rank::NONE,
        TrackJsonLoad::static_type(),
    )
}
