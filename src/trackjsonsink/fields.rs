// SPDX-License-Identifier: MPL-2.0
//! The fields as flags of GObject.

use gst::glib;

/// Values of the property `fields`: [`facetrack::record::Fields`].
#[glib::flags(name = "GstTrackJsonSinkFields")]
pub enum Fields {
    #[flags_value(
        name = "landmarks, landmark_confidence and landmarks_106",
        nick = "landmarks"
    )]
    LANDMARKS = 1 << 0,
    #[flags_value(name = "the box with decimals", nick = "box")]
    BOX = 1 << 1,
    #[flags_value(name = "key points of the detector", nick = "key-points")]
    KEY_POINTS = 1 << 2,
    #[flags_value(name = "position and rotation of the head", nick = "pose")]
    POSE = 1 << 3,
    #[flags_value(name = "age and gender", nick = "attributes")]
    ATTRIBUTES = 1 << 4,
    #[flags_value(name = "embedding, which identifies people", nick = "embedding")]
    EMBEDDING = 1 << 5,
    #[flags_value(name = "pupils", nick = "gaze")]
    GAZE = 1 << 6,
    #[flags_value(name = "OpenSeeFace's features and eye_openness", nick = "features")]
    FEATURES = 1 << 7,
    #[flags_value(name = "OpenSeeFace's fitted face model", nick = "fit")]
    FIT = 1 << 8,
    #[flags_value(
        name = "eos and eos_fit, the fitted morphable model",
        nick = "morphable"
    )]
    MORPHABLE = 1 << 9,
    #[flags_value(name = "origin and blendshapes_source", nick = "origin")]
    ORIGIN = 1 << 10,
}

impl Default for Fields {
    fn default() -> Self {
        Self::empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Fields, glib};
    use facetrack::record::Fields as Written;

    #[test]
    fn the_flags_have_the_words_of_the_option() {
        let class = glib::FlagsClass::new::<Fields>();
        let flags = class.values();
        let flags = flags
            .iter()
            .map(|flag| (flag.value(), flag.nick(), flag.name()));
        let choices = Written::CHOICES.iter().enumerate();
        let choices = choices.map(|(bit, choice)| (1 << bit, choice.nick, choice.blurb));
        assert!(flags.eq(choices));
    }
}
