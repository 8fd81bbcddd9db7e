// SPDX-License-Identifier: MPL-2.0
//! Time that `facetrackoverlay` and `facetrackblur` take for a frame of 1920×1080 with one face of
//! 478 landmarks, compared with a `GstVideoOverlayComposition` of the same pixels.
//!
//! Run `cargo bench --bench overlay`, pinned to a core, with `-- FORMAT…` for some formats. It ends
//! with an error if the mesh takes longer than [`BAR`], or a covered face longer than [`BLUR_BAR`].
//! Frames of the sample clip go through `facetrack` once, and then with its metadata through the
//! elements. The composition is only blended, not drawn: it has rectangles as large as the face, its
//! label and the text.

mod common;
#[path = "common/sample.rs"]
mod sample;

use std::error::Error;
use std::time::Instant;

use gst::prelude::*;
use gst_video::{VideoFrameRef, VideoInfo, VideoOverlayComposition, VideoOverlayRectangle};
use gstfacetrack::meta::FaceTrackMeta;

/// Frames of the clip, and rounds through them.
const FRAMES: usize = 20;
const ROUNDS: usize = 10;

/// Formats of the frames.
const FORMATS: [&str; 11] = [
    "NV12",
    "I420",
    "YUY2",
    "BGRx",
    "BGRA",
    "RGB",
    "GRAY8",
    "Y444",
    "P010_10LE",
    "RGBA64_LE",
    "AYUV",
];

/// Layers that are drawn: the default, the mesh, and all.
const LAYERS: [&str; 3] = [
    "boxes+labels+contours+key-points+pose+gaze+blendshapes+info",
    "mesh",
    "boxes+labels+points+mesh+contours+key-points+pose+gaze+blendshapes+info",
];

/// Modes of `facetrackblur`.
const MODES: [&str; 3] = ["pixelate", "blur", "fill"];

/// Maximum time of the mesh in the fastest round, ms.
const BAR: f64 = 2.0;

/// Maximum time of a covered face, which has half the height of the frame, in the fastest round, ms.
const BLUR_BAR: f64 = 2.0;

/// Heights of the label and of the text in the composition, and widths of both, px.
const LABEL: [u32; 2] = [90, 34];
const PANEL: [u32; 2] = [350, 200];

fn main() -> Result<(), Box<dyn Error>> {
    gst::init()?;
    gstfacetrack::plugin_register_static()?;
    println!("ms a frame of 1920×1080, one thread: minimum, median");
    println!(
        "format            default           mesh            all    composition       pixelate           blur           fill"
    );
    let mut slow = Vec::new();
    // Cargo adds `--bench`.
    let named: Vec<_> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let wanted = |format: &&str| named.is_empty() || named.iter().any(|name| name == format);
    for format in FORMATS.into_iter().filter(wanted) {
        let caps = format!("format={format},width=1920,height=1080");
        let frames = tracked(&caps)?;
        print!("{format:<12}");
        let overlaid = |layers| passed(&frames, &format!("facetrackoverlay layers={layers}"));
        let [_, mesh, _] = LAYERS.map(|layers| show(&mut overlaid(layers)));
        show(&mut composed(&frames)?);
        let blurred = |mode| passed(&frames, &format!("facetrackblur mode={mode}"));
        let covered = MODES.map(|mode| show(&mut blurred(mode)));
        println!();
        if mesh > BAR || covered.iter().any(|time| *time > BLUR_BAR) {
            slow.push(format);
        }
    }
    if slow.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "the mesh or a covered face takes too long in {}",
            slow.join(", ")
        )
        .into())
    }
}

/// Frames of the clip with their metadata.
fn tracked(caps: &str) -> Result<Vec<gst::Sample>, Box<dyn Error>> {
    let plain = common::frames(
        &sample::clip()?,
        "format=I420,width=1920,height=1080",
        FRAMES,
    )?;
    let mut harness = gst_check::Harness::new_parse(&format!(
        "facetrack engine=mediapipe max-faces=1 ! videoconvert ! capsfilter caps=video/x-raw,{caps}"
    ));
    harness.set_src_caps(plain[0].caps_owned().ok_or("no caps")?);
    let frames = plain.iter().map(|sample| {
        let buffer = harness.push_and_pull(sample.buffer_owned().ok_or("no frame")?)?;
        let caps = harness.sinkpad().and_then(|pad| pad.current_caps());
        let caps = caps.ok_or("no caps")?;
        Ok(gst::Sample::builder().buffer(&buffer).caps(&caps).build())
    });
    frames.collect()
}

/// Milliseconds of each frame through the element.
fn passed(frames: &[gst::Sample], element: &str) -> Vec<f64> {
    let mut harness = gst_check::Harness::new_parse(element);
    harness.set_src_caps(frames[0].caps_owned().expect("caps"));
    let frames = std::iter::repeat_n(frames, ROUNDS).flatten();
    let times = frames.map(|frame| {
        let buffer = own(frame);
        let start = Instant::now();
        let drawn = harness.push_and_pull(buffer).expect("it flows");
        let time = start.elapsed().as_secs_f64() * 1000.0;
        drop(drawn);
        time
    });
    times.collect()
}

/// Milliseconds of blending a composition into each frame.
fn composed(frames: &[gst::Sample]) -> Result<Vec<f64>, Box<dyn Error>> {
    let info = VideoInfo::from_caps(frames[0].caps().ok_or("no caps")?)?;
    let mut times = Vec::new();
    for frame in std::iter::repeat_n(frames, ROUNDS).flatten() {
        let mut buffer = own(frame);
        let report = FaceTrackMeta::from_buffer(&buffer).ok_or("no report")?;
        let bbox = report.faces[0].face.bbox;
        let (x, y) = (bbox.x as i32, bbox.y as i32);
        let composition = VideoOverlayComposition::new(
            [
                ((x, y), [bbox.width as u32, bbox.height as u32]),
                ((x, y - LABEL[1] as i32), LABEL),
                ((x + bbox.width as i32, y), PANEL),
            ]
            .map(|(corner, size)| rectangle(corner, size))
            .iter(),
        )?;
        let buffer = buffer.make_mut();
        let start = Instant::now();
        let mut frame = VideoFrameRef::from_buffer_ref_writable(buffer, &info)?;
        composition.blend(&mut frame)?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(times)
}

/// A rectangle of the format that compositions are blended from fastest, half covered.
fn rectangle((x, y): (i32, i32), [width, height]: [u32; 2]) -> VideoOverlayRectangle {
    let mut pixels = gst::Buffer::from_slice(vec![0x80; (width * height * 4) as usize]);
    gst_video::VideoMeta::add(
        pixels.get_mut().expect("the only reference"),
        gst_video::VideoFrameFlags::empty(),
        gst_video::VideoFormat::Bgra,
        width,
        height,
    )
    .expect("a meta");
    VideoOverlayRectangle::new_raw(
        &pixels,
        x,
        y,
        width,
        height,
        gst_video::VideoOverlayFormatFlags::empty(),
    )
}

/// A copy of a frame's buffer.
fn own(frame: &gst::Sample) -> gst::Buffer {
    frame
        .buffer()
        .expect("a frame")
        .copy_deep()
        .expect("memory")
}

/// Prints the minimum and the median, and returns the minimum.
fn show(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    print!("{:>8.2}{:>7.2}", times[0], times[times.len() / 2]);
    times[0]
}
