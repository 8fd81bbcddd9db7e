// SPDX-License-Identifier: MPL-2.0
//! The element `facetrackoverlay`: draws facetrack's results into the frames.

use gst::glib;
use gst::prelude::*;

mod frame;
mod imp;
#[allow(missing_docs, reason = "the macro documents nothing")]
mod layers;
mod pace;

pub use layers::Layers;

glib::wrapper! {
    /// The element; its properties are [`facetrack::options::facetrackoverlay::FACETRACKOVERLAY`].
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
