// SPDX-License-Identifier: MPL-2.0
//! The options of the element `trackjsonsink`.

use super::{Access, OptionSpec, choices, env};
use crate::record::{BlendshapeProfile, Fields};

choices! {
    /// Form of the record.
    pub enum Format {
        Dense = "dense": "one JSON object, all of every frame, a frame a line",
        Jsonl = "jsonl": "a JSON object a line: header, frames, trailer; flushed per line",
        Reduced = "reduced": "one JSON object with ids, positions and sizes alone",
    }
}

choices! {
    /// Which holes are filled.
    pub enum FillBy {
        Loss = "loss": "where frames are known to be lost: after an interruption (DISCONT), in a gap of missing data, and where frames may be dropped because they are late (qos, max-lateness)",
        Timestamps = "timestamps": "wherever time passes without a frame, at a constant nominal rate; numbers then follow the clock, not the decoded frames",
    }
}

/// Every option of `trackjsonsink`, in the order in which they are shown.
pub const TRACKJSONSINK: &[OptionSpec] = &[
    OptionSpec::text(
        "location",
        None,
        "File to write; unset or - = standard output, always as jsonl",
    ),
    OptionSpec::choice("format", Format::CHOICES, "Form of the record"),
    OptionSpec::bool(
        "overwrite",
        false,
        "Replace a file that exists; false = it is an error",
    ),
    OptionSpec::checked_text(
        "blendshape-profile",
        Some("full"),
        // The keys are another option's business.
        |name| {
            BlendshapeProfile::from_name(name, "any")
                .map(|_| ())
                .map_err(|e| e.to_string())
        },
        "Blendshapes that are written: full, none, mouth (mouth and jaw), mediapipe (no tongueOut, always _neutral) or custom (blendshape-keys)",
    )
    .env(&[env("STEP5_BLENDSHAPES_PROFILE")]),
    OptionSpec::text(
        "blendshape-keys",
        None,
        "Blendshapes of the profile custom: a comma list, written in its order",
    )
    .env(&[env("STEP5_BLENDSHAPES_EXPORT_KEYS")]),
    OptionSpec::bool(
        "include-tongue",
        false,
        "Write tongueOut, where it is measured, with the profile mouth",
    )
    .env(&[env("STEP5_BLENDSHAPES_INCLUDE_TONGUE")]),
    OptionSpec::bool(
        "verbose",
        false,
        "Write every part of a face that fields can select",
    )
    .env(&[env("STEP5_EXPORT_VERBOSE_FIELDS")]),
    OptionSpec::flags(
        "fields",
        Fields::CHOICES,
        "",
        "Parts of a face that are written after its id, whole pixels, score and blendshapes, if verbose is false",
    ),
    OptionSpec::bool(
        "fill-gaps",
        true,
        "Write an empty frame for each frame that is missing, for 60 s at most; false = write only the frames that come",
    ),
    OptionSpec::choice("fill-by", FillBy::CHOICES, "How missing frames are recognised"),
    OptionSpec::text(
        "video-path",
        None,
        "Path of the video as the record states it; unset = path or URI that the source reports",
    ),
    OptionSpec::int("frames", (0, i32::MAX, 0), "Frames recorded")
        .unit("frames")
        .access(Access::ReadOnly),
    OptionSpec::int("faces", (0, i32::MAX, 0), "Faces recorded, summed over the frames")
        .unit("faces")
        .access(Access::ReadOnly),
];
