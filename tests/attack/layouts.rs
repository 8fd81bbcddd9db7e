// SPDX-License-Identifier: MPL-2.0
//! Buffers whose memory, strides, offsets and metadata are unusual or lie.

use std::ops::Range;

use facetrack::report::FrameStatus;
use gst_video::{VideoCropMeta, VideoFormat, VideoFrameFlags, VideoInfo, VideoMeta};

use crate::common::faces::full_face;
use crate::common::noise::Noise;
use crate::common::padded::padded;
use crate::common::reports::{report_of, with_report};
use crate::renegotiation::frame;
use crate::rounds::{self, pick};
use crate::stream::{self, Stream};
use crate::switches::installed;

const FRAMES: u64 = 80;

/// An engine that is loaded in no time.
const CASCADE: &str = "opencv-haar";

const FORMATS: [&str; 8] = [
    "RGB",
    "I420",
    "NV12",
    "YUY2",
    "BGRx",
    "GRAY8",
    "P010_10LE",
    "Y42B",
];

const SIDES: [u32; 6] = [0, 1, 48, 160, 16_384, u32::MAX];

const STRIDES: [i32; 8] = [0, 1, -480, 480, 481, 1 << 20, i32::MAX, i32::MIN];

const OFFSETS: [usize; 6] = [0, 1, 480, 57_599, 57_600, 1 << 40];

/// Caps, and a buffer that does not quite fit them.
fn mistreated(noise: &mut Noise, number: u64) -> (gst::Caps, gst::Buffer) {
    let format = pick(noise, &FORMATS);
    let caps = format!("video/x-raw,format={format},width=160,height=120,framerate=25/1");
    let caps = stream::caps(&caps);
    let info = VideoInfo::from_caps(&caps).expect("video");
    let buffer = frame(noise, &info, number);
    let buffer = mistreat(noise, buffer, &info);
    (caps, buffer)
}

/// Changes a buffer in one way.
fn mistreat(noise: &mut Noise, buffer: gst::Buffer, info: &VideoInfo) -> gst::Buffer {
    match noise.below(6) {
        0 => misdescribed(noise, buffer, info),
        1 => cropped(noise, buffer),
        2 => cut(noise, &buffer),
        3 => scattered(noise, &buffer),
        4 => spread(noise, &buffer, info),
        _ => resized(noise, buffer),
    }
}

/// A choice, once in three times.
fn one_of<T: Copy>(noise: &mut Noise, choices: &[T]) -> Option<T> {
    rounds::one_in(noise, 3).then(|| *pick(noise, choices))
}

/// Adds a description that is often wrong.
fn misdescribed(noise: &mut Noise, mut buffer: gst::Buffer, info: &VideoInfo) -> gst::Buffer {
    let formats = [
        info.format(),
        info.format(),
        VideoFormat::I420,
        VideoFormat::Nv124l4,
    ];
    let format = *pick(noise, &formats);
    let [width, height] =
        [info.width(), info.height()].map(|side| one_of(noise, &SIDES).unwrap_or(side));
    let described = VideoInfo::builder(format, 160, 120)
        .build()
        .expect("a format");
    let offsets = described.offset().iter();
    let offsets: Vec<_> = offsets
        .map(|offset| one_of(noise, &OFFSETS).unwrap_or(*offset))
        .collect();
    let strides = described.stride().iter();
    let strides: Vec<_> = strides
        .map(|stride| one_of(noise, &STRIDES).unwrap_or(*stride))
        .collect();
    let flags = VideoFrameFlags::empty();
    // GStreamer refuses some itself.
    let _ = VideoMeta::add_full(
        buffer.make_mut(),
        flags,
        format,
        width,
        height,
        &offsets,
        &strides,
    );
    buffer
}

fn cropped(noise: &mut Noise, mut buffer: gst::Buffer) -> gst::Buffer {
    let [x, y, width, height] = [(); 4].map(|()| *pick(noise, &SIDES));
    VideoCropMeta::add(buffer.make_mut(), (x, y, width, height));
    buffer
}

/// Only the beginning of it.
fn cut(noise: &mut Noise, buffer: &gst::Buffer) -> gst::Buffer {
    let size = noise.below(buffer.size() + 1);
    region(buffer, 0..size)
}

/// Splits a buffer into several pieces of memory.
fn scattered(noise: &mut Noise, buffer: &gst::Buffer) -> gst::Buffer {
    let [a, b] = [(); 2].map(|()| noise.below(buffer.size() + 1));
    let (a, b) = (a.min(b), a.max(b));
    let mut whole = region(buffer, 0..a);
    whole.append(region(buffer, a..b));
    whole.append(region(buffer, b..buffer.size()));
    whole.make_mut().set_offset(buffer.offset());
    whole
}

/// A part of a buffer, with its times.
fn region(buffer: &gst::Buffer, range: Range<usize>) -> gst::Buffer {
    let flags = gst::BufferCopyFlags::all();
    let mut part = buffer.copy_region(flags, range).expect("it is in there");
    part.make_mut().set_offset(buffer.offset());
    part
}

/// Adds space around rows and planes.
fn spread(noise: &mut Noise, buffer: &gst::Buffer, info: &VideoInfo) -> gst::Buffer {
    let (before, after) = (noise.below(40), noise.below(40));
    let number = buffer.offset();
    stream::at(
        padded(buffer, info, before, |plane| after + plane as usize),
        number,
    )
}

/// Hides the beginning and the end of the memory.
fn resized(noise: &mut Noise, mut buffer: gst::Buffer) -> gst::Buffer {
    let size = buffer.size();
    let start = noise.below(size + 1);
    let end = start + noise.below(size - start + 1);
    buffer.make_mut().set_size(end);
    region(&buffer, start..end)
}

/// A frame that cannot be read is passed on, and the error says why.
#[test]
fn no_layout_loses_a_frame() {
    rounds::run(1, |noise| {
        for engine in installed() {
            let frames = if *engine == CASCADE {
                FRAMES
            } else {
                FRAMES / 8
            };
            let mut stream = Stream::new(&format!("facetrack engine={engine}"));
            for number in 0..frames {
                let (caps, buffer) = mistreated(noise, number);
                stream.set_caps(&caps);
                let (_, report) = stream.pass(buffer);
                let errors = stream.errors();
                let is_unreadable = report.status == FrameStatus::Error;
                assert_eq!(errors.len(), usize::from(is_unreadable), "{errors:?}");
                if is_unreadable {
                    stream.restart();
                }
            }
            stream.assert_works();
        }
    });
}

#[test]
fn nothing_is_drawn_beside_a_frame() {
    rounds::run(4, |noise| {
        let mut stream = Stream::new("facetrackoverlay layers=1023");
        for number in 0..FRAMES {
            let (caps, buffer) = mistreated(noise, number);
            stream.set_caps(&caps);
            let report = report_of((160, 120), vec![full_face(1, 20.0)]);
            stream.pass(with_report(buffer, &report));
        }
        stream.assert_no_error();
    });
}
