// SPDX-License-Identifier: MPL-2.0
//! Parts of a face that a record may have.

use crate::words::flags;

flags! {
    /// A set of parts that are added to a face's id, whole pixels, score and blendshapes.
    pub struct Fields, words fields_words;
    LANDMARKS = 0, "landmarks": "landmarks, landmark_confidence and landmarks_106";
    BOX = 1, "box": "the box with decimals";
    KEY_POINTS = 2, "key-points": "key points of the detector";
    POSE = 3, "pose": "position and rotation of the head";
    ATTRIBUTES = 4, "attributes": "age and gender";
    EMBEDDING = 5, "embedding": "embedding, which identifies people";
    GAZE = 6, "gaze": "pupils";
    FEATURES = 7, "features": "OpenSeeFace's features and eye_openness";
    FIT = 8, "fit": "OpenSeeFace's fitted face model";
    MORPHABLE = 9, "morphable": "eos and eos_fit, the fitted morphable model";
    ORIGIN = 10, "origin": "origin and blendshapes_source";
    RAW_BLENDSHAPES = 11, "raw-blendshapes": "blendshapes_raw, the blendshapes before the rest values of the face were subtracted";
}
