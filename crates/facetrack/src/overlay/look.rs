// SPDX-License-Identifier: MPL-2.0
//! The color and opacity of a face's drawing.

use super::Style;
use super::color::Rgb;
use crate::observation::Origin;
use crate::report::TrackedFace;

/// Appearance of a face.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub color: Rgb,
    /// True if the face was measured in this frame.
    pub measured: bool,
}

impl Look {
    pub(super) fn of(tracked: &TrackedFace, style: &Style) -> Self {
        Self {
            color: style.color.unwrap_or(Rgb::of_track(tracked.id)),
            measured: matches!(tracked.face.origin, Origin::Detected | Origin::Tracked),
        }
    }

    /// `opacity`, or half of it if the face was not measured in this frame.
    pub(super) fn opacity(self, opacity: u8) -> u8 {
        if self.measured { opacity } else { opacity / 2 }
    }
}
