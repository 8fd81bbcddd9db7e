// SPDX-License-Identifier: MPL-2.0
//! Options of the element `trackjsonsink`.

use gst::glib;
use gst::glib::prelude::*;

use super::Defaults;
use super::description::Description;
use super::field::{Field, flags_field, word_field};
use facetrack::record::{BlendshapeProfile, Fields};

/// Format of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstTrackJsonSinkFormat")]
pub(crate) enum Format {
    #[default]
    #[enum_value(
        name = "one JSON object with everything, one line per frame",
        nick = "dense"
    )]
    Dense,
    #[enum_value(
        name = "one JSON object per line: header, frames, trailer; flushed after each line",
        nick = "jsonl"
    )]
    Jsonl,
    #[enum_value(
        name = "one JSON object with ids, positions and sizes only",
        nick = "reduced"
    )]
    Reduced,
}

/// Missing frames that are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstTrackJsonSinkFillBy")]
pub(crate) enum FillBy {
    #[default]
    #[enum_value(
        name = "where frames are known to be lost: after a discontinuity (DISCONT), in a gap of missing data, and if late frames may be dropped (qos, max-lateness)",
        nick = "loss"
    )]
    Loss,
    #[enum_value(
        name = "wherever time passes without a frame, at a constant nominal rate; frame numbers then follow the time, not the decoded frames",
        nick = "timestamps"
    )]
    Timestamps,
}

word_field!(Format, Format, choice);
word_field!(FillBy, FillBy, choice);
facetrack::fields_words!(flags_field, "GstTrackJsonSinkFields");

/// Settings of the element.
#[derive(Debug, Clone)]
pub(crate) struct JsonSinkSettings {
    pub location: Option<String>,
    pub format: Format,
    pub overwrite: bool,
    pub blendshape_profile: String,
    pub blendshape_keys: Option<String>,
    pub include_tongue: bool,
    pub verbose: bool,
    pub fields: Fields,
    pub fill_gaps: bool,
    pub fill_by: FillBy,
    pub video_path: Option<String>,
}

impl Default for JsonSinkSettings {
    fn default() -> Self {
        Self {
            location: None,
            format: Format::default(),
            overwrite: false,
            blendshape_profile: "full".to_owned(),
            blendshape_keys: None,
            include_tongue: false,
            verbose: false,
            fields: Fields::empty(),
            fill_gaps: true,
            fill_by: FillBy::default(),
            video_path: None,
        }
    }
}

impl Defaults for JsonSinkSettings {
    const ROWS: &'static [Row] = ROWS;
    const ELEMENT: &'static str = "trackjsonsink";
}

type Row = super::Row<JsonSinkSettings>;

/// All options, in the order of the documentation.
const ROWS: &[Row] = &[
    Row::new(
        "location",
        |s| &mut s.location,
        "File to write; unset or - = standard output, always as jsonl",
    ),
    Row::new("format", |s| &mut s.format, "Format of the record").shaping(),
    Row::new(
        "overwrite",
        |s| &mut s.overwrite,
        "Replace an existing file; false = an existing file is an error",
    ),
    Row::new(
        "blendshape-profile",
        |s| &mut s.blendshape_profile,
        "Blendshapes to write: full, none, mouth (mouth and jaw), mediapipe (no tongueOut, always _neutral) or custom (blendshape-keys)",
    )
    .checked(|name| {
        // The keys are another option.
        let profile = BlendshapeProfile::from_name(name, "any");
        profile.map(|_| ()).map_err(|error| error.to_string())
    })
    .shaping(),
    Row::new(
        "blendshape-keys",
        |s| &mut s.blendshape_keys,
        "Blendshapes of the profile custom in the order of output, separated by commas",
    )
    .shaping(),
    Row::new(
        "include-tongue",
        |s| &mut s.include_tongue,
        "Write tongueOut, if it is measured, with the profile mouth",
    )
    .shaping(),
    Row::new(
        "verbose",
        |s| &mut s.verbose,
        "Write every part of a face that fields can select",
    )
    .shaping(),
    Row::new(
        "fields",
        |s| &mut s.fields,
        "Parts of a face to write after its id, whole pixels, score and blendshapes, if verbose is false",
    )
    .shaping(),
    Row::new(
        "fill-gaps",
        |s| &mut s.fill_gaps,
        "Write an empty frame for each missing frame, in gaps of up to 60 s; false = write only the frames that arrive",
    )
    .shaping(),
    Row::new(
        "fill-by",
        |s| &mut s.fill_by,
        "Missing frames that are filled",
    )
    .shaping(),
    Row::new(
        "video-path",
        |s| &mut s.video_path,
        "Path of the video in the record; unset = path or URI of the source",
    ),
];
