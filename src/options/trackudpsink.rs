// SPDX-License-Identifier: MPL-2.0
//! Options of the element `trackudpsink`, with the names and defaults of `facetracker.py` (`--ip`,
//! `--port`, `--face-id-offset`).

use smart_default::SmartDefault;

use super::Defaults;

/// Settings of the element.
#[derive(Debug, Clone, SmartDefault)]
pub(crate) struct UdpSettings {
    #[default("127.0.0.1".to_owned())]
    pub host: String,
    #[default(11573)]
    pub port: u32,
    pub face_id_offset: u32,
}

impl Defaults for UdpSettings {
    const ROWS: &'static [Row] = ROWS;
    const ELEMENT: &'static str = "trackudpsink";
}

type Row = super::Row<UdpSettings>;

/// All options, in the order of the documentation.
const ROWS: &[Row] = &[
    Row::new("host", |s| &mut s.host)
        .blurb("Name or address of the receiver, IPv4 or IPv6; if a name has both, its IPv4 address is used, where receivers listen"),
    Row::new("port", |s| &mut s.port)
        .blurb("UDP port of the receiver")
        .range(1.0, 65535.0, ""),
    Row::new("face-id-offset", |s| &mut s.face_id_offset)
        .blurb("Number of the first face, for receivers of several senders")
        .range(0.0, 1_000_000.0, ""),
];
