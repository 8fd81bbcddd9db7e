// SPDX-License-Identifier: MPL-2.0
//! Videos to track.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common;

/// Writes a video of `frames` frames at 25 fps, 160×120.
pub fn video(path: &Path, frames: u32) {
    let pattern = frames % 20;
    play(&format!(
        "videotestsrc num-buffers={frames} pattern={pattern} ! video/x-raw,format=I420,width=160,height=120,framerate=25/1 ! \
         x264enc speed-preset=ultrafast key-int-max=10 ! mp4mux faststart=true ! filesink location={}",
        path.display()
    ));
}

/// Plays a pipeline to its end.
pub fn play(line: &str) {
    common::init();
    common::play_to_end(&gst::parse::launch(line).expect("a pipeline"));
}

/// Videos of these lengths in the folder `in` of a new folder.
pub fn videos(lengths: &[u32]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("in")).expect("a folder");
    for (number, frames) in lengths.iter().enumerate() {
        video(&folder.path().join(format!("in/clip{number}.mp4")), *frames);
    }
    folder
}

/// The beginning of a video, `share` of its bytes.
pub fn cut(video: &Path, share: f64, path: &Path) {
    let bytes = fs::read(video).expect("a video");
    let length = (bytes.len() as f64 * share) as usize;
    fs::write(path, &bytes[..length]).expect("room");
}

/// Real videos; says so if there are none.
pub fn recorded() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("FACETRACK_REFERENCE_DIR") else {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
        return Vec::new();
    };
    let names = ["pyfeat_single_face", "pyfeat_no_face", "synth_gap"];
    let folder = PathBuf::from(folder).join("media");
    names
        .map(|name| folder.join(format!("{name}.mp4")))
        .to_vec()
}
