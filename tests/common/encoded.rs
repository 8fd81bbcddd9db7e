// SPDX-License-Identifier: MPL-2.0
//! Videos that ffmpeg makes.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::skip_for_want_of;

/// Returns true if ffmpeg is installed; otherwise prints that it is missing.
pub fn has_ffmpeg() -> bool {
    let version = Command::new("ffmpeg")
        .arg("-version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let there = version.is_ok_and(|status| status.success());
    if !there {
        skip_for_want_of("ffmpeg", "ffmpeg");
    }
    there
}

/// Has ffmpeg write `path`, by arguments that blanks separate.
#[track_caller]
pub fn ffmpeg(arguments: &str, path: &Path) {
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-y"])
        .args(arguments.split_whitespace())
        .arg(path)
        .output()
        .expect("ffmpeg is installed");
    let text = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{arguments}: {text}");
}

/// Frames of the video that ffmpeg decodes.
pub fn decoded_frames(path: &Path) -> u64 {
    let counted = Command::new("ffprobe")
        .args(["-v", "quiet", "-count_frames", "-select_streams", "v:0"])
        .args(["-show_entries", "stream=nb_read_frames", "-of", "csv=p=0"])
        .arg(path)
        .output()
        .expect("ffprobe comes with ffmpeg");
    let text = String::from_utf8_lossy(&counted.stdout);
    let number = text.split([',', '\n']).next().unwrap_or_default();
    number.trim().parse().unwrap_or(0)
}
