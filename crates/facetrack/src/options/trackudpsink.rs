// SPDX-License-Identifier: MPL-2.0
//! The options of the element `trackudpsink`.

use super::{Access, OptionSpec};

/// Every option of `trackudpsink`, in the order in which they are shown. Names and defaults of the first three are those of
/// `facetracker.py` (`--ip`, `--port`, `--face-id-offset`).
pub const TRACKUDPSINK: &[OptionSpec] = &[
    OptionSpec::text(
        "host",
        Some("127.0.0.1"),
        "Name or address of the receiver, IPv4 or IPv6; a name that has both stands for its IPv4 address, where receivers listen",
    ),
    OptionSpec::int("port", (1, 65535, 11573), "UDP port of the receiver"),
    OptionSpec::int(
        "face-id-offset",
        (0, 1_000_000, 0),
        "Number of the first face; for receivers that hear several senders",
    ),
    OptionSpec::int(
        "packets-sent",
        (0, i32::MAX, 0),
        "Packets sent, whether somebody listened or not",
    )
    .unit("packets")
    .access(Access::ReadOnly),
    OptionSpec::int(
        "packets-dropped",
        (0, i32::MAX, 0),
        "Packets that the system did not take, for want of room or of a way to the receiver",
    )
    .unit("packets")
    .access(Access::ReadOnly),
];
