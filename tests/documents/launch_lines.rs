// SPDX-License-Identifier: MPL-2.0
//! Every launch line in the documentation of the elements, as a user would type it.

use crate::commands;
use crate::docs;

use crate::common::tool::Finished;

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
        commands::launch(path, &line);
    }
}

#[test]
fn of_facetrack() {
    run_all("src/facetrack/imp.rs");
}

#[test]
fn of_trackjsonload() {
    run_all("src/trackjsonload/imp.rs");
}

#[test]
fn of_facetrackblur() {
    run_all("src/facetrackblur/imp.rs");
}

#[test]
fn of_facetrackoverlay() {
    run_all("src/facetrackoverlay/imp.rs");
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
fn lines_are_found_in_comments_and_after_variables() {
    let text =
        " * gst-launch-1.0 a ! b\n# prose gst-launch-1.0\nGST_DEBUG=x:4 gst-launch-1.0 c\n * |[\n";
    assert_eq!(
        launch_lines(text),
        ["gst-launch-1.0 a ! b", "GST_DEBUG=x:4 gst-launch-1.0 c"]
    );
}

#[test]
fn lines_may_fail_for_a_pause_alone_that_rtspsrc_cancels_behind_their_end() {
    let closing = "ERROR: from element /GstPipeline:p/GstRTSPSrc:r: Could not write to resource.\n";
    let broken = "ERROR: from element /GstPipeline:p/GstFakeSink:f: broken\n";
    let ended = "Got EOS from element \"p\".\n";
    for (said, good) in [
        (vec![ended, closing], true),
        (vec![closing], false),
        (vec![ended], false),
        (vec![ended, broken], false),
        (vec![ended, closing, broken], false),
    ] {
        let (success, text) = (false, said.concat());
        let finished = Finished { success, text };
        assert_eq!(docs::came_to_its_end(&finished), good, "{said:?}");
    }
}
