// SPDX-License-Identifier: MPL-2.0
//! Texts of a run, on a terminal and elsewhere.

use std::fs::{self, File};

use serde_json::Value as Json;

use crate::clips;
use crate::program::{SCRIPTED, run};

/// A name that sets the title of a terminal, and claims that all is well.
const NAME: &str = "a\u{1b}]0;title\u{7}\u{9b}2J\r\n[1] complete b";

#[test]
fn names_do_not_control_the_terminal() {
    let folder = clips::videos(&[]);
    let folder = folder.path();
    let video = folder.join("in").join(format!("{NAME}.mp4"));
    fs::write(&video, "no video").expect("room");
    let escaped = r"a\u{1b}]0;title\u{7}\u{9b}2J\r\n[1] complete b.mp4";
    for (code, arguments) in [(0, "--dry-run"), (42, ""), (42, "--force --segment 1s")] {
        let text = run(folder, &format!("in --out out {SCRIPTED} {arguments}")).exits(code);
        let mut raw = text.chars().filter(|c| c.is_control() && *c != '\n');
        assert_eq!(raw.next(), None, "{text:?}");
        assert!(text.contains(escaped), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("[1] complete")));
    }
    let text = run(folder, &format!("in --out out --force --json {SCRIPTED}")).exits(42);
    let mut events = text
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).expect(line));
    assert!(events.any(|event| event["id"] == NAME), "{text}");
}

/// `/dev/full` is a disk without room.
#[test]
fn results_that_cannot_be_shown_are_a_reason_to_try_again() {
    let folder = clips::videos(&[2]);
    let folder = folder.path();
    for arguments in ["", "--json", "--dry-run"] {
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux");
        let run = run(
            folder,
            &format!("in --out out --force {SCRIPTED} {arguments}"),
        );
        let status = run.start_with(full.into()).wait().expect("it ends");
        assert_eq!(status.code(), Some(75), "{arguments}");
    }
}
