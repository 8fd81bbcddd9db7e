// SPDX-License-Identifier: MPL-2.0
//! The element `facetrack`: tracks faces in video, and attaches its measurements to each frame.

use gst::glib;

mod failure;
mod gpu_memory;
mod imp;
mod in_flight;
mod loading;
mod messages;
mod plan;
mod state;
mod state_file;

glib::wrapper! {
    /// Tracks faces in video.
    pub struct FaceTrack(ObjectSubclass<imp::FaceTrack>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

impl FaceTrack {
    /// The options that results depend on, by name: as set, from the environment, or the default.
    /// Empty before READY.
    #[must_use]
    pub fn effective_options(&self) -> serde_json::Map<String, serde_json::Value> {
        gst::subclass::prelude::ObjectSubclassIsExt::imp(self).effective_options()
    }

    /// Returns true if a frame is analysed at this time.
    #[must_use]
    pub fn is_analyzing(&self) -> bool {
        gst::subclass::prelude::ObjectSubclassIsExt::imp(self).is_analyzing()
    }
}
