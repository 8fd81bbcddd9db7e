// SPDX-License-Identifier: MPL-2.0
//! The element `trackjsonsink`: writes the tracking JSON.

use gst::glib;
use gst::prelude::*;

mod config;
#[allow(missing_docs, reason = "the macro documents nothing")]
mod fields;
mod following;
mod imp;
mod output;
mod recording;
mod upstream;

pub use fields::Fields as TrackJsonSinkFields;

glib::wrapper! {
    /// Writes what `facetrack` found to a file.
    pub struct TrackJsonSink(ObjectSubclass<imp::TrackJsonSink>)
        @extends gst_base::BaseSink, gst::Element, gst::Object;
}

/// Form of the record; the words of [`facetrack::options::trackjsonsink::Format`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstTrackJsonSinkFormat")]
pub enum TrackJsonSinkFormat {
    /// One JSON object.
    #[default]
    #[enum_value(
        name = "Dense: one JSON object, all of every frame, a frame a line",
        nick = "dense"
    )]
    Dense,
    /// Lines.
    #[enum_value(
        name = "Jsonl: a JSON object a line: header, frames, trailer; flushed per line",
        nick = "jsonl"
    )]
    Jsonl,
    /// One small JSON object.
    #[enum_value(
        name = "Reduced: one JSON object with ids, positions and sizes alone",
        nick = "reduced"
    )]
    Reduced,
}

/// How missing frames are recognised; the words of [`facetrack::options::trackjsonsink::FillBy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstTrackJsonSinkFillBy")]
pub enum TrackJsonSinkFillBy {
    /// By interruptions.
    #[default]
    #[enum_value(
        name = "Loss: where frames are known to be lost, after an interruption or in a gap of missing data",
        nick = "loss"
    )]
    Loss,
    /// By time.
    #[enum_value(
        name = "Timestamps: wherever time passes without a frame, at a constant nominal rate",
        nick = "timestamps"
    )]
    Timestamps,
}

/// Registers the element with `plugin`.
///
/// # Errors
/// When GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "trackjsonsink",
        gst::Rank::NONE,
        TrackJsonSink::static_type(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use facetrack::options::Choice;
    use facetrack::options::trackjsonsink::{FillBy, Format};

    #[test]
    fn the_enums_have_the_words_of_the_options() {
        fn assert_words<T: StaticType>(choices: &[Choice]) {
            let class = glib::EnumClass::with_type(T::static_type()).expect("an enum");
            let nicks: Vec<_> = class.values().iter().map(|value| value.nick()).collect();
            let words: Vec<_> = choices.iter().map(|choice| choice.nick).collect();
            assert_eq!(nicks, words);
        }
        assert_words::<TrackJsonSinkFormat>(Format::CHOICES);
        assert_words::<TrackJsonSinkFillBy>(FillBy::CHOICES);
    }
}
