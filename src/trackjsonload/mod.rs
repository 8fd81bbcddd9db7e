// SPDX-License-Identifier: MPL-2.0
//! The element `trackjsonload`: re-attaches a record to its video.

use gst::glib;
use gst::prelude::*;

mod imp;
mod replaying;

glib::wrapper! {
    /// Re-attaches a record of `trackjsonsink`.
    pub struct TrackJsonLoad(ObjectSubclass<imp::TrackJsonLoad>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element with `plugin`.
///
/// # Errors
/// If GStreamer refuses the registration.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "trackjsonload",
        gst::Rank::NONE,
        TrackJsonLoad::static_type(),
    )
}
