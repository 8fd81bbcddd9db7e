// SPDX-License-Identifier: MPL-2.0
//! Prints what `facetrack` measures in a video, from Rust:
//! `cargo run --example read_metadata -- video.mp4`.
//!
//! The plugin is linked in, so no plugin path is needed.

use std::env;
use std::error::Error;
use std::process::ExitCode;

use facetrack::observation::{Attributes, MorphableFit};
use facetrack::report::FrameReport;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

/// Time to wait for a frame before the bus is checked for an error.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_mseconds(100);

fn main() -> ExitCode {
    match env::args().nth(1).map(|video| run(&video)) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("Usage: read_metadata <video file>");
            ExitCode::FAILURE
        }
    }
}

fn run(video: &str) -> Result<(), Box<dyn Error>> {
    gst::init()?;
    gstfacetrack::plugin_register_static()?;
    let pipeline = gst::parse::launch(
        "filesrc name=source ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! \
         appsink name=sink sync=false",
    )?
    .downcast::<gst::Pipeline>()
    .map_err(|_| "not a pipeline")?;
    let element = |name| pipeline.by_name(name).ok_or("no such element");
    element("source")?.set_property("location", video);
    let sink = element("sink")?
        .downcast::<gst_app::AppSink>()
        .map_err(|_| "not an appsink")?;

    // Why it does not start is on the bus as well.
    let _ = pipeline.set_state(gst::State::Playing);
    let result = print_all(&pipeline, &sink);
    pipeline.set_state(gst::State::Null)?;
    result
}

/// Prints what frames carry, until there are no more.
fn print_all(pipeline: &gst::Pipeline, sink: &gst_app::AppSink) -> Result<(), Box<dyn Error>> {
    let bus = pipeline.bus().ok_or("no bus")?;
    loop {
        if let Some(sample) = sink.try_pull_sample(PATIENCE) {
            if let Some(buffer) = sample.buffer()
                && let Some(report) = FaceTrackMeta::from_buffer(buffer)
            {
                print(buffer.pts(), &report);
            }
        } else if let Some(message) = bus.pop_filtered(&[gst::MessageType::Error])
            && let gst::MessageView::Error(error) = message.view()
        {
            return Err(error.error().into());
        } else if sink.is_eos() {
            return Ok(());
        }
    }
}

fn print(pts: Option<gst::ClockTime>, report: &FrameReport) {
    let time = pts.map_or_else(|| "no time".to_owned(), |pts| format!("{pts:.3}"));
    println!("{time} {}", report.status);
    for tracked in &report.faces {
        let face = &tracked.face;
        let center = face.bbox.center();
        print!("  face {} at {:.1}, {:.1}", tracked.id, center.x, center.y);
        if !face.key_points.is_empty() {
            print!(", {} key points", face.key_points.len());
        }
        if let Some(pose) = &face.pose {
            print!(", yaw {:.1}°", pose.euler_degrees().yaw);
        }
        if let Some(open) = face.blendshapes.as_ref().and_then(|b| b.get("jawOpen")) {
            print!(", jawOpen {open:.3}");
        }
        if let Some(Attributes { age, gender }) = face.attributes {
            print!(", {}, {age:.0} years", gender);
        }
        if let Some(happiness) = face
            .morphable
            .as_ref()
            .and_then(|fit| happiness(fit.as_ref().ok()?))
        {
            print!(", happiness {happiness:.3}");
        }
        println!();
    }
}

/// Strength of the expression "happiness" of a fitted 3-D face.
fn happiness(fit: &MorphableFit) -> Option<f32> {
    let index = fit
        .expression_names
        .iter()
        .position(|name| name == "happiness")?;
    fit.expression.get(index).copied()
}
