// SPDX-License-Identifier: MPL-2.0
//! Clips as phones record them: pixels as the sensor has them, and a matrix that says how to turn
//! them.

use std::path::Path;

use super::play_to_end;

/// A clip that is to be turned.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    /// The value of the tag `image-orientation`.
    pub tag: &'static str,
    /// The `video-direction` that undoes it.
    back: &'static str,
    /// The first two columns of the first two rows of the matrix.
    matrix: [[i32; 2]; 2],
}

/// No rotation.
pub const UPRIGHT: Rotation = Rotation {
    tag: "rotate-0",
    back: "identity",
    matrix: [[1, 0], [0, 1]],
};

/// By a quarter, half and three quarters, clockwise.
pub const ROTATIONS: [Rotation; 3] = [
    Rotation {
        tag: "rotate-90",
        back: "90l",
        matrix: [[0, 1], [-1, 0]],
    },
    Rotation {
        tag: "rotate-180",
        back: "180",
        matrix: [[-1, 0], [0, -1]],
    },
    Rotation {
        tag: "rotate-270",
        back: "90r",
        matrix: [[0, -1], [1, 0]],
    },
];

/// Bytes from the type of a track header of version 0 to its matrix.
const MATRIX_OFFSET: usize = 44;

/// Writes the upright frames of `source` without loss as an MP4 file that players have to turn.
pub fn write(source: &str, rotation: Rotation, path: &Path) {
    let line = format!(
        "{source} ! videoconvert ! video/x-raw,format=I420 ! videoflip video-direction={} ! \
         x264enc pass=quant quantizer=0 speed-preset=ultrafast ! mp4mux ! filesink location={}",
        rotation.back,
        path.display()
    );
    play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
    let mut file = std::fs::read(path).expect("the clip");
    let header = file.windows(4).position(|bytes| bytes == b"tkhd");
    let header = header.expect("a track header");
    assert_eq!(file[header + 4], 0, "the version of the header");
    for (row, values) in rotation.matrix.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            let at = header + MATRIX_OFFSET + 4 * (3 * row + column);
            file[at..at + 4].copy_from_slice(&(value << 16).to_be_bytes());
        }
    }
    std::fs::write(path, file).expect("the clip can be written");
}
