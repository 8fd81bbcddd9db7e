// SPDX-License-Identifier: MPL-2.0
//! The element `facetrack`: tracks faces in video, and attaches its measurements to each frame.

use gst::glib;
use gst::prelude::*;

mod calibration;
mod clock;
mod failure;
mod imp;
mod loading;
mod messages;
mod plan;
mod state;

glib::wrapper! {
    /// Tracks faces in video.
    pub struct FaceTrack(ObjectSubclass<imp::FaceTrack>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Registers the element with `plugin`.
///
/// # Errors
/// If GStreamer refuses the registration.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "facetrack",
        gst::Rank::NONE,
        FaceTrack::static_type(),
    )
}
