// SPDX-License-Identifier: MPL-2.0
//! A video becomes one with its faces drawn into it.

use std::path::Path;
use std::time::Duration;

use facetrack::report::FrameReport;
use gst::prelude::*;
use gst_video::VideoInfo;
use gstfacetrack::meta::FaceTrackMeta;

use crate::common::player::open;
use crate::common::rotated::{self, ROTATIONS, UPRIGHT};
use crate::common::tool::{Finished, Tool};
use crate::common::{init, play_to_end};
use crate::docs::{self, Files};

const SCRIPT: &str = "examples/annotate.py";

/// Large white dots, which a codec leaves bright.
const WHITE_DOTS: &str = "layers=points color=ffffff line-width=0.006";

/// Left of the face there is nothing to draw, px.
const BACKGROUND: usize = 100;

/// A frame as it is shown.
struct Frame {
    pts: gst::ClockTime,
    width: usize,
    height: usize,
    rgb: Vec<u8>,
    report: Option<FrameReport>,
}

impl Frame {
    /// The darkest channel of a pixel.
    fn level(&self, x: f32, y: f32) -> u8 {
        let at = 3 * (y as usize * self.width + x as usize);
        self.rgb[at..at + 3]
            .iter()
            .copied()
            .min()
            .expect("3 channels")
    }
}

/// All frames of a video, decoded.
fn frames_of(video: &Path, elements: &str) -> Vec<Frame> {
    init();
    let elements = format!("decodebin ! {elements} ! videoconvert ! video/x-raw,format=RGB");
    samples(video, &elements)
        .iter()
        .map(|sample| {
            let buffer = sample.buffer().expect("a frame");
            let info = VideoInfo::from_caps(sample.caps().expect("caps")).expect("of video");
            let rgb = buffer.map_readable().expect("mapped");
            let (width, height) = (info.width() as usize, info.height() as usize);
            let rows = rgb.chunks(info.stride()[0] as usize).take(height);
            Frame {
                pts: buffer.pts().expect("a time"),
                width,
                height,
                rgb: rows.flat_map(|row| &row[..3 * width]).copied().collect(),
                report: FaceTrackMeta::from_buffer(buffer),
            }
        })
        .collect()
}

/// Contents of a stream of a file: its format, the number of packets, and the end of the last one.
fn stream_of(video: &Path, pad: &str) -> (String, usize, gst::ClockTime) {
    init();
    let packets = samples(video, &format!("qtdemux name=demux demux.{pad}"));
    let last = packets.last().expect("packets");
    let caps = last.caps().and_then(|caps| caps.structure(0));
    let ends = packets
        .iter()
        .filter_map(|packet| Some(packet.buffer()?.pts()? + packet.buffer()?.duration()?));
    (
        caps.expect("caps").name().to_string(),
        packets.len(),
        ends.max().expect("times"),
    )
}

fn samples(video: &Path, elements: &str) -> Vec<gst::Sample> {
    let (pipeline, sink) = open(video, elements);
    let samples = std::iter::from_fn(|| sink.pull_sample().ok()).collect();
    pipeline.set_state(gst::State::Null).expect("it stops");
    samples
}

fn tool(video: &Path, output: &Path, options: &[&str]) -> Tool {
    let paths = [&*video.to_string_lossy(), &*output.to_string_lossy()];
    let arguments = paths.iter().chain(options);
    arguments.fold(docs::script(SCRIPT), |tool, argument| tool.arg(argument))
}

fn annotate(files: Option<&Files>, video: &Path, output: &Path, options: &[&str]) -> Finished {
    let tool = tool(video, output, options);
    match files {
        Some(files) => files.given_to(tool).run(),
        None => tool.run(),
    }
}

/// The same number of frames at the same times, of the same size.
#[track_caller]
fn assert_none_is_lost(frames: &[Frame], originals: &[Frame]) {
    assert_eq!(frames.len(), originals.len());
    for (frame, original) in frames.iter().zip(originals) {
        let shift = frame.pts.nseconds().abs_diff(original.pts.nseconds());
        assert!(
            shift < 1_000_000,
            "{} instead of {}",
            frame.pts,
            original.pts
        );
        assert_eq!(
            (frame.width, frame.height),
            (original.width, original.height)
        );
    }
}

