// SPDX-License-Identifier: MPL-2.0
//! What is drawn.

use crate::options::flags;

flags! {
    /// A set of layers.
    pub struct Layers;
    BOXES = 0, "boxes": "box of each face, dashed where the face was not measured in this frame";
    LABELS = 1, "labels": "number and score of each face";
    POINTS = 2, "points": "every landmark";
    MESH = 3, "mesh": "edges of the face mesh, where the landmarks are those of one";
    CONTOURS = 4, "contours": "outlines of face, brows, eyes, nose and lips";
    KEY_POINTS = 5, "key-points": "key points of the detector";
    POSE = 6, "pose": "axes of the head: x to its left, y up, z out of the face";
    GAZE = 7, "gaze": "pupils, and where they are off the middle of the eye";
    BLENDSHAPES = 8, "blendshapes": "bars of the strongest blendshapes";
    INFO = 9, "info": "engine, device, status, frames a second, and how late the frame is";
}
