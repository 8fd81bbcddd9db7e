// SPDX-License-Identifier: MPL-2.0
//! Each element, its properties and its metadata.

#[cfg(feature = "analytics")]
mod analytics;
#[cfg(feature = "analytics-keypoints")]
mod analytics_points;
#[cfg(feature = "analytics-tensor")]
mod analytics_tensor;
mod calibration;
#[path = "../common/mod.rs"]
mod common;
mod facetrack_device;
mod facetrack_element;
mod facetrack_engines;
mod facetrack_eos;
mod facetrack_insightface;
mod facetrack_options;
mod facetrack_tools;
mod facetrackblur;
mod facetrackoverlay;
mod faults;
mod geometry;
mod inspect;
mod meta;
mod misuse;
mod neutral;
mod paths;
mod record_files;
mod regions;
mod schema;
mod sockets;
mod trackjsonload;
mod trackjsonsink;
mod trackudpsink;
mod trackudpsink_protocols;
mod trackudpsink_receiver;
mod video;
mod visible_faces;
mod workers;
