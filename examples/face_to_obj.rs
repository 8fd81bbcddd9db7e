// SPDX-License-Identifier: MPL-2.0
//! Writes the 3-D face in one frame as a Wavefront OBJ file: `cargo run --example face_to_obj --
//! portrait.jpg face.obj`, or `video.mp4 face.obj 25` for a frame of a video, counted from 1. A
//! later frame has a better shape, because all frames before it contribute.
//!
//! Coordinates are in millimetres in camera space: x to the right and y up from the model's origin,
//! z towards the viewer from the mean depth of the landmarks.

use std::env;
use std::error::Error;
use std::fs;
use std::process::ExitCode;

use facetrack::morphable::{self, obj};
use facetrack::observation::{Landmark, MorphableFit};
use facetrack_assets::locate::SearchPaths;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

/// Time to wait for a frame before the bus is checked for an error.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_mseconds(100);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match &arguments[..] {
        [video, output] => run(video, output, 1),
        [video, output, frame] => match frame.parse() {
            Ok(frame @ 1..) => run(video, output, frame),
            _ => Err(format!("{frame} is no frame: they are counted from 1").into()),
        },
        _ => Err("Usage: face_to_obj <video or picture> <OBJ file> [frame]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(video: &str, output: &str, frame: usize) -> Result<(), Box<dyn Error>> {
    let fit = fit_in(video, frame)?;
    let mesh = fit.mesh.as_deref().ok_or("the face has no mesh")?;
    let vertices: Vec<[f32; 3]> = mesh
        .iter()
        .map(|vertex| millimetres(vertex, &fit))
        .collect();
    let (model, _) = morphable::load(None, &SearchPaths::from_vars(env::var_os))?;
    let mut text = Vec::new();
    obj::write(&mut text, &vertices, model.shape())?;
    fs::write(output, text)?;
    println!("{output}: {} vertices", vertices.len());
    Ok(())
}

/// The picture's y is down, and its z away from the viewer.
fn millimetres(vertex: &Landmark, fit: &MorphableFit) -> [f32; 3] {
    let Landmark { x, y, z } = *vertex;
    [x - fit.origin.x, fit.origin.y - y, -z].map(|pixels| pixels / fit.scale)
}

/// The fit of the first face in a frame, counted from 1.
fn fit_in(video: &str, frame: usize) -> Result<MorphableFit, Box<dyn Error>> {
    gst::init()?;
    gstfacetrack::plugin_register_static()?;
    let pipeline = gst::parse::launch(
        "filesrc name=source ! decodebin ! videoconvert ! videoflip video-direction=auto ! \
         facetrack engine=eos mesh=true ! appsink name=sink sync=false",
    )?
    .downcast::<gst::Pipeline>()
    .map_err(|_| "not a pipeline")?;
    let source = pipeline.by_name("source").ok_or("no source")?;
    source.set_property("location", video);
    // Why it does not start is on the bus as well.
    let _ = pipeline.set_state(gst::State::Playing);
    let sample = sample_of(&pipeline, frame);
    pipeline.set_state(gst::State::Null)?;
    let sample = sample?.ok_or_else(|| format!("{video} has no frame {frame}"))?;
    let report = sample.buffer().and_then(FaceTrackMeta::from_buffer);
    let mut faces = report.into_iter().flat_map(|report| report.faces);
    let face = faces
        .next()
        .ok_or_else(|| format!("no face in frame {frame}"))?;
    Ok(face.face.morphable.ok_or("the face has no fit")??)
}

/// A frame, counted from 1; `None` where there are not so many.
fn sample_of(
    pipeline: &gst::Pipeline,
    frame: usize,
) -> Result<Option<gst::Sample>, Box<dyn Error>> {
    let sink = pipeline.by_name("sink").and_downcast::<gst_app::AppSink>();
    let sink = sink.ok_or("no sink")?;
    let bus = pipeline.bus().ok_or("no bus")?;
    let mut seen = 0;
    loop {
        if let Some(sample) = sink.try_pull_sample(PATIENCE) {
            seen += 1;
            if seen == frame {
                return Ok(Some(sample));
            }
        } else if let Some(message) = bus.pop_filtered(&[gst::MessageType::Error])
            && let gst::MessageView::Error(error) = message.view()
        {
            return Err(error.error().into());
        } else if sink.is_eos() {
            return Ok(None);
        }
    }
}
