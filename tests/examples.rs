// SPDX-License-Identifier: MPL-2.0
//! The example programs on the sample clip: three languages, one answer.
#![cfg(all(feature = "gst", feature = "onnx"))]

mod common;
mod docs;

use std::path::Path;
use std::process::Command;

use common::tool::{Finished, Tool};
use docs::Files;

/// Frames of the sample clip, each with one face.
const FRAMES: usize = 72;

/// What the programs that need no crate print of landmarks and blendshapes.
const MESH: &str = ", 478 landmarks, jawOpen 0.";

fn run(files: &Files, engine: &str, program: &Path, arguments: &[&str], video: &Path) -> Finished {
    let tool = files.given_to(Tool::new(&program.to_string_lossy()));
    let mut tool = tool.env("STEP5_TRACKING_ENGINE", engine);
    for argument in arguments {
        tool = tool.arg(argument);
    }
    tool.arg(&video.to_string_lossy()).run()
}

/// A file that is no video ends the program with GStreamer's words.
#[track_caller]
fn assert_refuses(files: &Files, program: &Path, arguments: &[&str]) {
    let text = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(text.path(), "This is no video.\n").expect("it is written");
    for (video, reason) in [
        (text.path(), "type of stream"),
        (Path::new("/nowhere.mp4"), "not found"),
    ] {
        let Finished { success, text } = run(files, "mediapipe", program, arguments, video);
        assert!(!success && text.contains(reason), "{text}");
    }
}

/// The program tracks the clip, ends with an error where there is no video, and shows what was measured: `mesh` of MediaPipe's engine, the key points of YuNet's, the
/// expression of eos', the age of InsightFace's.
#[track_caller]
fn assert_tracks(files: &Files, program: &Path, arguments: &[&str], mesh: &str) {
    for (engine, measured) in [
        ("mediapipe", mesh),
        ("opencv-yunet", ", 5 key points"),
        ("eos", ", happiness 0."),
        ("insightface", " years"),
    ] {
        let has_models = match engine {
            "eos" => files.have(engine),
            "insightface" => files.have_ages(),
            _ => true,
        };
        if !has_models {
            continue;
        }
        let Finished { success, text } = run(files, engine, program, arguments, &files.clip);
        assert!(success, "{text}");
        let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        assert_eq!(count(" tracked"), FRAMES, "{text}");
        assert_eq!(count("  face 1 at "), FRAMES, "{text}");
        assert_eq!(count(measured), FRAMES, "{text}");
    }
    assert_refuses(files, program, arguments);
}

#[test]
fn rust() {
    let Some(files) = Files::find() else {
        return;
    };
    // Cargo has built it when every test runs, not when this one runs alone.
    let run_example = [
        "run",
        "--quiet",
        "--locked",
        "--example",
        "read_metadata",
        "--",
    ];
    assert_tracks(
        &files,
        Path::new(env!("CARGO")),
        &run_example,
        ", jawOpen 0.",
    );
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
        let arguments = [
            "run",
            "--quiet",
            "--locked",
            "--example",
            "face_to_obj",
            "--",
        ];
        let mut tool = files.given_to(Tool::new(env!("CARGO")));
        for argument in arguments.into_iter().chain([video, &*output, frame]) {
            tool = tool.arg(argument);
        }
        tool.run()
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

#[test]
fn python() {
    let Some(files) = Files::find() else {
        return;
    };
    let script = docs::file("examples/read_metadata.py");
    // Debian's own interpreter, which has the bindings.
    let python = Path::new("/usr/bin/python3");
    assert_tracks(&files, python, &[&script.to_string_lossy()], MESH);
}

#[test]
fn c() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("read_metadata");
    compile(&program);
    let Some(files) = Files::find() else {
        return;
    };
    assert_tracks(&files, &program, &[], MESH);
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
        .arg(docs::file("examples/read_metadata.c"))
        .args(flags.split_whitespace())
        .status()
        .expect("gcc is installed");
    assert!(status.success());
}
