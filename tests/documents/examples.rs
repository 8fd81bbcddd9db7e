// SPDX-License-Identifier: MPL-2.0
//! The example programs, as users run them.

use crate::common::{self, file};
use crate::docs;

use std::path::Path;
use std::process::Command;

use crate::common::tool::{Finished, Tool};
use docs::Files;

/// Frames of the sample clip, each with one face.
const FRAMES: usize = 72;

/// Output of the programs that read the metadata.
const MESH: &[&str] = &[", 478 landmarks", ", yaw ", ", jawOpen 0."];

fn run(files: &Files, program: Tool, arguments: &[&str]) -> Finished {
    let tool = arguments
        .iter()
        .fold(files.given_to(program), |tool, argument| tool.arg(argument));
    tool.run()
}

/// A file that is no video ends the program with GStreamer's words.
#[track_caller]
fn assert_refuses(files: &Files, program: impl Fn() -> Tool) {
    let text = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(text.path(), "This is no video.\n").expect("it is written");
    for (video, reason) in [
        (text.path(), "type of stream"),
        (Path::new("/nowhere.mp4"), "not found"),
    ] {
        let Finished { success, text } = run(files, program(), &[&video.to_string_lossy()]);
        assert!(!success && text.contains(reason), "{text}");
    }
}

/// The program tracks the clip, ends with an error where there is no video, and shows what was
/// measured: `mesh` of MediaPipe's engine, the key points of YuNet's, the expression of eos', the
/// age of InsightFace's.
#[track_caller]
fn assert_tracks(files: &Files, program: impl Fn() -> Tool, mesh: &[&str]) {
    for (engine, measured) in [
        ("mediapipe", mesh),
        ("opencv-yunet", &[", 5 key points"]),
        ("eos", &[", happiness 0."]),
        ("insightface", &[" years"]),
    ] {
        let has_models = match engine {
            "eos" => files.have(engine),
            "insightface" => files.have_ages(),
            _ => true,
        };
        if !has_models {
            continue;
        }
        let tool = program().env("STEP5_TRACKING_ENGINE", engine);
        let Finished { success, text } = run(files, tool, &[&files.clip.to_string_lossy()]);
        assert!(success, "{text}");
        let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        assert_eq!(count(" tracked"), FRAMES, "{text}");
        assert_eq!(count("  face 1 at "), FRAMES, "{text}");
        for part in measured {
            assert_eq!(count(part), FRAMES, "{part}: {text}");
        }
    }
    assert_refuses(files, program);
}

#[test]
fn rust() {
    let Some(files) = Files::find() else {
        return;
    };
    let program = || docs::crate_example("read_metadata");
    assert_tracks(&files, program, &[", yaw ", ", jawOpen 0."]);
}

/// A face is where the metadata say in frames that were made squares with borders, and larger in
/// larger frames.
#[test]
fn faces_are_cut_out_of_resized_frames() {
    let Some(files) = Files::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (clip, output) = (files.clip.to_string_lossy(), folder.path().join("faces"));
    let output = output.to_string_lossy();
    let program = || docs::crate_example("face_crops");
    let large = "videoscale ! video/x-raw,width=1280,height=720";
    let sizes = [&[][..], &[large]].map(|elements| {
        let Finished { success, text } =
            run(&files, program(), &[&[&*clip, &output], elements].concat());
        assert!(success, "{text}");
        let (size, red) = crop(&Path::new(&*output).join("face-1.png"));
        // A face is redder than borders, shirt and wall are.
        assert!(red > 20.0, "{red}");
        size
    });
    let [small, large] = sizes.map(|(width, height)| [f64::from(width), f64::from(height)]);
    for (small, large) in small.into_iter().zip(large) {
        // 480 of 640 px to 1280 of 640 px.
        let ratio = large / small;
        assert!((ratio - 1280.0 / 480.0).abs() < 0.05, "{small} {large}");
    }

    for (arguments, reason) in [
        (
            &[&*clip, &*output, "videoflip"][..],
            "cropped, rotated or redrew the picture",
        ),
        (&[&*clip, &*output, "nope"], "nope"),
        (&["/nowhere.mp4", &*output], "not found"),
        (&[&*clip], "Usage"),
    ] {
        let Finished { success, text } = run(&files, program(), arguments);
        assert!(!success && text.contains(reason), "{arguments:?}: {text}");
    }
}

/// Width and height of a PNG file, and how much more red than blue it has.
fn crop(path: &Path) -> ((u32, u32), f64) {
    let file = std::fs::File::open(path).expect("the face");
    let mut reader = png::Decoder::new(std::io::BufReader::new(file))
        .read_info()
        .expect("a PNG file");
    let mut rgb = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut rgb).expect("a picture");
    let mean = |channel: usize| {
        let levels = rgb
            .iter()
            .skip(channel)
            .step_by(3)
            .map(|level| f64::from(*level));
        levels.sum::<f64>() / (rgb.len() / 3) as f64
    };
    ((info.width, info.height), mean(0) - mean(2))
}

