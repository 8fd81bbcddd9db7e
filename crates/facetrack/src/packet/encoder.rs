// SPDX-License-Identifier: MPL-2.0
//! One encoder for all protocols.

use std::time::Duration;

use super::{Avatar, Protocol, ifacialmocap, livelink, openseeface, vmc};
use crate::observation::Observation;

/// The fields of packets that are the same for all frames of a stream.
#[derive(Debug, Clone, Default)]
pub struct Encoder {
    /// Protocol of the packets.
    pub protocol: Protocol,
    /// Number of the first face (OpenSeeFace).
    pub face_id_offset: i32,
    /// Name of the first face (Live Link).
    pub subject: String,
    /// Identity of the sender, a UUID (Live Link).
    pub device: String,
}

/// The fields of packets that differ from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Time of day, s (OpenSeeFace). Receivers ignore a packet unless its time is later than the
    /// time of the previous packet.
    pub time_of_day: f64,
    /// Time since the stream started (VMC, Live Link).
    pub running_time: Duration,
    /// Frames per second as numerator and denominator, both positive (Live Link).
    pub rate: (i32, i32),
    /// Width, in pixels, of the frame to which the coordinates belong (OpenSeeFace).
    pub width: u32,
    /// Height of that frame (OpenSeeFace).
    pub height: u32,
}

impl Encoder {
    /// The datagrams for a face with number `slot`; `None` if it lacks the measurements without
    /// which the protocol has no packet. `avatar` has the measurements of `face` if the protocol
    /// [needs it](Protocol::needs_avatar). `version` is the form of iFacialMocap's text.
    pub fn encode(
        &self,
        face: &Observation,
        avatar: Option<&Avatar>,
        slot: usize,
        frame: &Frame,
        version: ifacialmocap::Version,
    ) -> Option<Vec<Vec<u8>>> {
        match self.protocol {
            Protocol::OpenSeeFace => {
                let slot = i32::try_from(slot).unwrap_or(i32::MAX);
                let id = self.face_id_offset.saturating_add(slot);
                openseeface::encode(face, id, frame).map(|packet| vec![packet])
            }
            Protocol::Vmc => Some(vmc::encode(avatar?, frame.running_time.as_secs_f32())),
            Protocol::IFacialMocap => Some(vec![ifacialmocap::encode(avatar?, version)]),
            Protocol::LiveLink => {
                let subject = livelink::subject(&self.subject, slot);
                let (time, rate) = (frame.running_time, frame.rate);
                let packet = livelink::encode(avatar?, &self.device, &subject, time, rate);
                Some(vec![packet])
            }
        }
    }
}
