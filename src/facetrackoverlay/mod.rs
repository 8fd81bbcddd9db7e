// SPDX-License-Identifier: MPL-2.0
//! The element `facetrackoverlay`: draws facetrack's results into the frames.

use gst::glib;
use gst::prelude::*;

mod frame;
mod imp;
mod pace;

glib::wrapper! {
    /// The element.
    pub struct FaceTrackOverlay(ObjectSubclass<imp::FaceTrackOverlay>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Adds the element to `plugin`.
///
/// # Errors
/// If GStreamer refuses the registration.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "facetrackoverlay",
        gst::Rank::NONE,
        FaceTrackOverlay::static_type(),
    )
}
