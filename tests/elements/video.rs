// SPDX-License-Identifier: MPL-2.0
//! Frames read in place, against GStreamer's own `videoconvert`.

use crate::common::padded::padded;
use facetrack::geometry::{Point, RotatedRect, Size};
use facetrack::image::ImageView;
use facetrack::sample::{Border, Crop, Layout, Levels, ValueRange};
use gst_video::prelude::*;
use gst_video::{VideoFormat, VideoFrameFlags, VideoFrameRef, VideoInfo, VideoMeta};
use gstfacetrack::video::{self, VideoError};

/// Maximum difference of a sampled colour from a converted one, levels. GStreamer 1.22's are the
/// same.
const TOLERANCE: f32 = 2.0;

/// Frame sizes with every parity, single columns and rows among them.
const SIZES: [(u32, u32); 8] = [
    (1, 1),
    (2, 2),
    (3, 5),
    (8, 1),
    (1, 6),
    (17, 8),
    (64, 48),
    (641, 359),
];

/// Limited and full range of BT.601, BT.709, BT.2020, SMPTE 240M; then nothing said.
const COLORIMETRIES: [Option<&str>; 8] = [
    Some("bt601"),
    Some("bt709"),
    Some("bt2020"),
    Some("2:5:0:0"),
    Some("1:4:0:0"),
    Some("1:3:0:0"),
    Some("1:6:0:0"),
    None,
];

const CHROMA_SITES: [Option<&str>; 3] = [Some("jpeg"), Some("mpeg2"), None];

#[test]
fn one_to_one_is_what_videoconvert_makes() {
    gst::init().expect("GStreamer");
    for format in video::COMMON_FORMATS {
        for colorimetry in COLORIMETRIES {
            for site in sites_of(format) {
                for (width, height) in SIZES {
                    let info = info(format, width, height, colorimetry, *site);
                    let buffer = gst::Buffer::from_slice(noise(info.size()));
                    let worst =
                        worst_difference(&sampled(&buffer, &info), &converted(&buffer, &info));
                    assert!(
                        worst <= TOLERANCE,
                        "{format} {width}×{height} {colorimetry:?} {site:?}: {worst} levels"
                    );
                }
            }
        }
    }
}

/// Above 576 lines GStreamer assumes other colours.
#[test]
fn open_colorimetry_is_assumed_by_resolution() {
    gst::init().expect("GStreamer");
    for height in [576, 578, 2160] {
        for colorimetry in [None, Some("2:0:0:0")] {
            let info = info(VideoFormat::Nv12, 16, height, colorimetry, None);
            let buffer = gst::Buffer::from_slice(noise(info.size()));
            let worst = worst_difference(&sampled(&buffer, &info), &converted(&buffer, &info));
            assert!(worst <= TOLERANCE, "{height} lines: {worst} levels");
        }
    }
}

#[test]
fn strides_and_offsets_of_the_buffer_are_used() {
    gst::init().expect("GStreamer");
    for format in VideoFormat::iter_raw().filter(|format| has_rows(*format)) {
        for (width, height) in [(13, 7), (1, 1), (1, 7), (7, 1), (49, 3)] {
            let info = info(format, width, height, None, None);
            let tight = gst::Buffer::from_slice(noise(info.size()));
            let padded = padded(&tight, &info, 4, |plane| 8 + 4 * plane as usize);
            assert_eq!(sampled(&tight, &info), sampled(&padded, &info), "{format}");
        }
    }
}

/// Returns true if planes may have other strides than usual. Tiles and palettes may not.
fn has_rows(format: VideoFormat) -> bool {
    let info = gst_video::VideoFormatInfo::from_format(format);
    !info.is_tiled() && !info.has_palette()
}

/// GStreamer maps a frame with a meta without looking at the size of the memory.
#[test]
fn a_meta_that_promises_more_than_the_memory_holds_is_refused() {
    gst::init().expect("GStreamer");
    for format in VideoFormat::iter_raw() {
        let info = info(format, 64, 48, None, None);
        let mut buffer = gst::Buffer::with_size(info.size() / 8).expect("memory");
        let planes = info.n_planes() as usize;
        VideoMeta::add_full(
            buffer.get_mut().expect("the only reference"),
            VideoFrameFlags::empty(),
            format,
            64,
            48,
            &vec![0; planes],
            &info.stride()[..planes],
        )
        .expect("a meta");
        let frame = VideoFrameRef::from_buffer_ref_readable(&buffer, &info).expect("mapped");
        let error = video::image(&frame).expect_err("too little memory");
        let is_short = matches!(error, VideoError::Image(_) | VideoError::Tiles { .. });
        assert!(is_short, "{format}: {error}");
    }
}

fn tiled_formats() -> impl Iterator<Item = VideoFormat> {
    VideoFormat::iter_raw()
        .filter(|format| gst_video::VideoFormatInfo::from_format(*format).is_tiled())
}

