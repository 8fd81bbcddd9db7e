// SPDX-License-Identifier: MPL-2.0
//! Options of the element `trackudpsink`. `host`, `port` and `face-id-offset` correspond to `--ip`,
//! `--port` and `--face-id-offset` of `facetracker.py`.

use smart_default::SmartDefault;

use super::field::*;
use super::{Defaults, Row, rows};
use facetrack::packet::Protocol;

facetrack::protocol_words!(enum_field, "GstTrackUdpSinkProtocol");

/// Settings of the element.
#[derive(Debug, Clone, SmartDefault)]
pub(crate) struct UdpSettings {
    pub protocol: Protocol,
    #[default("127.0.0.1".to_owned())]
    pub host: String,
    /// Port; 0 for the port of the protocol.
    pub port: u32,
    pub mirror: bool,
    #[default("facetrack".to_owned())]
    pub subject: String,
    /// Address of this machine to listen on.
    pub listen: Option<String>,
    pub face_id_offset: u32,
}

impl Defaults for UdpSettings {
    const ELEMENT: &'static str = "trackudpsink";

    /// Rows in the order of the documentation.
    const ROWS: &'static [Row<Self>] = rows![
        "protocol": protocol => "Protocol of the receiver",
        "host": host =>
            "Name or address of the receiver, IPv4 or IPv6",
        "port": port, range(0.0, 65535.0, "") =>
            "UDP port of the receiver; 0 = the usual port of the protocol",
        "mirror": mirror =>
            "Exchange left and right, so that the avatar moves like a mirror image (all protocols but openseeface)",
        "subject": subject =>
            "Name of the first face; the others are <subject>-2, <subject>-3 and so on (protocol: livelink)",
        "listen": listen =>
            "Address of this machine at which receivers may ask for packets; unset = always send to host",
        "face-id-offset": face_id_offset, range(0.0, 1_000_000.0, "") =>
            "Number of the first face, for receivers that get packets from several senders (protocol: openseeface)",
    ];
}
