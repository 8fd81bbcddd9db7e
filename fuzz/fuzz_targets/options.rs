// SPDX-License-Identifier: MPL-2.0
//! Options of the elements.

use std::str::from_utf8;

use gstfacetrack::fuzzing;

/// Each line is the value of an option.
pub fn options(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    fuzzing::options(text);
}

/// Each line is the value of a variable.
pub fn environment(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    let values: Vec<String> = text.lines().map(str::to_owned).collect();
    for warning in fuzzing::environment(&values) {
        assert!(warning.contains("environment variable"), "{warning}");
        assert!(warning.contains("ignored: not "), "{warning}");
    }
}
