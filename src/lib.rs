// SPDX-License-Identifier: MPL-2.0
//! GStreamer elements that track faces in video.
//!
//! The crate has two halves. [`face`] is the domain: images, networks, engines, tracking and the JSON record, free of
//! GStreamer. The other modules, present with the feature `gst`, wrap it into elements.

pub mod face;
mod lock;

#[cfg(feature = "analytics")]
mod analytics;
#[cfg(feature = "gst")]
mod element;
#[cfg(feature = "gst")]
pub mod facetrack;
#[cfg(feature = "gst")]
pub mod facetrackoverlay;
#[cfg(feature = "gst")]
pub mod meta;
#[cfg(feature = "gst")]
mod orientation;
#[cfg(feature = "gst")]
mod properties;
#[cfg(feature = "gst")]
mod stream;
#[cfg(feature = "gst")]
pub mod trackjsonload;
#[cfg(feature = "gst")]
pub mod trackjsonsink;
#[cfg(feature = "gst")]
pub mod trackudpsink;
#[cfg(feature = "gst")]
pub mod video;
#[cfg(feature = "gst")]
#[allow(missing_docs, reason = "the macro documents nothing")]
mod plugin {
    use gst::glib;

    fn init(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
        crate::facetrack::register(plugin)?;
        crate::trackjsonload::register(plugin)?;
        crate::facetrackoverlay::register(plugin)?;
        crate::trackjsonsink::register(plugin)?;
        crate::trackudpsink::register(plugin)
    }

    gst::plugin_define!(
        facetrack,
        env!("CARGO_PKG_DESCRIPTION"),
        init,
        concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
        "MPL-2.0",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_NAME"),
        // GStreamer's own words for it, until there is a public address; it refuses an empty one.
        "Unknown package origin",
        env!("BUILD_REL_DATE")
    );
}

#[cfg(feature = "gst")]
pub use plugin::plugin_register_static;

/// The README's Rust compiles.
#[cfg(all(doctest, feature = "gst"))]
#[doc = include_str!("../README.md")]
pub struct Readme;
