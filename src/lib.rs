// SPDX-License-Identifier: MPL-2.0
#![doc = include_str!("README.md")]
//! ## Structure
//! The crate [`facetrack`](::facetrack) finds and follows faces, and does not depend on GStreamer.
//! The modules here wrap it into elements.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![warn(unreachable_pub)]

mod clock;
mod drawing;
mod element;
pub mod facetrack;
pub mod facetrackblur;
pub mod facetrackoverlay;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod meta;
pub mod options;
mod orientation;
pub mod shown;
pub mod stream;
pub mod trackjsonload;
pub mod trackjsonsink;
pub mod trackudpsink;
pub mod video;
#[allow(missing_docs, reason = "the macro documents nothing")]
mod plugin {
    use gst::glib;
    use gst::prelude::*;

    use crate::facetrack::FaceTrack;
    use crate::facetrackblur::FaceTrackBlur;
    use crate::facetrackoverlay::FaceTrackOverlay;
    use crate::trackjsonload::TrackJsonLoad;
    use crate::trackjsonsink::TrackJsonSink;
    use crate::trackudpsink::TrackUdpSink;

    fn init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
        for (name, element) in [
            ("facetrack", FaceTrack::static_type()),
            ("trackjsonload", TrackJsonLoad::static_type()),
            ("facetrackoverlay", FaceTrackOverlay::static_type()),
            ("facetrackblur", FaceTrackBlur::static_type()),
            ("trackjsonsink", TrackJsonSink::static_type()),
            ("trackudpsink", TrackUdpSink::static_type()),
        ] {
            gst::Element::register(Some(plugin), name, gst::Rank::NONE, element)?;
        }
        Ok(())
    }

    gst::plugin_define!(
        facetrack,
        env!("CARGO_PKG_DESCRIPTION"),
        init,
        concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
        "MPL-2.0",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        // The text is the one of GStreamer's own plugins, because the project has no public
        // address. GStreamer refuses an empty one.
        "Unknown package origin",
        env!("BUILD_REL_DATE")
    );
}

pub use plugin::plugin_register_static;

/// Contains the Rust snippets of the documentation, which are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/metadata.md")]
pub struct MetadataPage;
