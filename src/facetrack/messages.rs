// SPDX-License-Identifier: MPL-2.0
//! Structures of element messages and properties.

use std::time::Duration;

use gst::prelude::ToSendValue;

use facetrack::engine::EngineInfo;
use facetrack::observation::{Fields, LandmarkScheme};
use facetrack::profile::Profile;
use facetrack::report::{FrameReport, ReportSource};

/// Name of the messages about faces and frames.
const MESSAGE: &str = "facetrack";

/// Time of an event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FrameTime {
    /// Timestamp of the frame.
    pub pts: Option<gst::ClockTime>,
    /// Running time of the frame.
    pub running_time: Option<gst::ClockTime>,
}

/// `event` is `face-entered` or `face-left`.
pub(super) fn face(event: &str, id: u32, frame_time: FrameTime) -> gst::Structure {
    gst::Structure::builder(MESSAGE)
        .field("event", event)
        .field("id", id)
        .field("pts", frame_time.pts)
        .field("running-time", frame_time.running_time)
        .build()
}

/// `event` is `neutral-learned` or `neutral-kept`.
pub(super) fn neutral<'a>(
    event: &str,
    id: u32,
    rest: impl Iterator<Item = (&'a str, f32)>,
    frame_time: FrameTime,
) -> gst::Structure {
    let rest = rest.map(|(name, value)| (name, value.to_send_value()));
    let mut message = face(event, id, frame_time);
    message.set("rest", gst::Structure::from_iter("rest", rest));
    message
}

/// A frame and the ids of its faces.
pub(super) fn frame(report: &FrameReport, frame_time: FrameTime) -> gst::Structure {
    let ids = report.faces.iter().map(|face| face.id);
    gst::Structure::builder(MESSAGE)
        .field("event", "frame")
        .field("status", report.status.to_string())
        .field("faces", report.faces.len() as u32)
        .field("ids", gst::Array::new(ids))
        .field("pts", frame_time.pts)
        .field("running-time", frame_time.running_time)
        .build()
}

/// The engine is loaded.
pub(super) fn ready(source: &ReportSource) -> gst::Structure {
    let models = source.models.iter();
    let models = models.map(|model| (model.name.as_str(), model.sha256.to_send_value()));
    gst::Structure::builder("facetrack-ready")
        .field("engine", source.engine.as_str())
        .field("device", source.device.as_str())
        .field("execution-provider", source.execution_provider.as_str())
        .field("reason", source.device_reason.as_str())
        .field("load-time", source.load_time.as_secs_f64() * 1e3)
        .field("models", gst::Structure::from_iter("models", models))
        .build()
}

/// The property `stats`: a structure per stage with times in ms, the latency of the element, ms,
/// and GPU memory, MiB, if a GPU is used.
pub(super) fn stats(profile: &Profile, latency: Duration, vram: Option<u64>) -> gst::Structure {
    profile
        .summary()
        .iter()
        .fold(gst::Structure::builder("stats"), |stats, stage| {
            let figures = gst::Structure::builder(stage.stage.name())
                .field("count", stage.count)
                .field("mean", stage.mean)
                .field("p50", stage.p50)
                .field("p95", stage.p95)
                .build();
            stats.field(stage.stage.name(), figures)
        })
        .field("latency", latency.as_secs_f64() * 1e3)
        .field_if_some("vram", vram)
        .build()
}

/// The property `capabilities`.
pub(super) fn capabilities(info: &EngineInfo) -> gst::Structure {
    let name = |scheme: LandmarkScheme| scheme.to_string();
    let landmarks = info.landmarks.map_or(0, LandmarkScheme::count);
    let channels = info.blendshapes.iter().map(String::as_str);
    let near_zero = info.near_zero_blendshapes.iter();
    let source = (!info.blendshapes.is_empty()).then(|| info.blendshape_source.to_string());
    let measured = Fields::WORDS.iter();
    let measured = measured.filter(|(field, ..)| Fields::MEASURED.contains(*field));
    let capabilities = gst::Structure::builder("capabilities")
        .field("engine", info.name)
        .field_if_some("landmark-scheme", info.landmarks.map(name))
        .field("landmarks", landmarks as u32)
        .field_if_some(
            "secondary-landmark-scheme",
            info.secondary_landmarks.map(name),
        )
        .field("key-points", info.key_points as u32)
        .field("blendshapes", gst::Array::new(channels))
        .field_if_some("blendshape-source", source)
        .field("near-zero-blendshapes", gst::Array::new(near_zero))
        .field("embedding", info.embedding as u32)
        .field("temporal", info.temporal)
        .field("runtimes", gst::Array::new(info.runtimes.names()));
    measured
        .fold(capabilities, |capabilities, (field, word, _)| {
            capabilities.field(*word, info.measures.contains(*field))
        })
        .build()
}