/// GStreamer pads them to whole tiles of each field.
#[test]
fn interlaced_tiles_are_read() {
    gst::init().expect("GStreamer");
    for format in tiled_formats() {
        let info = VideoInfo::builder(format, 17, 33)
            .interlace_mode(gst_video::VideoInterlaceMode::Interleaved)
            .build()
            .expect("a format");
        let buffer = gst::Buffer::from_slice(noise(info.size()));
        let frame = VideoFrameRef::from_buffer_ref_readable(&buffer, &info).expect("mapped");
        let image = video::image(&frame);
        assert!(image.is_ok(), "{format}: {image:?}");
    }
}

/// Frames whose last tiles show more columns than the frame has.
#[test]
fn tiles_that_are_not_full_are_read() {
    gst::init().expect("GStreamer");
    for format in tiled_formats() {
        let [full, cut] = [112, 97].map(|width| info(format, width, 64, Some("bt709"), None));
        if full.stride() != cut.stride() {
            continue;
        }
        let buffer = gradient(&full);
        let [full, cut] = [full, cut].map(|info| sampled(&buffer, &info));
        for (full, cut) in full.chunks(112 * 3).zip(cut.chunks(97 * 3)) {
            for (a, b) in full.iter().zip(cut) {
                assert!((a - b).abs() <= PIXEL_TOLERANCE, "{format}: {a} {b}");
            }
        }
    }
}

#[test]
fn rows_over_each_other_are_refused() {
    gst::init().expect("GStreamer");
    let info = info(VideoFormat::Rgb, 8, 8, None, None);
    let mut buffer = gst::Buffer::from_slice(noise(info.size()));
    let overlapping = [8];
    VideoMeta::add_full(
        buffer.get_mut().expect("the only reference"),
        VideoFrameFlags::empty(),
        VideoFormat::Rgb,
        8,
        8,
        &[0],
        &overlapping,
    )
    .expect("a meta");
    let frame = VideoFrameRef::from_buffer_ref_readable(&buffer, &info).expect("mapped");
    let error = video::image(&frame).expect_err("rows over each other");
    assert!(error.to_string().contains("stride of 8 bytes"), "{error}");
}

#[test]
fn template_caps_list_what_can_be_read() {
    gst::init().expect("GStreamer");
    let template = video::caps();
    for (caps, accepted) in [
        ("video/x-raw,format=NV12,width=1,height=1", true),
        ("video/x-raw,format=ABGR,width=16384,height=16384", true),
        ("video/x-raw,format=RGB,width=16385,height=2", false),
        ("video/x-raw,format=Y444,width=2,height=2", true),
        (
            "video/x-raw(memory:DMABuf),format=NV12,width=2,height=2",
            false,
        ),
    ] {
        let caps: gst::Caps = caps.parse().expect("caps");
        assert_eq!(caps.can_intersect(&template), accepted, "{caps}");
    }
    for format in VideoFormat::iter_raw() {
        let caps = gst_video::VideoCapsBuilder::new().format(format).build();
        assert!(caps.can_intersect(&template), "{format}");
    }
}

/// Maximum difference between the means of sampled and converted colours, in levels. `videoconvert`
/// makes 8-bit codes of limited range two to three levels too dark.
const MEAN_TOLERANCE: f32 = 3.0;

/// A pixel may differ more where chroma changes fast: rare formats are interpolated from where
/// chroma samples are, and unpacked ones are not interpolated.
const PIXEL_TOLERANCE: f32 = 12.0;

