// SPDX-License-Identifier: MPL-2.0
//! Videos in the pixel formats and pixel shapes that people have.

use crate::common;

use crate::common::bus::Watch;

use std::path::{Path, PathBuf};

use crate::common::ffmpeg::{encode, sample};
use crate::common::player::track;
use facetrack::engine::{EngineConfig, EngineKind};
use facetrack::observation::{LandmarkScheme, Observation};
use facetrack::report::FrameReport;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

/// File names and how `ffmpeg` writes them: 8 to 16 bits, 4:0:0 to 4:4:4, RGB, alpha, interlaced.
const ENCODINGS: [(&str, &str); 24] = [
    ("h264-10bit.mkv", "-c:v libx264 -pix_fmt yuv420p10le"),
    ("h264-422.mp4", "-c:v libx264 -pix_fmt yuv422p"),
    ("h264-444-10bit.mkv", "-c:v libx264 -pix_fmt yuv444p10le"),
    ("h264-gray.mkv", "-c:v libx264 -pix_fmt gray"),
    ("h264-rgb.mkv", "-c:v libx264rgb -pix_fmt rgb24"),
    (
        "hevc-main10.mp4",
        "-c:v libx265 -x265-params log-level=none -pix_fmt yuv420p10le -tag:v hvc1",
    ),
    (
        "hevc-422-12bit.mkv",
        "-c:v libx265 -x265-params log-level=none -pix_fmt yuv422p12le",
    ),
    (
        "hevc-gbr-10bit.mkv",
        "-c:v libx265 -x265-params log-level=none -pix_fmt gbrp10le",
    ),
    (
        "av1-10bit.webm",
        "-c:v libaom-av1 -cpu-used 8 -pix_fmt yuv420p10le",
    ),
    (
        "av1-444.mkv",
        "-c:v libaom-av1 -cpu-used 8 -pix_fmt yuv444p",
    ),
    (
        "vp9-10bit.webm",
        "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -pix_fmt yuv420p10le",
    ),
    (
        "vp9-alpha.webm",
        "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -pix_fmt yuva420p",
    ),
    (
        "prores-422.mov",
        "-c:v prores_ks -profile:v 2 -pix_fmt yuv422p10le",
    ),
    (
        "prores-4444.mov",
        "-c:v prores_ks -profile:v 4 -pix_fmt yuva444p10le",
    ),
    (
        "dnxhd.mov",
        "-vf scale=1280:720,fps=25 -c:v dnxhd -b:v 60M -pix_fmt yuv422p",
    ),
    ("ffv1-gray16.mkv", "-c:v ffv1 -pix_fmt gray16le"),
    ("ffv1-bgra.avi", "-c:v ffv1 -pix_fmt bgra"),
    ("ffv1-gbr-12bit.mkv", "-c:v ffv1 -pix_fmt gbrp12le"),
    (
        "mpeg2-interlaced.ts",
        "-c:v mpeg2video -q:v 2 -flags +ilme+ildct -top 1 -pix_fmt yuv420p",
    ),
    (
        "mpeg2-interlaced-422.ts",
        "-c:v mpeg2video -q:v 2 -flags +ilme+ildct -top 1 -pix_fmt yuv422p",
    ),
    (
        "dv-411.avi",
        "-vf scale=720:480,fps=30000/1001 -c:v dvvideo -pix_fmt yuv411p",
    ),
    ("qtrle-alpha.mov", "-c:v qtrle -pix_fmt argb"),
    ("png-16bit.mov", "-c:v png -pix_fmt rgb48be"),
    ("v210.mov", "-c:v v210 -pix_fmt yuv422p10le"),
];

/// Frames of each encoding.
const FRAMES: usize = 6;

/// Mean distance of landmarks from those behind `videoconvert`, in distances of the outer eye
/// corners.
const LANDMARKS_MEAN: f32 = 0.006;

/// The clip that is encoded: one of the reference clips where they are, else the sample.
fn clip() -> Option<PathBuf> {
    common::init();
    common::engine::engine(EngineKind::MediaPipe, &EngineConfig::default())?;
    match std::env::var_os("FACETRACK_REFERENCE_DIR") {
        Some(reference) => {
            Some(Path::new(&reference).join("media/pyfeat_WolfgangLanger_Pexels.mp4"))
        }
        None => sample(),
    }
}

