// SPDX-License-Identifier: MPL-2.0
#![doc = include_str!("../README.md")]
//! ## Conventions
//! Times and search paths are arguments, and the process environment is not read. The only files
//! are models, records and the libraries that this crate loads.
//!
//! Coordinate spaces are named: `image` (pixels of the original frame, origin at the top-left
//! corner of the top-left pixel, x right, y down), `roi` (a rotated rectangle of the image,
//! normalised to 0…1), `tensor` (pixels of a network's input), `camera` (right-handed, y up,
//! looking along −z). A transform is named after its result and its input: `image_from_roi`.

#![cfg_attr(feature = "fuzzing", allow(missing_docs))]
// Some code is only used if several engines are enabled.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(feature = "full", warn(unreachable_pub))]

pub mod analyzer;
pub mod blendshape;
pub mod cuts;
pub mod device;
pub mod engine;
pub mod findings;
mod front;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod gain;
pub mod geometry;
pub mod image;
#[doc(hidden)]
pub mod instructions;
pub mod memory;
pub mod model;
pub mod morphable;
#[doc(hidden)]
pub mod motion;
pub mod neutral;
#[doc(hidden)]
pub mod nms;
pub mod observation;
#[cfg(feature = "overlay")]
pub mod overlay;
#[cfg(feature = "packet")]
pub mod packet;
mod parallel;
#[doc(hidden)]
pub mod printable;
pub mod profile;
pub mod record;
#[cfg(feature = "overlay")]
pub mod redaction;
pub mod replay;
pub mod report;
#[doc(hidden)]
pub mod sample;
#[doc(hidden)]
pub mod schedule;
pub mod selection;
pub mod smoothing;
pub mod speaking;
pub mod tracker;
mod words;
pub mod workers;

pub use analyzer::Analyzer;
pub use engine::{EngineConfig, EngineError, EngineKind, RunningMode};
pub use facetrack_assets::locate::SearchPaths;
pub use front::{EngineSource, Tracker, TrackerBuilder};
pub use image::ImageView;
pub use observation::Observation;
pub use report::{FrameReport, TrackedFace};
