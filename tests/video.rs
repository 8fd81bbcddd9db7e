// SPDX-License-Identifier: MPL-2.0
#![cfg(feature = "gst")]
//! The resampler against GStreamer's own `videoconvert`, on frames as GStreamer lays them out.

use gst::prelude::*;
use gst_video::prelude::*;
use gst_video::{VideoFormat, VideoFrameRef, VideoInfo};
use gstfacetrack::face::geometry::{Point, RotatedRect, Size};
use gstfacetrack::face::sample::{Border, Crop, Layout, ValueRange};
use gstfacetrack::video;

fn noise(count: usize) -> Vec<u8> {
    let mut state = count as u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn converted(buffer: &gst::Buffer, info: &VideoInfo) -> Vec<u8> {
    let mut harness = gst_check::Harness::new_parse("videoconvert");
    harness.set_src_caps(info.to_caps().unwrap());
    harness.set_sink_caps(
        gst::Caps::builder("video/x-raw")
            .field("format", "RGB")
            .field("width", info.width() as i32)
            .field("height", info.height() as i32)
            .field("framerate", gst::Fraction::new(0, 1))
            .field("colorimetry", "sRGB")
            .build(),
    );
    let out = harness.push_and_pull(buffer.clone()).unwrap();
    let caps = harness.sinkpad().unwrap().current_caps().unwrap();
    let rgb = VideoInfo::from_caps(&caps).unwrap();
    assert_eq!(rgb.format(), VideoFormat::Rgb);
    let frame = VideoFrameRef::from_buffer_ref_readable(&out, &rgb).unwrap();
    let stride = frame.plane_stride()[0] as usize;
    let data = frame.plane_data(0).unwrap();
    (0..rgb.height() as usize)
        .flat_map(|row| data[row * stride..][..rgb.width() as usize * 3].to_vec())
        .collect()
}

#[test]
fn survey() {
    gst::init().unwrap();
    for (format, _) in video::FORMATS {
        for color in [
            "bt601", "bt709", "bt2020", "1:4:0:0", "1:3:0:0", "1:6:0:0", "1:1:0:0", "2:1:0:0",
            "2:2:0:0", "2:5:0:0",
        ] {
            for site in ["jpeg", "mpeg2", ""] {
                if format.to_string().contains(['R', 'G']) && site != "" {
                    continue;
                }
                let mut line = String::new();
                for (w, h) in [
                    (1u32, 1u32),
                    (2, 2),
                    (3, 5),
                    (4, 4),
                    (17, 8),
                    (64, 48),
                    (641, 359),
                ] {
                    let mut b = gst::Caps::builder("video/x-raw")
                        .field("format", format.to_str())
                        .field("width", w as i32)
                        .field("height", h as i32)
                        .field("framerate", gst::Fraction::new(0, 1))
                        .field("colorimetry", color);
                    if site != "" {
                        b = b.field("chroma-site", site);
                    }
                    let Ok(info) = VideoInfo::from_caps(&b.build()) else {
                        line += " caps!";
                        continue;
                    };
                    let buffer = gst::Buffer::from_slice(noise(info.size()));
                    let want = converted(&buffer, &info);
                    let frame = VideoFrameRef::from_buffer_ref_readable(&buffer, &info).unwrap();
                    let image = video::image(&frame).unwrap();
                    let crop = Crop {
                        roi: RotatedRect {
                            center: Point::new(w as f32 / 2., h as f32 / 2.),
                            size: Size::new(w as f32, h as f32),
                            rotation: 0.,
                        },
                        width: w as usize,
                        height: h as usize,
                        range: ValueRange::BYTE,
                        border: Border::Replicate,
                        layout: Layout::Interleaved,
                    };
                    let mut t = vec![0.; crop.len()];
                    crop.sample(&image, &mut t).unwrap();
                    let (mut max, mut over) = (0., 0);
                    for (a, b) in t.iter().zip(&want) {
                        let d = (a - f32::from(*b)).abs();
                        if d > max {
                            max = d
                        }
                        if d > 2. {
                            over += 1;
                        }
                    }
                    line += &format!("  {max}/{:.2}%", over as f64 * 100. / t.len() as f64);
                }
                eprintln!("{format:?} {color} {site:6} {line}");
            }
        }
    }
}
