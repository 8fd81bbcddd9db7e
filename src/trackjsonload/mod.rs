// SPDX-License-Identifier: MPL-2.0
//! The element `trackjsonload`: attaches what a tracking JSON says to the frames that it was recorded of.

use gst::glib;
use gst::prelude::*;

mod imp;
mod replaying;

glib::wrapper! {
    /// Attaches what `trackjsonsink` wrote.
    pub struct TrackJsonLoad(ObjectSubclass<imp::TrackJsonLoad>)
        @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Values of the property `match`; the words of [`facetrack::options::trackjsonload::MatchBy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstTrackJsonLoadMatch")]
pub enum TrackJsonLoadMatch {
    /// The time, or the number where there is none.
    #[default]
    #[enum_value(
        name = "the time; the frame number where buffer or file have no times",
        nick = "auto"
    )]
    Auto,
    /// The time.
    #[enum_value(
        name = "the time, which also holds after seeking and where frames are missing",
        nick = "pts"
    )]
    Pts,
    /// The frame number.
    #[enum_value(
        name = "the frame number, counted as trackjsonsink does, and after seeking from where it went",
        nick = "frame"
    )]
    Frame,
}

/// Registers the element with `plugin`.
///
/// # Errors
/// When GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "trackjsonload",
        gst::Rank::NONE,
        TrackJsonLoad::static_type(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use facetrack::options::trackjsonload::MatchBy;

    #[test]
    fn the_enum_has_the_words_of_the_option() {
        let class = glib::EnumClass::new::<TrackJsonLoadMatch>();
        let words: Vec<_> = class
            .values()
            .iter()
            .map(|value| (value.nick(), value.name()))
            .collect();
        let choices: Vec<_> = MatchBy::CHOICES
            .iter()
            .map(|choice| (choice.nick, choice.blurb))
            .collect();
        assert_eq!(words, choices);
    }
}
