// SPDX-License-Identifier: MPL-2.0
//! A camera, or any program that writes raw RGB frames, to a record of JSON lines.
//!
//! ```sh
//! ffmpeg -f v4l2 -video_size 640x360 -i /dev/video0 -f rawvideo -pix_fmt rgb24 - |
//!     cargo run --release --example raw_frames -- mediapipe 640 360 30 max-faces=1 > camera.jsonl
//! ```
//!
//! Arguments: engine, width, height, frames a second, then `max-faces` if there should be a limit.

use std::error::Error;
use std::io::{ErrorKind, Read, stdin, stdout};
use std::time::Duration;

use facetrack::record::{End, Export, Fields, FrameRecord, Metadata, Record};
use facetrack::{EngineKind, ImageView, SearchPaths, Tracker};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engine, width, height, fps, options @ ..] = &arguments[..] else {
        return Err("usage: raw_frames ENGINE WIDTH HEIGHT FPS [max-faces=COUNT]".into());
    };
    let (width, height): (usize, usize) = (width.parse()?, height.parse()?);
    let fps: f64 = fps.parse()?;
    let paths = SearchPaths::from_vars(std::env::var_os);
    let engine: EngineKind = engine.parse().map_err(|error| format!("{error}"))?;
    let mut builder = Tracker::builder(engine).paths(paths);
    for option in options {
        builder = match option.split_once('=') {
            Some(("max-faces", count)) => builder.max_faces(count.parse()?),
            _ => return Err(format!("unknown option {option:?}").into()),
        };
    }
    let mut tracker = builder.build()?;
    let metadata = Metadata {
        fps,
        width: width.try_into()?,
        height: height.try_into()?,
        source: Some(tracker.analyzer().source().clone()),
        ..Metadata::default()
    };
    let export = Export {
        fields: Fields::all(),
        ..Export::default()
    };
    let mut record = Record::jsonl(stdout(), export, metadata);
    let mut pixels = vec![0; width * height * 3];
    for index in 0.. {
        if !read_frame(&mut pixels)? {
            break;
        }
        let time = Duration::from_millis((1000.0 * f64::from(index) / fps).round() as u64);
        let report = tracker.track(&ImageView::rgb(width, height, &pixels)?, time)?;
        record.frame(&FrameRecord::of(&report, Some(time.as_nanos() as u64)))?;
    }
    record.close(End::Complete)?;
    Ok(())
}

/// Reads the next frame. Returns false at the end, also if the last frame is cut off.
fn read_frame(pixels: &mut [u8]) -> std::io::Result<bool> {
    match stdin().lock().read_exact(pixels) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
