// SPDX-License-Identifier: MPL-2.0
//! The element `trackjsonsink`: writes the results of `facetrack` as JSON.

use std::sync::LazyLock;

use gst::glib;

mod config;
mod drops;
mod error;
mod following;
mod imp;
mod output;
mod partial;
mod pipe;
mod recording;
mod upstream;

/// Name of a custom event (`GST_EVENT_CUSTOM_DOWNSTREAM_OOB`) that adds its field `count` (uint64)
/// to the decoding errors of the record: errors that an application knows and that are not marked
/// in the stream.
pub const DECODE_ERRORS: &str = "facetrack-decode-errors";

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| crate::element::category("trackjsonsink", "Tracking JSON sink"));

glib::wrapper! {
    /// Writes the results of `facetrack` as JSON.
    pub struct TrackJsonSink(ObjectSubclass<imp::TrackJsonSink>)
        @extends gst_base::BaseSink, gst::Element, gst::Object;
}

impl TrackJsonSink {
    /// The options that shape the record, by name: as set, from the environment, or the default.
    #[must_use]
    pub fn effective_options(&self) -> serde_json::Map<String, serde_json::Value> {
        gst::subclass::prelude::ObjectSubclassIsExt::imp(self).effective_options()
    }

    /// Sets the stream time at which the video begins, ns, if only a part of it is recorded. Call it
    /// before the first frame comes.
    pub fn begin_video_at(&self, start: u64) {
        gst::subclass::prelude::ObjectSubclassIsExt::imp(self).begin_video_at(start);
    }

    /// Notes that no more of the video is expected. Call it before the end of a part of the video
    /// arrives.
    pub fn end_early(&self) {
        gst::subclass::prelude::ObjectSubclassIsExt::imp(self).end_early();
    }

    /// Returns true if a frame is recorded at this moment.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        gst::subclass::prelude::ObjectSubclassIsExt::imp(self).is_recording()
    }
}
