// SPDX-License-Identifier: MPL-2.0
//! The README says what is so: its commands run, its snippets compile, its tables are those of the elements.
#![cfg(all(feature = "gst", feature = "onnx"))]

mod common;
mod docs;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use gstfacetrack::face::options::facetrack::FACETRACK;
use gstfacetrack::face::options::markdown;
use gstfacetrack::face::options::trackjsonsink::TRACKJSONSINK;
use gstfacetrack::face::options::trackudpsink::TRACKUDPSINK;

/// Set to have the test write the tables instead of comparing them.
const UPDATE: &str = "UPDATE_README";

/// The blocks of code in one language.
fn blocks(language: &str) -> Vec<String> {
    let readme = docs::text("README.md");
    let fence = format!("```{language}\n");
    readme
        .split(&fence)
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next().map(str::to_owned))
        .collect()
}

#[test]
fn every_command_runs_or_is_run_by_the_makefile() {
    let commands: Vec<String> = blocks("sh")
        .iter()
        .flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(commands.len() > 5, "{commands:?}");
    for command in &commands {
        check(command);
    }
}

fn check(command: &str) {
    let first = command.split([' ', '"']).next().unwrap_or_default();
    match first {
        "make" => has_target(command.trim_start_matches("make ")),
        "eval" => has_target("env"),
        "cargo" => assert!(
            docs::text("Makefile").contains(command),
            "`make` does not run `{command}`"
        ),
        "meson" | "ninja" => assert!(docs::file("meson.build").is_file()),
        "gst-launch-1.0" | "gst-inspect-1.0" => {
            if let Some(finished) = docs::run(command) {
                assert!(finished.success, "{command}\n{}", finished.text);
                assert!(!finished.text.is_empty(), "{command} shows nothing");
            }
        }
        other => panic!("nothing here checks commands like `{other}`: {command}"),
    }
}

fn has_target(target: &str) {
    let makefile = docs::text("Makefile");
    assert!(
        makefile.contains(&format!("\n{target}: ")),
        "the Makefile has no target `{target}`"
    );
}

#[test]
fn the_property_tables_are_those_of_the_elements() {
    let path = docs::file("README.md");
    let readme = docs::text("README.md");
    let mut expected = readme.clone();
    for (element, options) in [
        ("facetrack", FACETRACK),
        ("trackjsonsink", TRACKJSONSINK),
        ("trackudpsink", TRACKUDPSINK),
    ] {
        let start = format!("<!-- properties of {element}: written by tests/readme.rs -->\n");
        let (before, rest) = expected.split_once(&start).expect("a start mark");
        let (_, after) = rest
            .split_once("<!-- end of properties -->")
            .expect("an end mark");
        let table = markdown::table(options);
        expected = format!("{before}{start}{table}<!-- end of properties -->{after}");
    }
    if std::env::var_os(UPDATE).is_some() {
        fs::write(path, expected).expect("the README can be written");
        return;
    }
    assert!(
        readme == expected,
        "the README's tables are out of date: run `{UPDATE}=1 cargo test --test readme`"
    );
}

#[test]
fn the_c_snippet_compiles() {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "gstreamer-1.0"])
        .output()
        .expect("pkg-config is installed");
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    for snippet in blocks("c") {
        let source = format!(
            "#include <gst/gst.h>\n{snippet}\nint main (void) {{ return (int) count_faces (NULL); }}\n"
        );
        let mut compiler = Command::new("gcc")
            .args([
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsyntax-only",
                "-x",
                "c",
                "-",
            ])
            .args(flags.split_whitespace())
            .stdin(Stdio::piped())
            .spawn()
            .expect("gcc is installed");
        let input = compiler.stdin.take();
        input
            .expect("a pipe")
            .write_all(source.as_bytes())
            .expect("gcc reads");
        assert!(compiler.wait().expect("gcc ends").success(), "{source}");
    }
}

#[test]
fn the_python_snippet_reads_landmarks() {
    let snippets = blocks("python");
    assert_eq!(snippets.len(), 1);
    let program = format!(
        "{}\n{}",
        snippets[0],
        r#"
import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp
Gst.init(None)
pipeline = Gst.parse_launch("filesrc location=clip.mp4 ! decodebin ! facetrack ! appsink name=sink sync=false")
pipeline.set_state(Gst.State.PLAYING)
points = landmarks(pipeline.get_by_name("sink").pull_sample().get_buffer(), 0)
pipeline.set_state(Gst.State.NULL)
assert len(points) == 478, len(points)
assert all(0 < x < 640 and 0 < y < 360 for x, y, _ in points), points
"#
    );
    let script = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(script.path(), program).expect("it can be written");
    // Debian's own interpreter, which has the bindings.
    let command = format!("/usr/bin/python3 {} # facetrack", script.path().display());
    if let Some(finished) = docs::run(&command) {
        assert!(finished.success, "{}", finished.text);
    }
}
