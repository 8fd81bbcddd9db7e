// SPDX-License-Identifier: MPL-2.0
//! The element `trackudpsink`: sends faces to receivers of OpenSeeFace.

use std::sync::LazyLock;

use gst::glib;

mod imp;
mod receiver;
mod sending;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| crate::element::category("trackudpsink", "Tracking UDP sink"));

glib::wrapper! {
    /// Sends the results of `facetrack` as OpenSeeFace UDP packets.
    pub struct TrackUdpSink(ObjectSubclass<imp::TrackUdpSink>)
        @extends gst_base::BaseSink, gst::Element, gst::Object;
}
