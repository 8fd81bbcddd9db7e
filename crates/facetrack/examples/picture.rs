// SPDX-License-Identifier: MPL-2.0
//! A picture to JSON: `cargo run --release --example picture -- face.png [engine]`.

mod common;

use std::error::Error;
use std::time::Duration;

use facetrack::{EngineKind, RunningMode, SearchPaths, Tracker};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: picture PNG [ENGINE]")?;
    let engine = arguments
        .next()
        .map_or(Ok(EngineKind::MediaPipe), |name| name.parse())?;

    let picture = common::Picture::read(path.as_ref())?;
    let mut tracker = Tracker::builder(engine)
        .paths(SearchPaths::from_vars(std::env::var_os))
        .running_mode(RunningMode::Image)
        .build()?;
    println!(
        "{}",
        tracker.track(&picture.view()?, Duration::ZERO)?.to_json()
    );
    Ok(())
}
