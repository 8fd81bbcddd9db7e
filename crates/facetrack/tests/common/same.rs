// SPDX-License-Identifier: MPL-2.0
//! Long texts that are to be the same.
#![allow(dead_code, reason = "each test program uses its part")]

/// Shows where they part, and no more.
#[track_caller]
pub fn assert_same(text: &str, want: &str) {
    if text == want {
        return;
    }
    let pairs = std::iter::zip(text.bytes(), want.bytes());
    let at = pairs.take_while(|(a, b)| a == b).count();
    let around = |text: &str| {
        let (start, end) = (at.saturating_sub(150), (at + 50).min(text.len()));
        String::from_utf8_lossy(&text.as_bytes()[start..end]).into_owned()
    };
    panic!(
        "they part at byte {at}:\n{}\nin place of\n{}",
        around(text),
        around(want)
    );
}
