// SPDX-License-Identifier: MPL-2.0
//! The element `facetrackoverlay`: draws the results of `facetrack` into the frames.

use gst::glib;

mod imp;
mod pace;

glib::wrapper! {
    /// Draws the results of `facetrack` into the frames.
    pub struct FaceTrackOverlay(ObjectSubclass<imp::FaceTrackOverlay>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}
