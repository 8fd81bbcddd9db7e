// SPDX-License-Identifier: MPL-2.0
//! Options of the elements.

use std::str::from_utf8;

use gstfacetrack::fuzzing;

/// A value for every option. The text of a property or variable has no NUL.
pub fn options(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    if text.contains('\0') {
        return;
    }
    fuzzing::options(text);
}

/// Each line is the value of a variable.
pub fn environment(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    let text = text.replace('\0', "");
    let values: Vec<String> = text.lines().map(str::to_owned).collect();
    for warning in fuzzing::environment(&values) {
        assert!(warning.contains("environment variable"), "{warning}");
        assert!(warning.contains(" ignored: "), "{warning}");
    }
}
