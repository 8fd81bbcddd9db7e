// SPDX-License-Identifier: MPL-2.0
//! The text of the app iFacialMocap, after its page "for developers", and as VMagicMirror and
//! VRCFaceTracking's module read it.
//!
//! `jawOpen-12|…|=head#x,y,z,px,py,pz|rightEye#x,y,z|leftEye#x,y,z|`
//!
//! - A channel is a whole number 0…100. Channels of one side end in `_L` and `_R`; `jawLeft`,
//!   `jawRight`, `mouthLeft` and `mouthRight` keep their names. In version 2, an `&` separates name
//!   and value.
//! - Angles are degrees around x, y and z of a right-handed space with y up and z out of the face:
//!   pitch downward, yaw to the left side of the face and roll to its right shoulder are positive.
//!   The page does not state this; in its example, eyes that look down have a positive x, and a
//!   right eye that looks in has a positive y. VMagicMirror and VTube-IFacial-Link turn heads like
//!   this.
//! - The position is in metres in the space of the camera, which looks along −z. In the example, z
//!   is −0.66. A position that was not measured is 0, because receivers need six numbers.
//! - A head or an eye that was not measured is left out. The `=` remains, which VMagicMirror needs.

use super::avatar::{Avatar, EyeAngles, Head};

/// The port on which the app and receivers listen.
pub const PORT: u16 = 49983;

/// The message with which a receiver asks for packets.
const START: &str = "iFacialMocap_sahuasouryya9218sauhuiayeta91555dy3719";

/// The end of that message if the receiver wants version 2.
const VERSION_TWO: &str = "|sendDataVersion=v2";

/// Form of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// A `-` between name and value.
    #[default]
    One,
    /// An `&` between name and value.
    Two,
}

impl Version {
    /// The version that a message asks for; `None` if it does not ask for packets over UDP.
    pub fn requested_by(message: &[u8]) -> Option<Self> {
        let message = std::str::from_utf8(message).ok()?;
        match message.trim_ascii().strip_prefix(START)? {
            "" => Some(Self::One),
            VERSION_TWO => Some(Self::Two),
            _ => None,
        }
    }

    fn separator(self) -> char {
        match self {
            Self::One => '-',
            Self::Two => '&',
        }
    }
}

/// The text of a face.
pub fn encode(avatar: &Avatar, version: Version) -> Vec<u8> {
    let separator = version.separator();
    let mut text = String::new();
    for (channel, value) in avatar.measured() {
        let percent = (value * 100.0).round();
        text += &format!("{}{separator}{percent}|", name(channel));
    }
    text.push('=');
    if let Some(head) = &avatar.head {
        push_numbers(&mut text, "head", &of_head(head));
    } else {
        // Receivers that search for `=head#` read the following text as other parts.
        text.push('|');
    }
    let [left, right] = avatar.eyes();
    for (part, eye) in [("rightEye", right), ("leftEye", left)] {
        if let Some(eye) = eye {
            push_numbers(&mut text, part, &of_eye(&eye));
        }
    }
    text.into_bytes()
}

/// Angles around x, y and z, then the position.
fn of_head(head: &Head) -> [f32; 6] {
    let angles = head.angles;
    let [x, y, z] = head.position.unwrap_or_default();
    [angles.pitch, angles.yaw, angles.roll, x, y, z]
}

/// Angles around x, y and z.
fn of_eye(eye: &EyeAngles) -> [f32; 3] {
    [eye.pitch.to_degrees(), eye.yaw.to_degrees(), 0.0]
}

/// The app's name of a channel.
fn name(channel: &str) -> String {
    let sides = [("Left", "_L"), ("Right", "_R")];
    let has_side = !channel.starts_with("jaw") && !["mouthLeft", "mouthRight"].contains(&channel);
    let mut short = sides.iter().filter_map(|(side, letter)| {
        let stem = channel.strip_suffix(side).filter(|_| has_side)?;
        Some(format!("{stem}{letter}"))
    });
    short.next().unwrap_or_else(|| channel.to_owned())
}

fn push_numbers(text: &mut String, part: &str, numbers: &[f32]) {
    let numbers: Vec<_> = numbers
        .iter()
        .map(|number| format!("{number:.5}"))
        .collect();
    *text += &format!("{part}#{}|", numbers.join(","));
}