#[test]
fn every_raw_format_shows_what_videoconvert_makes_of_it() {
    gst::init().expect("GStreamer");
    let mut off = Vec::new();
    for format in VideoFormat::iter_raw() {
        for (width, height) in [(192, 96), (97, 51)] {
            // GStreamer 1.22 unpacks the last of an odd number of columns wrongly. 1.28 and older
            // convert no tiles of these formats that are not full.
            let is_misread = match format.to_str().as_str() {
                "VYUY" => width % 2 == 1,
                "MT2110T" | "MT2110R" => width % 16 != 0,
                _ => false,
            };
            if is_misread {
                continue;
            }
            for colorimetry in [Some("bt709"), Some("1:4:0:0")] {
                let mut caps = info(format, width, height, colorimetry, None)
                    .to_caps()
                    .expect("caps");
                let rate = gst::Fraction::new(25, 1);
                caps.get_mut()
                    .expect("the only reference")
                    .set("framerate", rate);
                let info = VideoInfo::from_caps(&caps).expect("video caps");
                let buffer = gradient(&info);
                let (sampled, converted) = (sampled(&buffer, &info), converted(&buffer, &info));
                let worst = worst_difference(&sampled, &converted);
                let pairs = sampled.iter().zip(&converted);
                let sum: f32 = pairs.map(|(a, b)| a - f32::from(*b)).sum();
                let mean = sum / sampled.len() as f32;
                if worst > PIXEL_TOLERANCE || mean.abs() > MEAN_TOLERANCE {
                    off.push(format!(
                        "{format} {width}×{height} {colorimetry:?}: {worst} levels, {mean} in the mean"
                    ));
                }
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}

/// A frame that gets brighter from left to right and changes its hue from top to bottom, as
/// GStreamer converts it to the format.
fn gradient(info: &VideoInfo) -> gst::Buffer {
    let (width, height) = (info.width(), info.height());
    let rgb = VideoInfo::builder(VideoFormat::Rgb, width, height)
        .fps(info.fps())
        .build()
        .expect("RGB");
    let mut buffer = gst::Buffer::with_size(rgb.size()).expect("memory");
    {
        let buffer = buffer.get_mut().expect("the only reference");
        let mut frame = VideoFrameRef::from_buffer_ref_writable(buffer, &rgb).expect("mapped");
        let stride = frame.plane_stride()[0] as usize;
        let rows = frame.plane_data_mut(0).expect("a plane").chunks_mut(stride);
        for (y, row) in rows.enumerate() {
            for (x, pixel) in row.chunks_exact_mut(3).take(width as usize).enumerate() {
                let light = 40 + 160 * x / width as usize;
                let hue = 55 * y / height as usize;
                pixel.copy_from_slice(&[light + hue, light, light + 55 - hue].map(|v| v as u8));
            }
        }
    }
    let convert = gst_video::VideoConverter::new(&rgb, info, None).expect("a converter");
    let source = gst_video::VideoFrame::from_buffer_readable(buffer, &rgb).expect("mapped");
    let target = gst::Buffer::with_size(info.size()).expect("memory");
    let mut target = gst_video::VideoFrame::from_buffer_writable(target, info).expect("mapped");
    convert.frame(&source, &mut target);
    target.into_buffer()
}

/// Chroma sites worth telling apart.
fn sites_of(format: VideoFormat) -> &'static [Option<&'static str>] {
    let has_subsampled_chroma = gst_video::VideoFormatInfo::from_format(format).is_yuv();
    if has_subsampled_chroma {
        &CHROMA_SITES
    } else {
        &[None]
    }
}

fn info(
    format: VideoFormat,
    width: u32,
    height: u32,
    colorimetry: Option<&str>,
    site: Option<&str>,
) -> VideoInfo {
    let caps = gst_video::VideoCapsBuilder::new()
        .format(format)
        .width(width as i32)
        .height(height as i32)
        .framerate(gst::Fraction::new(0, 1))
        .field_if_some("colorimetry", colorimetry)
        .field_if_some("chroma-site", site)
        .build();
    VideoInfo::from_caps(&caps).expect("video caps")
}

/// The frame as sRGB by `videoconvert`, without padding.
fn converted(buffer: &gst::Buffer, info: &VideoInfo) -> Vec<u8> {
    let caps = info.to_caps().expect("caps");
    let rgb_caps = gst_video::VideoCapsBuilder::new()
        .format(VideoFormat::Rgb)
        .width(info.width() as i32)
        .height(info.height() as i32)
        .framerate(info.fps())
        .field("colorimetry", "sRGB")
        .build();
    let rgb_info = VideoInfo::from_caps(&rgb_caps).expect("RGB caps");
    let mut harness = gst_check::Harness::new("videoconvert");
    harness.set_caps(caps, rgb_caps);
    let buffer = harness.push_and_pull(buffer.clone()).expect("converted");
    let frame = VideoFrameRef::from_buffer_ref_readable(&buffer, &rgb_info).expect("mapped");
    let rows = frame.plane_data(0).expect("a plane");
    rows.chunks(frame.plane_stride()[0] as usize)
        .flat_map(|row| &row[..info.width() as usize * 3])
        .copied()
        .collect()
}

/// The frame as sampled one to one.
fn sampled(buffer: &gst::Buffer, info: &VideoInfo) -> Vec<f32> {
    let frame = VideoFrameRef::from_buffer_ref_readable(buffer, info).expect("mapped");
    one_to_one(&video::image(&frame).expect("a readable frame"))
}

fn one_to_one(image: &ImageView) -> Vec<f32> {
    let size = Size::new(image.width() as f32, image.height() as f32);
    let crop = Crop {
        roi: RotatedRect {
            center: Point::new(size.width / 2.0, size.height / 2.0),
            size,
            rotation: 0.0,
        },
        width: image.width(),
        height: image.height(),
        range: ValueRange::BYTE,
        border: Border::Black,
        layout: Layout::Interleaved,
        levels: Levels::Whole,
        window: None,
        rows: None,
    };
    let mut tensor = vec![f32::NAN; crop.len()];
    crop.sample(image, &mut tensor).expect("a good region");
    tensor
}

fn worst_difference(sampled: &[f32], converted: &[u8]) -> f32 {
    assert_eq!(sampled.len(), converted.len());
    let pairs = sampled.iter().zip(converted);
    pairs.fold(0.0, |worst: f32, (a, b)| {
        worst.max((a - f32::from(*b)).abs())
    })
}

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
