// SPDX-License-Identifier: MPL-2.0
//! The layers of the overlay.

use crate::words::flags;

flags! {
    /// A set of layers.
    pub struct Layers, words layers_words;
    BOXES = 0, "boxes": "box of each face, dashed if the face was not measured in this frame";
    LABELS = 1, "labels": "number and confidence of each face";
    POINTS = 2, "points": "every landmark";
    MESH = 3, "mesh": "edges of the face mesh, if the landmarks have one";
    CONTOURS = 4, "contours": "outlines of face, brows, eyes, nose and lips";
    KEY_POINTS = 5, "key-points": "key points of the detector";
    POSE = 6, "pose": "axes of the head: x to its left, y up, z out of the face";
    GAZE = 7, "gaze": "pupils, and their offset from the middle of the eye";
    BLENDSHAPES = 8, "blendshapes": "bars of the strongest blendshapes";
    INFO = 9, "info": "engine, device, GPU memory, status, frames per second, mean time of the last ten analyses, and lateness of the frame";
}