#[test]
fn a_face_becomes_an_obj_file() {
    let Some(files) = Files::find().filter(|files| files.have("eos")) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("face.obj");
    let output = output.to_string_lossy();
    let clip = files.clip.to_string_lossy();
    let export = |video: &str, frame: &str| {
        let program = docs::crate_example("face_to_obj");
        run(&files, program, &[video, &*output, frame])
    };
    let Finished { success, text } = export(&clip, "3");
    assert!(success, "{text}");
    let face = std::fs::read_to_string(&*output).expect("the file");
    let count = |key: &str| face.lines().filter(|line| line.starts_with(key)).count();
    assert_eq!([count("v "), count("vt "), count("f ")], [3448, 3448, 6736]);
    assert!(!face.contains("NaN") && !face.contains("inf"));

    for (video, frame, reason) in [
        (&*clip, "1000", "has no frame 1000"),
        (&*clip, "0", "0 is no frame"),
        (&*output, "1", "text file"),
        ("/nowhere.mp4", "1", "not found"),
    ] {
        let Finished { success, text } = export(video, frame);
        assert!(!success && text.contains(reason), "{video}: {text}");
    }
}

/// Only the domain, on frames from a pipe.
#[test]
fn raw_frames_become_lines() {
    let Some(files) = Files::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let frames = folder.path().join("frames");
    let line = format!(
        "filesrc location={} ! decodebin ! videoconvert ! video/x-raw,format=RGB ! filesink location={}",
        files.clip.display(),
        frames.display()
    );
    common::init();
    common::play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
    let track = |arguments: &str| {
        let frames = std::fs::File::open(&frames).expect("the frames");
        let program = docs::crate_example("raw_frames").args(arguments);
        files.given_to(program).stdin(frames).run()
    };
    let Finished { success, text } = track("mediapipe 640 360 30 max-faces=1");
    assert!(success, "{text}");
    let faces = text.lines().filter(|line| line.contains(r#""jawOpen":0."#));
    assert_eq!(faces.count(), FRAMES, "{text}");
    for (arguments, reason) in [
        ("mediapipe 640", "usage"),
        ("nope 640 360 30", "unknown engine"),
        ("mediapipe 640 360 30 tail=long", "unknown option"),
    ] {
        let Finished { success, text } = track(arguments);
        assert!(!success && text.contains(reason), "{text}");
    }
}

/// Only the domain, on pictures.
#[test]
fn pictures_are_tracked_and_drawn_into() {
    let Some(files) = Files::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let [one, drawn] = ["one.png", "drawn.png"].map(at);
    let line = format!(
        "filesrc location={} ! decodebin ! videoconvert ! pngenc snapshot=true ! filesink location={one}",
        files.clip.display(),
    );
    common::init();
    common::play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
    // So that a tracker gets several pictures.
    let count = 1 + std::thread::available_parallelism().map_or(1, usize::from);
    for number in 1..count {
        std::fs::copy(&one, at(&format!("{number}.png"))).expect("a copy");
    }
    let run = |name: &str, arguments: &[&str]| {
        let Finished { success, text } = run(&files, docs::crate_example(name), arguments);
        assert!(success, "{name}: {text}");
        text
    };
    let frame = run("picture", &[&one]);
    assert!(frame.contains(r#""jawOpen":0."#), "{frame}");
    let lines = run("folder", &[&folder.path().to_string_lossy()]);
    assert_eq!(lines.matches(frame.trim()).count(), count, "{lines}");
    run("draw", &[&one, &drawn]);
    let [before, after] = [&one, &drawn].map(|path| std::fs::read(path).expect("a picture"));
    assert_ne!(before, after);
    let own = run("own_engine", &[]);
    assert_eq!(own.matches("face 1 at ").count(), 3, "{own}");
}

#[test]
fn python() {
    let Some(files) = Files::find() else {
        return;
    };
    let program = || docs::script("examples/read_metadata.py");
    assert_tracks(&files, program, MESH);
}

#[test]
fn c() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("read_metadata");
    compile(&program);
    let Some(files) = Files::find() else {
        return;
    };
    let program = || Tool::new(&program.to_string_lossy());
    assert_tracks(&files, program, MESH);
}

fn compile(program: &Path) {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "gstreamer-app-1.0"])
        .output()
        .expect("pkg-config is installed");
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let status = Command::new("gcc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(program)
        .arg(file("examples/read_metadata.c"))
        .args(flags.split_whitespace())
        .arg("-lm")
        .status()
        .expect("gcc is installed");
    assert!(status.success());
}
