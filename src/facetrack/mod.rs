// SPDX-License-Identifier: MPL-2.0
//! The element `facetrack`: tracks faces in video, and attaches its measurements to each frame.

use gst::glib;

mod calibration;
mod clock;
mod failure;
mod flight;
mod imp;
mod loading;
mod messages;
mod plan;
mod state;

glib::wrapper! {
    /// Tracks faces in video.
    pub struct FaceTrack(ObjectSubclass<imp::FaceTrack>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}
