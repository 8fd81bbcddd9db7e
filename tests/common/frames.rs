// SPDX-License-Identifier: MPL-2.0
//! Frames of clips and pictures, as GStreamer decodes them.

use std::path::Path;

use gst::prelude::*;

use crate::common::player::open;

/// A decoded frame in tightly packed RGB.
#[derive(Clone)]
pub struct Decoded {
    pub width: usize,
    pub height: usize,
    pub rgb: Vec<u8>,
}

/// The decoder whose pictures are those that OpenCV decodes.
pub const PICTURES: &str = "gdkpixbufdec";

/// The decoder of clips.
pub const CLIPS: &str = "decodebin";

/// The frames of a clip, or the picture.
pub fn decode(media: &Path, decoder: &str) -> impl Iterator<Item = Decoded> + use<> {
    let (pipeline, out) = open(
        media,
        &format!("{decoder} ! videoconvert ! video/x-raw,format=RGB"),
    );
    let playing = Playing(pipeline);
    std::iter::from_fn(move || {
        let _playing = &playing;
        out.pull_sample().ok().map(|sample| packed(&sample))
    })
}

struct Playing(gst::Pipeline);

impl Drop for Playing {
    fn drop(&mut self) {
        self.0.set_state(gst::State::Null).expect("it stops");
    }
}

fn packed(sample: &gst::Sample) -> Decoded {
    let caps = sample.caps().expect("caps");
    let caps = caps.structure(0).expect("a structure");
    let side = |name| caps.get::<i32>(name).expect("a side") as usize;
    let (width, height) = (side("width"), side("height"));
    let map = sample.buffer().expect("a frame").map_readable();
    let map = map.expect("readable");
    // GStreamer pads rows of RGB to multiples of 4 bytes.
    let rows = map.chunks(map.len() / height).take(height);
    Decoded {
        width,
        height,
        rgb: rows
            .map(|row| &row[..3 * width])
            .collect::<Vec<_>>()
            .concat(),
    }
}