/// Checks that landmarks are white, and that pixels far from the face are unchanged.
#[track_caller]
fn assert_is_drawn(frames: &[Frame], originals: &[Frame]) {
    for (frame, original) in frames.iter().zip(originals) {
        let faces = frame.report.iter().flat_map(|report| &report.faces);
        let points: Vec<_> = faces
            .filter_map(|face| face.face.landmarks.as_ref())
            .flat_map(|landmarks| &landmarks.points)
            .collect();
        assert_eq!(points.len(), 478);
        let mean = |frame: &Frame| {
            let levels = points.iter().map(|at| f32::from(frame.level(at.x, at.y)));
            levels.sum::<f32>() / points.len() as f32
        };
        let (drawn, before) = (mean(frame), mean(original));
        assert!(drawn > 200.0 && before < 130.0, "{before} → {drawn}");

        let rows = frame
            .rgb
            .chunks(3 * frame.width)
            .zip(original.rgb.chunks(3 * frame.width));
        let differences = rows.flat_map(|(row, original)| {
            row[..3 * BACKGROUND]
                .iter()
                .zip(original)
                .map(|(a, b)| u32::from(a.abs_diff(*b)))
        });
        let count = (3 * BACKGROUND * frame.height) as u32;
        let difference = differences.sum::<u32>() as f32 / count as f32;
        assert!(difference < 4.0, "{difference}");
    }
}

#[test]
fn the_sample_clip_is_annotated_as_it_is_tracked_and_from_its_record() {
    let Some(files) = Files::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let track = folder.path().join("clip.json");
    docs::record(&files, "verbose=true", &track);
    let originals = frames_of(&files.clip, "identity");
    let load = format!("trackjsonload location={}", track.display());
    let options = ["--facetrackoverlay", WHITE_DOTS];
    let replayed = [
        "--facetrackoverlay",
        WHITE_DOTS,
        "--track",
        &track.to_string_lossy(),
    ];
    for options in [&options[..], &replayed] {
        let output = folder.path().join("a video.mp4");
        let Finished { success, text } = annotate(Some(&files), &files.clip, &output, options);
        assert!(success, "{text}");
        let frames = frames_of(&output, &load);
        assert_none_is_lost(&frames, &originals);
        assert_is_drawn(&frames, &originals);
        let (format, packets, end) = stream_of(&output, "video_0");
        let (_, _, original_end) = stream_of(&files.clip, "video_0");
        assert_eq!((&*format, packets), ("video/x-h264", originals.len()));
        assert!(end.nseconds().abs_diff(original_end.nseconds()) < 1_000_000);
        let (format, _, end) = stream_of(&output, "audio_0");
        let (_, _, original_end) = stream_of(&files.clip, "audio_0");
        assert_eq!(format, "audio/mpeg");
        // A block of AAC takes 23 ms, one of MPEG-1's 26 ms.
        assert!(end.nseconds().abs_diff(original_end.nseconds()) < 100_000_000);
    }
}

/// More frames than x264enc looks ahead, of a size that H.264 does not have, with sound that has to
/// wait and without.
#[test]
fn sound_and_odd_sizes_are_no_hindrance() {
    init();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (video, output) = (
        folder.path().join("odd.mkv"),
        folder.path().join("even.mp4"),
    );
    let pictures = "videotestsrc num-buffers=150 ! video/x-raw,width=161,height=121,framerate=25/1";
    let sound = "audiotestsrc samplesperbuffer=441 num-buffers=600 ! audio/x-raw,rate=44100 ! mux.";
    for (sound, seconds) in [(sound, 6), ("", 0)] {
        let line = format!(
            "{pictures} ! matroskamux name=mux ! filesink location={} {sound}",
            video.display()
        );
        play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
        let options = ["--facetrack", "engine=scripted"];
        let Finished { success, text } = annotate(None, &video, &output, &options);
        assert!(success, "{text}");
        let frames = frames_of(&output, "identity");
        assert_eq!(frames.len(), 150);
        for frame in &frames {
            assert!(frame.width.abs_diff(161) == 1 && frame.height.abs_diff(121) == 1);
        }
        if seconds > 0 {
            let (_, _, end) = stream_of(&output, "audio_0");
            assert!(end.nseconds().abs_diff(seconds * 1_000_000_000) < 100_000_000);
        }
    }
}

