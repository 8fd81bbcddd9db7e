// SPDX-License-Identifier: MPL-2.0
//! The element `facetrack`: finds and follows faces in video, and attaches what it knows of them to each frame.

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
    /// The element.
    pub struct FaceTrack(ObjectSubclass<imp::FaceTrack>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Adds the element to `plugin`.
///
/// # Errors
/// When GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "facetrack",
        gst::Rank::NONE,
        FaceTrack::static_type(),
    )
}
