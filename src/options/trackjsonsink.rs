// SPDX-License-Identifier: MPL-2.0
//! Options of the element `trackjsonsink`.

use smart_default::SmartDefault;

use super::field::*;
use super::{Defaults, Row, rows};
use facetrack::record::{BlendshapeProfile, Fields};

choice_field! {
    /// Format of the record.
    pub(crate) enum Format, "GstTrackJsonSinkFormat" {
        Dense = "dense": "one JSON object with everything, one line per frame",
        Jsonl = "jsonl": "one JSON object per line: header, frames, trailer; flushed after each line",
        Reduced = "reduced": "one JSON object with ids, positions and sizes only",
    }
}

choice_field! {
    /// Missing frames that are filled.
    pub(crate) enum FillBy, "GstTrackJsonSinkFillBy" {
        Loss = "loss": "where frames are known to be lost: after a discontinuity (DISCONT), in a gap of missing data, and, if this sink may drop late frames (qos, max-lateness), wherever time passes without a frame",
        Timestamps = "timestamps": "wherever time passes without a frame, at a constant nominal rate, so that frame numbers follow the time",
    }
}

facetrack::fields_words!(flags_field, "GstTrackJsonSinkFields");

/// Settings of the element.
#[derive(Debug, Clone, SmartDefault)]
pub(crate) struct JsonSinkSettings {
    pub location: Option<String>,
    pub format: Format,
    pub overwrite: bool,
    #[default("full".to_owned())]
    pub blendshape_profile: String,
    pub blendshape_keys: Option<String>,
    pub include_tongue: bool,
    pub verbose: bool,
    pub fields: Fields,
    #[default(true)]
    pub fill_gaps: bool,
    pub fill_by: FillBy,
    pub video_path: Option<String>,
}

impl Defaults for JsonSinkSettings {
    const ELEMENT: &'static str = "trackjsonsink";

    /// Rows in the order of the documentation.
    const ROWS: &'static [Row<Self>] = rows![
        "location": location, cosmetic => "File to write; unset or - = standard output, always as jsonl",
        "format": format => "Format of the record",
        "overwrite": overwrite, cosmetic =>
            "Replace an existing file; false = an existing file is an error",
        "blendshape-profile": blendshape_profile, checked(check_profile) =>
            "Blendshapes to write: full, none, mouth, mediapipe (without tongueOut) or custom (blendshape-keys)",
        "blendshape-keys": blendshape_keys =>
            "Blendshapes of the profile custom in the order of output, separated by commas",
        "include-tongue": include_tongue =>
            "Write tongueOut too with the profile mouth, if it is measured; no engine measures it",
        "verbose": verbose => "Write every part of a face that fields can select",
        "fields": fields =>
            "More parts of a face to write, if verbose is false",
        "fill-gaps": fill_gaps =>
            "Write an empty frame for each missing frame, in gaps of up to 60 s; false = write only the frames that arrive",
        "fill-by": fill_by => "Missing frames that are filled",
        "video-path": video_path, cosmetic =>
            "Path of the video in the record; unset = path or URI of the source",
    ];
}

fn check_profile(name: &str) -> Result<(), String> {
    // The keys are another option.
    let profile = BlendshapeProfile::from_name(name, "any");
    profile.map(|_| ()).map_err(|error| error.to_string())
}
