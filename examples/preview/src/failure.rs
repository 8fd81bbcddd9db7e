// SPDX-License-Identifier: MPL-2.0
//! A window with an error, for a start without a terminal.

use std::error::Error;

use gst::glib::markup_escape_text;
use gst::prelude::*;

use crate::pipelines::{element, launch};

/// The window is GStreamer's own, so that it can be opened whatever failed before.
const WINDOW: &str = "videotestsrc pattern=black is-live=true ! video/x-raw,width=960,height=240,framerate=5/1 ! \
                      textoverlay name=text line-alignment=left halignment=center \
                      valignment=center font-desc=\"Sans 14\" ! videoconvert ! autovideosink";

/// Shows a text until the window is closed.
///
/// # Errors
/// Returns an error if no window can be opened.
pub fn show(text: &str) -> Result<(), Box<dyn Error>> {
    gst::init()?;
    let pipeline = launch(WINDOW)?;
    let markup = markup_escape_text(text);
    element(&pipeline, "text").set_property("text", &*markup);
    pipeline.set_state(gst::State::Playing)?;
    // The sink reports an error when its window is closed.
    let bus = pipeline.bus().expect("a pipeline has a bus");
    bus.timed_pop_filtered(gst::ClockTime::NONE, &[gst::MessageType::Error]);
    pipeline.set_state(gst::State::Null)?;
    Ok(())
}
