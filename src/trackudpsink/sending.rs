// SPDX-License-Identifier: MPL-2.0
//! A stream of faces on its way to a receiver.

use std::io;

use super::CAT;
use super::receiver::Receiver;
use crate::meta::Absence;
use facetrack::packet::{Header, Slots, encode};
use facetrack::report::FrameReport;

/// State of a stream.
pub(super) struct Sending {
    receiver: Receiver,
    face_id_offset: i32,
    slots: Slots,
    /// Time in the last packets, s.
    time: f64,
    /// Whether the system did not accept the last packet.
    failing: bool,
    /// Whether faces of this stream that cannot be sent were already reported.
    told: bool,
    pub(super) absence: Absence,
}

/// Numbers of sent and unsent faces of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sent {
    /// Faces whose packet was sent.
    pub(super) packets: u64,
    /// Faces whose packet the system did not accept.
    pub(super) dropped: u64,
    /// Whether the frame has the stream's first face without the measurements that a packet needs.
    pub(super) is_first_unfit: bool,
}

impl Sending {
    /// A stream whose faces are numbered from `face_id_offset`.
    pub(super) fn new(receiver: Receiver, face_id_offset: i32) -> Self {
        Self {
            receiver,
            face_id_offset,
            slots: Slots::default(),
            time: 0.0,
            failing: false,
            told: false,
            absence: Absence::default(),
        }
    }

    /// Another stream begins, whose identities have nothing to do with those before.
    pub(super) fn restart(&mut self) {
        self.slots = Slots::default();
        self.told = false;
        self.absence = Absence::default();
    }

    /// Sends the faces of a frame, each in a packet of its own; `now` is the time of day in
    /// seconds.
    pub(super) fn send(&mut self, report: &FrameReport, now: f64) -> Sent {
        self.time = later(now, self.time);
        let ids: Vec<_> = report.faces.iter().map(|face| face.id).collect();
        let slots = self.slots.assign(&ids);
        let mut sent = Sent::default();
        for (face, slot) in std::iter::zip(&report.faces, slots) {
            let header = self.header(report, slot);
            match encode(&face.face, &header) {
                None => sent.is_first_unfit |= !std::mem::replace(&mut self.told, true),
                Some(packet) if self.send_packet(&packet) => sent.packets += 1,
                Some(_) => sent.dropped += 1,
            }
        }
        sent
    }

    fn header(&self, report: &FrameReport, slot: usize) -> Header {
        let slot = i32::try_from(slot).unwrap_or(i32::MAX);
        Header {
            time: self.time,
            id: self.face_id_offset.saturating_add(slot),
            width: report.width,
            height: report.height,
        }
    }

    /// Whether the system took it.
    fn send_packet(&mut self, packet: &[u8]) -> bool {
        let result = self.receiver.send(packet);
        self.log(&result);
        self.failing = result.is_err();
        result.is_ok()
    }

    /// The first of several failures is a warning; a network that is away is away for many frames.
    fn log(&self, result: &io::Result<()>) {
        let address = self.receiver.address;
        match result {
            Ok(()) if self.failing => gst::info!(CAT, "packets are sent to {address} again"),
            Ok(()) => (),
            Err(error) if self.failing => gst::debug!(CAT, "packet to {address} dropped: {error}"),
            Err(error) => gst::warning!(CAT, "packets to {address} are dropped: {error}"),
        }
    }
}

/// `now`, or a moment after `last` where the clock was set back: receivers pass over a packet that
/// is not later than the one before.
fn later(now: f64, last: f64) -> f64 {
    now.max(last.next_up())
}

#[cfg(test)]
mod tests {
    use super::later;

    #[test]
    fn time_goes_on_when_the_clock_is_set_back() {
        let times = [100.0, 100.5, 100.5, 90.0, 101.0];
        let mut last = 0.0;
        for now in times {
            let time = later(now, last);
            assert!(time > last && time >= now, "{time} after {last} at {now}");
            assert!(time - now.max(last) < 1e-6, "{time} after {last} at {now}");
            last = time;
        }
    }
}
