// SPDX-License-Identifier: MPL-2.0
//! Every launch line of the elements' documentation and of the examples, as a user would type it.
#![cfg(all(feature = "gst", feature = "onnx"))]

mod common;
mod docs;

/// The launch lines in a text, whatever comments and markup stand around them.
fn launch_lines(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.trim().trim_start_matches("* ").trim())
        .filter(|line| {
            let mut words = line.split_whitespace();
            words.find(|word| !word.contains('=')) == Some("gst-launch-1.0")
        })
        .map(str::to_owned)
        .collect()
}

fn run_all(path: &str) {
    let lines = launch_lines(&docs::text(path));
    assert!(!lines.is_empty(), "{path} has no launch lines");
    for line in lines {
        if let Some(finished) = docs::run(&line) {
            assert!(finished.success, "{path}: {line}\n{}", finished.text);
            assert!(
                !finished.text.contains("ERROR"),
                "{line}\n{}",
                finished.text
            );
        }
    }
}

#[test]
fn of_facetrack() {
    run_all("src/facetrack/imp.rs");
}

#[test]
fn of_trackjsonsink() {
    run_all("src/trackjsonsink/imp.rs");
}

#[test]
fn of_trackudpsink() {
    run_all("src/trackudpsink/imp.rs");
}

#[test]
fn of_the_examples() {
    run_all("examples/launch-lines.txt");
}

#[test]
fn lines_are_found_in_comments_and_after_variables() {
    let text =
        " * gst-launch-1.0 a ! b\n# prose gst-launch-1.0\nGST_DEBUG=x:4 gst-launch-1.0 c\n * |[\n";
    assert_eq!(
        launch_lines(text),
        ["gst-launch-1.0 a ! b", "GST_DEBUG=x:4 gst-launch-1.0 c"]
    );
}
