// SPDX-License-Identifier: MPL-2.0
//! A short clip of a drawn face, as a file that GStreamer plays without a codec.

use tempfile::TempDir;

use super::drawn::{self, Face};

/// Size of the frames, px.
const WIDTH: usize = 320;
const HEIGHT: usize = 240;

/// Frames in the clip, each with the face a little to the right.
pub const FRAMES: usize = 5;

/// The clip, in a folder of its own.
pub struct Clip {
    folder: TempDir,
}

impl Clip {
    pub fn draw() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let frames = (0..FRAMES as u32).flat_map(|index| {
            let face = Face {
                x: 150.0 + 4.0 * f64::from(index),
                y: 115.0,
                size: 60.0,
                half_roll: 0.05,
                jaw: 0.3,
                blink: 0.0,
            };
            drawn::draw(WIDTH, HEIGHT, &[face])
        });
        std::fs::write(folder.path().join("face.rgb"), frames.collect::<Vec<_>>())
            .expect("the clip can be written");
        Self { folder }
    }

    /// Elements that yield the frames.
    pub fn source(&self) -> String {
        format!(
            "filesrc location={}/face.rgb ! rawvideoparse format=rgb width={WIDTH} height={HEIGHT} framerate=25/1",
            self.folder.path().display()
        )
    }
}
