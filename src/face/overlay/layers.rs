// SPDX-License-Identifier: MPL-2.0
//! What is drawn.

use crate::face::options::{Choice, FromValue, Value};

/// A set of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers(u32);

macro_rules! layers {
    ($($name:ident = $bit:literal, $nick:literal: $blurb:literal;)*) => {
        impl Layers {
            $(
                #[doc = concat!("`", $nick, "`: ", $blurb, ".")]
                pub const $name: Self = Self(1 << $bit);
            )*

            /// Their words, in the order of their bits.
            pub const CHOICES: &'static [Choice] = &[
                $(Choice { nick: $nick, blurb: $blurb },)*
            ];
        }
    };
}

layers! {
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

impl Layers {
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// Whether all of `others` are among them.
    pub fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

impl std::ops::BitOr for Layers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromValue for Layers {
    /// The words that are joined by `+`.
    fn from_value(value: Option<&Value>) -> Option<Self> {
        let Some(Value::Text(text)) = value else {
            return None;
        };
        let words = text.split('+').filter(|word| !word.is_empty());
        words
            .map(|word| {
                let bit = Self::CHOICES
                    .iter()
                    .position(|choice| choice.nick == word)?;
                Some(Self(1 << bit))
            })
            .try_fold(Self::NONE, |all, layer| Some(all | layer?))
    }
}
