// SPDX-License-Identifier: MPL-2.0
//! Tests that run in a process of their own.

use std::process::Command;

/// Set for such a test: the test's name.
pub const CHILD: &str = "FACETRACK_TEST_CHILD";

/// Returns true if this is the process of the test.
pub fn is_child(test: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|name| name == test)
}

/// A test of this program in a process of its own.
pub fn child(test: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .env("FACETRACK_TEST_ARGUMENTS", arguments.join("\n"));
    command
}

pub fn arguments() -> Vec<String> {
    let arguments = std::env::var("FACETRACK_TEST_ARGUMENTS").expect("set for the child");
    arguments.lines().map(str::to_owned).collect()
}
