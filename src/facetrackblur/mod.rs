// SPDX-License-Identifier: MPL-2.0
//! The element `facetrackblur`: makes tracked faces unrecognisable.

use gst::glib;

mod imp;
mod tags;

glib::wrapper! {
    /// Makes tracked faces unrecognisable.
    pub struct FaceTrackBlur(ObjectSubclass<imp::FaceTrackBlur>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}
