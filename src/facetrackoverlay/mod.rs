// SPDX-License-Identifier: MPL-2.0
//! The element `facetrackoverlay`: draws the results of `facetrack` into the frames.

use gst::glib;
use gst::prelude::*;

mod frame;
mod imp;
mod pace;

glib::wrapper! {
    /// Draws the results of `facetrack` into the frames.
    pub struct FaceTrackOverlay(ObjectSubclass<imp::FaceTrackOverlay>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element with `plugin`.
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
