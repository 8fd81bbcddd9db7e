// SPDX-License-Identifier: MPL-2.0
//! Helpers for the benches.

use std::error::Error;
use std::path::Path;

use gst::prelude::*;

/// The first frames of `clip`, as many as `most` says, as raw video of `caps`.
pub fn frames(clip: &Path, caps: &str, most: usize) -> Result<Vec<gst::Sample>, Box<dyn Error>> {
    let pipeline = gst::parse::launch(&format!(
        "filesrc location=\"{}\" ! decodebin ! videoconvert ! videoscale ! video/x-raw,{caps} \
         ! appsink name=sink sync=false",
        clip.display()
    ))?;
    let sink = pipeline
        .downcast_ref::<gst::Bin>()
        .and_then(|bin| bin.by_name("sink"))
        .and_downcast::<gst_app::AppSink>()
        .ok_or("no sink")?;
    pipeline.set_state(gst::State::Playing)?;
    let samples = std::iter::from_fn(|| sink.pull_sample().ok());
    let frames: Vec<_> = samples.take(most).collect();
    pipeline.set_state(gst::State::Null)?;
    match frames.is_empty() {
        true => Err(format!("{}: no frames", clip.display()).into()),
        false => Ok(frames),
    }
}
