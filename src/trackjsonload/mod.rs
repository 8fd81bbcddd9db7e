// SPDX-License-Identifier: MPL-2.0
//! The element `trackjsonload`: re-attaches a record to its video.

use gst::glib;

mod imp;
mod replaying;

glib::wrapper! {
    /// Re-attaches a record of `trackjsonsink`.
    pub struct TrackJsonLoad(ObjectSubclass<imp::TrackJsonLoad>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}
