// SPDX-License-Identifier: MPL-2.0
//! Sources of video.

use std::error::Error;
use std::fmt;

use facetrack_assets::locate::SearchPaths;
use gst::prelude::*;
use gstfacetrack::shown::without_password;

use crate::pipelines::{bin, element};

/// Caps requested from a camera, the best first: compressed if only that is fast enough, and
/// otherwise any format.
const WANTED: &str = "image/jpeg,width=1280,height=720,framerate=30/1;video/x-raw,width=1280,height=720,framerate=30/1;\
                      video/x-raw,width=640,height=480,framerate=30/1;video/x-raw;image/jpeg";

/// Maximum time to wait for late packets, ms. It is short, because it adds to the latency.
const JITTER: u32 = 100;

/// Time after which a network camera that does not answer counts as lost, µs, as rtspsrc has it for
/// UDP. Its 20 s for TCP would delay the next try.
const TIMEOUT: u32 = 5_000_000;

/// The last element of a source.
const LAST: &str = "videoflip name=upright video-direction=auto";

/// A source of video.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The first discovered camera with this name. Its device is another one after the camera was
    /// disconnected.
    Camera(String),
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
        if let Some(camera) = cameras().first() {
            return Ok(Self::Camera(camera.display_name().into()));
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

    /// Elements from this source to its decoded video, which is rotated as its tag says. They have one
    /// source pad.
    ///
    /// # Errors
    /// Returns an error if an element is missing, or the camera was removed.
    pub fn elements(&self) -> Result<gst::Bin, Box<dyn Error>> {
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
                    "rtspsrc name=source latency={JITTER} tcp-timeout={TIMEOUT} ! application/x-rtp,media=video ! decodebin"
                ),
                Some(("location", uri)),
            ),
            Self::Uri(uri) => ("uridecodebin name=source".to_owned(), Some(("uri", uri))),
            Self::File(path) => (
                "filesrc name=source ! decodebin".to_owned(),
                Some(("location", path)),
            ),
        };
        let elements = bin(&format!("{source} ! videoconvert ! {LAST}"))?;
        elements.connect_deep_element_added(|_, _, added| {
            // The demuxer of a camera with pictures over HTTP waits seconds for further streams.
            if added.has_property("single-stream") {
                added.set_property("single-stream", true);
            }
        });
        if let Some((name, value)) = property {
            element(&elements, "source").set_property(name, value);
        }
        if let Self::Camera(name) = self {
            let device = cameras().into_iter().find(|it| it.display_name() == *name);
            let device = device.ok_or_else(|| format!("{self} is not connected"))?;
            let camera = device.create_element(Some("source"))?;
            elements.add(&camera)?;
            camera.link(&element(&elements, "wanted"))?;
        }
        let pad = element(&elements, "upright").static_pad("src");
        let pad = gst::GhostPad::with_target(&pad.ok_or("no pad")?)?;
        elements.add_pad(&pad)?;
        Ok(elements)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Camera(name) | Self::V4l2(name) => write!(f, "camera {name}"),
            Self::PipeWire(None) => write!(f, "PipeWire's camera"),
            Self::PipeWire(Some(target)) => write!(f, "{target} of PipeWire"),
            Self::Rtsp(uri) | Self::Uri(uri) => write!(f, "{}", without_password(uri)),
            Self::File(name) => write!(f, "{name}"),
        }
    }
}

fn cameras() -> Vec<gst::Device> {
    let monitor = gst::DeviceMonitor::new();
    monitor.add_filter(Some("Video/Source"), None);
    if monitor.start().is_err() {
        return Vec::new();
    }
    let cameras = monitor.devices().into_iter().collect();
    monitor.stop();
    cameras
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name is in the title of the window.
    #[test]
    fn a_password_is_not_shown() {
        for (source, shown) in [
            ("rtsp://me:secret@cam/live", "rtsp://me@cam/live"),
            ("/dev/video0", "camera /dev/video0"),
            ("my clip.mp4", "my clip.mp4"),
        ] {
            assert_eq!(Source::named(source).to_string(), shown);
        }
    }
}