#[test]
fn every_encoding_is_measured_as_behind_videoconvert() {
    let folder = tempfile::tempdir().expect("a folder");
    if let Some(clip) = clip() {
        for (name, options) in ENCODINGS {
            let video = folder.path().join(name);
            encode(&clip, FRAMES, options, &video);
            let rgb = match name.contains("gray") {
                true => "GRAY8",
                false => "RGB",
            };
            let (direct, converted) = track_both(&video, rgb);
            assert_eq!(direct.len(), converted.len(), "{name}");
            // A decoder may keep the last frames to itself.
            assert!(
                direct.len() + 2 >= FRAMES,
                "{name}: {} frames",
                direct.len()
            );
            let errors = distances(&direct, &converted, 1.0);
            let mean = errors.iter().sum::<f32>() / errors.len() as f32;
            eprintln!("{name}: {} frames, landmarks {mean:.5}", direct.len());
            assert!(mean <= LANDMARKS_MEAN, "{name}: {mean}");
        }
    }
}

/// The reports of `facetrack` on the decoded frames as they are, and on the same frames converted
/// to `format`.
fn track_both(video: &Path, format: &str) -> (Vec<FrameReport>, Vec<FrameReport>) {
    let pipeline = gst::parse::launch(&format!(
        "filesrc name=file ! decodebin ! tee name=t \
         t. ! queue ! facetrack ! appsink name=direct sync=false \
         t. ! queue ! videoconvert ! video/x-raw,format={format} ! facetrack ! \
         appsink name=converted sync=false"
    ));
    let pipeline = pipeline.expect("a pipeline");
    let pipeline = pipeline.downcast::<gst::Pipeline>().expect("a pipeline");
    let source = pipeline.by_name("file").expect("the source");
    source.set_property("location", video.to_str().expect("a readable name"));
    let sinks = ["direct", "converted"].map(|name| {
        let sink = pipeline.by_name(name).expect("a sink");
        sink.downcast::<gst_app::AppSink>().expect("an appsink")
    });
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let reports = sinks.map(|sink| {
        let samples = std::iter::from_fn(|| sink.pull_sample().ok());
        let reports = samples.map(|sample| {
            FaceTrackMeta::from_buffer(sample.buffer().expect("a frame")).expect("metadata")
        });
        reports.collect()
    });
    pipeline.set_state(gst::State::Null).expect("it stops");
    reports.into()
}

/// Distance of each point of each face from the same in `wanted`, whose columns are `columns` times
/// as many, divided by the distance of the outer eye corners. Every frame has one face.
fn distances(reports: &[FrameReport], wanted: &[FrameReport], columns: f32) -> Vec<f32> {
    assert_eq!(reports.len(), wanted.len());
    let pairs = reports.iter().zip(wanted).flat_map(|(report, wanted)| {
        assert_eq!((report.faces.len(), wanted.faces.len()), (1, 1));
        let [face, wanted] = [report, wanted].map(|report| &report.faces[0].face);
        let eyes = eye_distance(wanted);
        let own: Vec<_> = points(face).collect();
        let wanted: Vec<_> = points(wanted).collect();
        assert_eq!(own.len(), wanted.len());
        std::iter::zip(own, wanted)
            .map(move |([x, y], [wx, wy])| (x * columns - wx).hypot(y - wy) / eyes)
            .collect::<Vec<_>>()
    });
    pairs.collect()
}

/// Landmarks, or key points, or else the corners of the box.
fn points(face: &Observation) -> impl Iterator<Item = [f32; 2]> {
    let landmarks = face.landmarks.iter().flat_map(|found| &found.points);
    let mut all: Vec<_> = landmarks.map(|point| [point.x, point.y]).collect();
    if all.is_empty() {
        all.extend(face.key_points.iter().map(|point| [point.x, point.y]));
    }
    if all.is_empty() {
        let bbox = face.bbox;
        all.extend([[bbox.x, bbox.y], [bbox.right(), bbox.bottom()]]);
    }
    all.into_iter()
}

/// Distance of the outer eye corners, px; about that where only a box or key points are known.
fn eye_distance(face: &Observation) -> f32 {
    let between = |a: usize, b: usize| {
        let points = &face.landmarks.as_ref().expect("landmarks").points;
        (points[a].x - points[b].x).hypot(points[a].y - points[b].y)
    };
    match face.landmarks.as_ref().map(|landmarks| landmarks.scheme) {
        Some(LandmarkScheme::MediaPipe478) => between(33, 263),
        Some(LandmarkScheme::OpenSeeFace66 | LandmarkScheme::Ibug68) => between(36, 45),
        _ => face.bbox.height / 2.0,
    }
}

/// Mean difference of blendshapes that a pixel's shape may make.
const BLENDSHAPES_MEAN: f32 = 0.01;

