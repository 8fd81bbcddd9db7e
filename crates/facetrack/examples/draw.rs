// SPDX-License-Identifier: MPL-2.0
//! Draws the faces into a picture: `cargo run --release --example draw -- face.png drawn.png`.

mod common;

use std::error::Error;
use std::time::Duration;

use facetrack::overlay::{Canvas, Overlay, Pace, Style};
use facetrack::{EngineKind, RunningMode, SearchPaths, Tracker};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = &arguments[..] else {
        return Err("usage: draw FROM TO".into());
    };
    let mut picture = common::Picture::read(from.as_ref())?;
    let mut tracker = Tracker::builder(EngineKind::MediaPipe)
        .paths(SearchPaths::from_vars(std::env::var_os))
        .running_mode(RunningMode::Image)
        .build()?;
    let report = tracker.track(&picture.view()?, Duration::ZERO)?;

    let mut canvas = Canvas::rgb(picture.width, picture.height, &mut picture.pixels)?;
    Overlay::default().draw(&mut canvas, &report, &Pace::default(), &Style::default())?;
    picture.write(to.as_ref())
}
