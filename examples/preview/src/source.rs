// SPDX-License-Identifier: MPL-2.0
//! Sources of video.

use std::error::Error;
use std::fmt;

use facetrack_assets::locate::SearchPaths;
use gst::prelude::*;

use crate::pipelines::{element, launch};

/// Caps requested from a camera, the best first: compressed if only that is fast enough, and
/// otherwise any format.
const WANTED: &str = "image/jpeg,width=1280,height=720,framerate=30/1;video/x-raw,width=1280,height=720,framerate=30/1;\
                      video/x-raw,width=640,height=480,framerate=30/1;video/x-raw;image/jpeg";

/// Maximum time to wait for late packets, ms. It is short, because it adds to the latency.
const JITTER: u32 = 100;

/// A source of video.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A discovered camera.
    Camera(gst::Device),
    /// A camera with a path.
    V4l2(String),
    /// PipeWire's default camera, or another PipeWire node.
    PipeWire(Option<String>),
    Rtsp(String),
    Uri(String),
    File(String),
}

impl Source {
    /// The source named by the user.
    pub fn named(text: &str) -> Self {
        let owned = text.to_owned();
        match text.split_once(':') {
            _ if text.starts_with("/dev/video") => Self::V4l2(owned),
            _ if text == "pipewire" => Self::PipeWire(None),
            Some(("pipewire", target)) => Self::PipeWire(Some(target.to_owned())),
            Some(("rtsp" | "rtsps" | "rtspt" | "rtspu", _)) => Self::Rtsp(owned),
            _ if text.contains("://") => Self::Uri(owned),
            _ => Self::File(owned),
        }
    }

    /// The first camera, or the sample clip.
    ///
    /// # Errors
    /// Returns an error if neither exists.
    pub fn find() -> Result<Self, Box<dyn Error>> {
        if let Some(camera) = first_camera() {
            return Ok(Self::Camera(camera));
        }
        let clip = SearchPaths::from_vars(std::env::var_os)
            .data_dir
            .map(|folder| folder.join("samples/single_face.mp4"));
        let clip = clip.filter(|clip| clip.is_file()).ok_or(
            "there is no camera, and no sample clip: name a video, or fetch the clip with `make setup`",
        )?;
        Ok(Self::File(clip.to_string_lossy().into_owned()))
    }

    /// Returns true if users see themselves and expect a mirror image.
    pub fn is_mirror(&self) -> bool {
        matches!(self, Self::Camera(_) | Self::V4l2(_) | Self::PipeWire(_))
    }

    /// A pipeline from this source through `rest`.
    ///
    /// # Errors
    /// Returns an error if an element is missing, or the camera was removed.
    pub fn pipeline(&self, rest: &str) -> Result<gst::Pipeline, Box<dyn Error>> {
        let camera = format!("capsfilter name=wanted caps=\"{WANTED}\" ! decodebin");
        let (source, property) = match self {
            Self::Camera(_) => (camera, None),
            Self::V4l2(path) => (
                format!("v4l2src name=source ! {camera}"),
                Some(("device", path)),
            ),
            Self::PipeWire(target) => (
                format!("pipewiresrc name=source ! {camera}"),
                target.as_ref().map(|target| ("target-object", target)),
            ),
            Self::Rtsp(uri) => (
                format!(
                    "rtspsrc name=source latency={JITTER} ! application/x-rtp,media=video ! decodebin"
                ),
                Some(("location", uri)),
            ),
            Self::Uri(uri) => ("uridecodebin name=source".to_owned(), Some(("uri", uri))),
            Self::File(path) => (
                "filesrc name=source ! decodebin".to_owned(),
                Some(("location", path)),
            ),
        };
        let pipeline = launch(&format!("{source} ! {rest}"))?;
        if let Some((name, value)) = property {
            element(&pipeline, "source").set_property(name, value);
        }
        if let Self::Camera(device) = self {
            let camera = device.create_element(Some("source"))?;
            pipeline.add(&camera)?;
            camera.link(&element(&pipeline, "wanted"))?;
        }
        Ok(pipeline)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Camera(device) => write!(f, "camera {}", device.display_name()),
            Self::V4l2(path) => write!(f, "camera {path}"),
            Self::PipeWire(None) => write!(f, "PipeWire's camera"),
            Self::PipeWire(Some(target)) => write!(f, "{target} of PipeWire"),
            Self::Rtsp(name) | Self::Uri(name) | Self::File(name) => write!(f, "{name}"),
        }
    }
}

fn first_camera() -> Option<gst::Device> {
    let monitor = gst::DeviceMonitor::new();
    monitor.add_filter(Some("Video/Source"), None)?;
    monitor.start().ok()?;
    let camera = monitor.devices().into_iter().next();
    monitor.stop();
    camera
}