/// A video with an orientation tag is written upright and without that tag.
#[test]
fn a_rotated_video_becomes_an_upright_one() {
    init();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [upright, video, output] =
        ["upright.mp4", "video.mp4", "output.mp4"].map(|name| folder.path().join(name));
    let source = "videotestsrc num-buffers=10 ! video/x-raw,width=160,height=120,framerate=25/1";
    rotated::write(source, UPRIGHT, &upright);
    let originals = frames_of(&upright, "identity");
    for rotation in ROTATIONS {
        rotated::write(source, rotation, &video);
        let options = [
            "--facetrack",
            "engine=scripted",
            "--facetrackoverlay",
            "layers=0",
        ];
        let Finished { success, text } = annotate(None, &video, &output, &options);
        assert!(success, "{text}");
        // A turn that was still asked for would be made here.
        let frames = frames_of(&output, "videoconvert ! videoflip video-direction=auto");
        assert_eq!(frames.len(), originals.len());
        for (frame, original) in frames.iter().zip(&originals) {
            let sizes = [frame, original].map(|frame| (frame.width, frame.height));
            assert_eq!(sizes[0], sizes[1]);
            let pairs = frame.rgb.iter().zip(&original.rgb);
            let difference: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
            let mean = difference as f64 / frame.rgb.len() as f64;
            assert!(mean < 8.0, "{}: {mean}", rotation.tag);
        }
    }
}

/// Maximum time for a program to start and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// One frame per second is tracked, and each second is reported.
const SLOW: &str = "engine=scripted ! identity sleep-time=1000000 ! progressreport update-freq=1";

#[test]
fn it_can_be_interrupted() {
    init();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let video = folder.path().join("video.mkv");
    let line = format!(
        "videotestsrc num-buffers=1000 ! video/x-raw,width=32,height=32 ! matroskamux ! filesink location={}",
        video.display()
    );
    play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
    let output = folder.path().join("annotated.mp4");
    let mut running = tool(&video, &output, &["--facetrack", SLOW]).start();
    let progress = running.line_with("progressreport", PATIENCE);
    assert!(progress.is_ok(), "{progress:?}");
    assert_eq!(running.interrupt(PATIENCE), Some(130));
    let names = std::fs::read_dir(folder.path()).expect("a folder");
    assert_eq!(names.count(), 1, "nothing is left but the video");
}

#[test]
fn what_cannot_be_annotated_leaves_no_file() {
    init();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let (video, sound, text) = (at("video.mkv"), at("sound.mp4"), at("text.mp4"));
    for line in [
        format!(
            "videotestsrc num-buffers=5 ! matroskamux ! filesink location={}",
            video.display()
        ),
        format!(
            "audiotestsrc num-buffers=5 ! avenc_aac ! mp4mux ! filesink location={}",
            sound.display()
        ),
    ] {
        play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
    }
    std::fs::write(&text, "This is no video.\n").expect("it is written");
    let nowhere = Path::new("/nowhere.mp4");
    for (video, options, reason) in [
        (nowhere, &[][..], "not found"),
        (&text, &[], "text.mp4: "),
        (&sound, &[], "has no video"),
        (
            &video,
            &["--facetrack", "engine=nope"],
            "unknown engine \"nope\"",
        ),
        (&video, &["--facetrackoverlay", "layers=nope"], "layers"),
        (&video, &["--track", "/nowhere.json"], "cannot be opened"),
        (
            &video,
            &["--track", "/nowhere.json", "--facetrack", "engine=eos"],
            "not allowed with argument",
        ),
        (
            &video,
            &["--track", &text.to_string_lossy()],
            "not written by trackjsonsink",
        ),
    ] {
        let output = at("annotated.mp4");
        let Finished { success, text } = annotate(None, video, &output, options);
        assert!(!success && text.contains(reason), "{options:?}: {text}");
        assert!(!text.contains("Traceback"), "{text}");
        let names = std::fs::read_dir(folder.path()).expect("a folder");
        assert_eq!(names.count(), 3, "{options:?} left something");
    }
}
