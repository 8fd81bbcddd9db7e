// SPDX-License-Identifier: MPL-2.0
//! Videos as other programs write them, made of the sample clip.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::engine::installed_paths;

/// The sample clip; `None`, reported, where it was not fetched or `ffmpeg` is missing.
pub fn sample() -> Option<PathBuf> {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        super::skip_for_want_of("ffmpeg", "ffmpeg");
        return None;
    }
    let clip = installed_paths()
        .data_dir
        .map(|data| data.join("samples/single_face.mp4"));
    let clip = clip.filter(|clip| clip.is_file());
    if clip.is_none() {
        eprintln!("SKIPPED: the sample clip is missing. Run `make setup`");
    }
    clip
}

/// Writes the first `frames` frames of `clip`, without sound, to `target` as `options` say.
pub fn encode(clip: &Path, frames: usize, options: &str, target: &Path) {
    let output = Command::new("ffmpeg")
        .args(["-y", "-v", "error", "-i"])
        .arg(clip)
        .args(["-an", "-frames:v", &frames.to_string()])
        .args(options.split_whitespace())
        .arg(target)
        .output()
        .expect("ffmpeg starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{options}: {text}");
}
