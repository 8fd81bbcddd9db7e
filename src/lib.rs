// SPDX-License-Identifier: MPL-2.0
//! GStreamer elements that track faces in video.
//!
//! The crate has two halves. [`face`] is the domain: images, networks, engines, tracking and the JSON record, free of
//! GStreamer. The other modules, present with the feature `gst`, wrap it into elements.

pub mod face;

#[cfg(feature = "gst")]
pub mod meta;
#[cfg(feature = "gst")]
mod properties;
#[cfg(feature = "gst")]
pub mod trackjsonsink;
