// SPDX-License-Identifier: MPL-2.0
//! The layers as flags of GObject.

use gst::glib;

/// Values of the property `layers`: [`facetrack::overlay::Layers`].
#[glib::flags(name = "GstFaceTrackOverlayLayers")]
pub enum Layers {
    #[flags_value(
        name = "box of each face, dashed where the face was not measured in this frame",
        nick = "boxes"
    )]
    BOXES = 1 << 0,
    #[flags_value(name = "number and score of each face", nick = "labels")]
    LABELS = 1 << 1,
    #[flags_value(name = "every landmark", nick = "points")]
    POINTS = 1 << 2,
    #[flags_value(
        name = "edges of the face mesh, where the landmarks are those of one",
        nick = "mesh"
    )]
    MESH = 1 << 3,
    #[flags_value(
        name = "outlines of face, brows, eyes, nose and lips",
        nick = "contours"
    )]
    CONTOURS = 1 << 4,
    #[flags_value(name = "key points of the detector", nick = "key-points")]
    KEY_POINTS = 1 << 5,
    #[flags_value(
        name = "axes of the head: x to its left, y up, z out of the face",
        nick = "pose"
    )]
    POSE = 1 << 6,
    #[flags_value(
        name = "pupils, and where they are off the middle of the eye",
        nick = "gaze"
    )]
    GAZE = 1 << 7,
    #[flags_value(name = "bars of the strongest blendshapes", nick = "blendshapes")]
    BLENDSHAPES = 1 << 8,
    #[flags_value(
        name = "engine, device, status, frames a second, and how late the frame is",
        nick = "info"
    )]
    INFO = 1 << 9,
}

impl Default for Layers {
    fn default() -> Self {
        Self::all().difference(Self::POINTS | Self::MESH)
    }
}

#[cfg(test)]
mod tests {
    use super::{Layers, glib};
    use facetrack::overlay::Layers as Drawn;

    #[test]
    fn the_flags_have_the_words_of_the_option() {
        let class = glib::FlagsClass::new::<Layers>();
        let flags = class.values();
        let flags = flags
            .iter()
            .map(|flag| (flag.value(), flag.nick(), flag.name()));
        let choices = Drawn::CHOICES.iter().enumerate();
        let choices = choices.map(|(bit, choice)| (1 << bit, choice.nick, choice.blurb));
        assert!(flags.eq(choices));
    }
}
