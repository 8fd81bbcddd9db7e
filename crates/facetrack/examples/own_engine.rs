// SPDX-License-Identifier: MPL-2.0
//! An engine of one's own: it takes the bright part of a picture for a face.
//! `cargo run --example own_engine`.

use std::error::Error;
use std::time::Duration;

use facetrack::engine::{Engine, EngineInfo, Found, Frame, Thresholds};
use facetrack::geometry::Rect;
use facetrack::{EngineError, ImageView, Observation, Tracker};

/// Sides of the picture, px.
const SIDE: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    // An engine that needs no earlier frame is a closure. `()` adds nothing to the faces.
    let engine = Engine::new(EngineInfo::named("brightest"), find, ());
    let mut tracker = Tracker::builder(engine).build()?;
    for index in 0..3 {
        let pixels = picture(8 * index);
        let image = ImageView::rgb(SIDE, SIDE, &pixels)?;
        let time = Duration::from_millis(40 * index as u64);
        for face in tracker.track(&image, time)?.faces {
            println!("face {} at {:?}", face.id, face.face.bbox);
        }
    }
    Ok(())
}

fn find(frame: &Frame<'_>, _: &Thresholds) -> Result<Found, EngineError> {
    let plane = frame.image.planes()[0];
    let is_bright = |index: &usize| plane.data[3 * index] > 127;
    let bright: Vec<_> = (0..SIDE * SIDE).filter(is_bright).collect();
    let (Some(first), Some(last)) = (bright.first(), bright.last()) else {
        return Ok(Found::all(Vec::new()));
    };
    let [left, top, right, bottom] =
        [first % SIDE, first / SIDE, last % SIDE + 1, last / SIDE + 1].map(|side| side as f32);
    Ok(Found::all(vec![Observation::from_bbox(Rect {
        x: left,
        y: top,
        width: right - left,
        height: bottom - top,
    })]))
}

/// A bright square on black.
fn picture(left: usize) -> Vec<u8> {
    let is_bright = |x, y| (left..left + 16).contains(&x) && (24..40).contains(&y);
    let pixels = (0..SIDE * SIDE).map(|index| is_bright(index % SIDE, index / SIDE));
    pixels
        .flat_map(|bright| [if bright { 255 } else { 0 }; 3])
        .collect()
}
