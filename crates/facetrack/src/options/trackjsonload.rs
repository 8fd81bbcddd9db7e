// SPDX-License-Identifier: MPL-2.0
//! The options of the element `trackjsonload`.

use super::{Access, OptionSpec, choices};

choices! {
    /// What a buffer's record is found by.
    pub enum MatchBy {
        Auto = "auto": "the time; the frame number where buffer or file have no times",
        Pts = "pts": "the time, which also holds after seeking and where frames are missing",
        Frame = "frame": "the frame number, counted as trackjsonsink does, and after seeking from where it went",
    }
}

/// Every option of `trackjsonload`, in the order in which they are shown.
pub const TRACKJSONLOAD: &[OptionSpec] = &[
    OptionSpec::text(
        "location",
        None,
        "File to read: what trackjsonsink wrote with format=dense or format=jsonl",
    ),
    OptionSpec::choice("match", MatchBy::CHOICES, "What a buffer's record is found by"),
    OptionSpec::int(
        "tolerance",
        (0, 60_000, 2),
        "Greatest difference between the times of a buffer and of its record; half the distance of the recorded frames gives every buffer the nearest",
    )
    .unit("ms"),
    OptionSpec::int("frames", (0, i32::MAX, 0), "Frames in the file")
        .unit("frames")
        .access(Access::ReadOnly),
    OptionSpec::int("matched", (0, i32::MAX, 0), "Buffers that got a record")
        .unit("buffers")
        .access(Access::ReadOnly),
    OptionSpec::int(
        "unmatched",
        (0, i32::MAX, 0),
        "Buffers that passed as they were, as the file does not say anything of them",
    )
    .unit("buffers")
    .access(Access::ReadOnly),
];
