// SPDX-License-Identifier: MPL-2.0
//! The element `trackudpsink`: sends faces to programs that move avatars.

use std::sync::LazyLock;

use gst::glib;

mod imp;
mod listener;
mod network;
mod receiver;
mod sending;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| crate::element::category("trackudpsink", "Tracking UDP sink"));

glib::wrapper! {
    /// Sends the results of `facetrack` to programs that move avatars, over UDP.
    pub struct TrackUdpSink(ObjectSubclass<imp::TrackUdpSink>)
        @extends gst_base::BaseSink, gst::Element, gst::Object;
}