#[test]
fn pixels_of_another_shape_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (wide, square) = (path("wide.mkv"), path("square.mkv"));
    if let Some(clip) = clip() {
        // The same resolution, displayed in the same size.
        let narrow = "scale=480:360:flags=bicubic";
        let options = format!("-vf {narrow},setsar=4/3 -c:v ffv1 -pix_fmt yuv444p");
        encode(&clip, FRAMES, &options, &wide);
        let options = format!(
            "-vf {narrow},scale=640:360:flags=bilinear,setsar=1 -c:v ffv1 -pix_fmt yuv444p"
        );
        encode(&clip, FRAMES, &options, &square);
        for (kind, bar) in [
            (EngineKind::MediaPipe, 0.004),
            (EngineKind::OpenSeeFace, 0.004),
            (EngineKind::OpenCvYunet, 0.004),
            (EngineKind::OpenCvYunetPyfeat, 0.004),
            (EngineKind::Eos, 0.004),
            (EngineKind::InsightFace, 0.004),
            (EngineKind::OpenCvHaar, 0.02),
        ] {
            if common::engine::engine(kind, &EngineConfig::default()).is_none() {
                continue;
            }
            let properties = format!("engine={}", kind.name());
            let [wide, square] = [&wide, &square].map(|clip| track(clip, &properties));
            let errors = distances(&wide, &square, 4.0 / 3.0);
            let mean = errors.iter().sum::<f32>() / errors.len() as f32;
            let blendshapes = blendshape_difference(&wide, &square);
            eprintln!(
                "{}: points {mean:.5}, blendshapes {blendshapes:.5}",
                kind.name()
            );
            assert!(mean <= bar, "{}: {mean}", kind.name());
            assert!(
                blendshapes <= BLENDSHAPES_MEAN,
                "{}: {blendshapes}",
                kind.name()
            );
        }
    }
}

/// Mean difference of the blendshapes of the only face of each frame; 0 where there are none.
fn blendshape_difference(reports: &[FrameReport], wanted: &[FrameReport]) -> f32 {
    let values = |report: &FrameReport| {
        let face = &report.faces[0].face;
        let blendshapes = face.blendshapes.as_ref();
        blendshapes.map_or(Vec::new(), |blendshapes| {
            blendshapes.iter().map(|(_, value)| value).collect()
        })
    };
    let pairs = || reports.iter().zip(wanted);
    assert!(pairs().all(|(a, b)| values(a).len() == values(b).len()));
    let differences: Vec<f32> = pairs()
        .flat_map(|(a, b)| std::iter::zip(values(a), values(b)))
        .map(|(a, b): (f32, f32)| (a - b).abs())
        .collect();
    differences.iter().sum::<f32>() / differences.len().max(1) as f32
}

#[test]
fn what_cannot_be_read_is_an_error_that_names_the_caps_and_the_remedy() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let video = folder.path().join("video.mkv");
    let encode = format!(
        "videotestsrc num-buffers=3 ! video/x-raw,width=64,height=48 ! jpegenc ! matroskamux ! \
         filesink location={}",
        video.display()
    );
    common::play_to_end(&gst::parse::launch(&encode).expect("a pipeline"));
    // The demuxer's pad is linked when it appears.
    for element in ["facetrack engine=scripted", "facetrackoverlay"] {
        let line = format!(
            "filesrc location={} ! matroskademux ! {element} name=tested ! fakesink",
            video.display()
        );
        assert_refusal(&line, &["tested", "image/jpeg", "decodebin"]);
    }
}

#[test]
fn frames_outside_system_memory_are_an_error_that_names_the_remedy() {
    common::init();
    let element = gst::ElementFactory::make("facetrack")
        .property("engine", "scripted")
        .build()
        .expect("facetrack");
    let bus = Watch::of(&element);
    let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
    let caps = "video/x-raw(memory:DMABuf),format=NV12,width=64,height=48,framerate=25/1";
    harness.set_src_caps(caps.parse().expect("caps"));
    let error = common::bus::error(&bus).expect("an error");
    for word in ["facetrack", "memory:DMABuf", "NV12", "system memory"] {
        assert!(error.contains(word), "{error}");
    }
}

/// The pipeline ends with an error that has all these words.
#[track_caller]
fn assert_refusal(line: &str, words: &[&str]) {
    let pipeline = gst::parse::launch(line).expect("a pipeline");
    let _ = pipeline.set_state(gst::State::Playing);
    let bus = pipeline.bus().expect("a bus");
    let patience = gst::ClockTime::from_seconds(20);
    let message = bus.timed_pop_filtered(patience, &[gst::MessageType::Error]);
    pipeline.set_state(gst::State::Null).expect("it stops");
    let message = message.expect("an error");
    let gst::MessageView::Error(error) = message.view() else {
        panic!("{message:?}");
    };
    let error = error.error().to_string();
    for word in words {
        assert!(error.contains(word), "{line}: {error}");
    }
}
