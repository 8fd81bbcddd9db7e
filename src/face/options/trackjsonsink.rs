// SPDX-License-Identifier: MPL-2.0
//! The options of the element `trackjsonsink`.

use super::{Access, OptionSpec, choices, env};
use crate::face::record::BlendshapeProfile;

choices! {
    /// Form of the record.
    pub enum Format {
        Dense = "dense": "one JSON object, all of every frame, a frame a line",
        Jsonl = "jsonl": "a JSON object a line: header, frames, trailer; flushed per line",
        Reduced = "reduced": "one JSON object with ids, positions and sizes alone",
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
        "Also write landmarks, key points, pose, gaze, features, fitted models, origin and the box with decimals",
    )
    .env(&[env("STEP5_EXPORT_VERBOSE_FIELDS")]),
    OptionSpec::bool(
        "fill-gaps",
        true,
        "Fill holes in time with empty frames, so that a frame's number is its position; needs a constant framerate",
    ),
    OptionSpec::int("frames", (0, i32::MAX, 0), "Frames recorded")
        .unit("frames")
        .access(Access::ReadOnly),
    OptionSpec::int("faces", (0, i32::MAX, 0), "Faces recorded, summed over the frames")
        .unit("faces")
        .access(Access::ReadOnly),
];
