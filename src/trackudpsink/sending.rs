// SPDX-License-Identifier: MPL-2.0
//! Sends the faces of a stream to receivers.

use std::time::Duration;

use super::network::{Network, Refusal};
use super::receiver::Destination;
use crate::meta::MissingMetaCounter;
use facetrack::engine::EngineKind;
use facetrack::packet::{Avatar, Coverage, Encoder, Frame, Lack, Slots, View};
use facetrack::report::FrameReport;

/// The frame rate if caps have none, which is the rate of Live Link Face.
const DEFAULT_RATE: (i32, i32) = (60, 1);

/// State of a stream.
pub(super) struct Sending {
    network: Network,
    encoder: Encoder,
    mirror: bool,
    slots: Slots,
    /// The last frame.
    frame: Frame,
    coverage: Coverage,
    /// True if faces of this stream that cannot be sent were already reported.
    told: bool,
    pub(super) missing_meta: MissingMetaCounter,
}

/// Numbers of sent and unsent packets of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sent {
    /// Packets that the system accepted.
    pub(super) packets: u64,
    /// Packets that the system did not accept.
    pub(super) dropped: u64,
    /// Problems that this stream has not had before.
    pub(super) problems: Vec<Problem>,
}

/// Reason why faces are not sent, or only in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// The faces lack the measurements that a packet needs.
    Unfit,
    /// An engine does not measure everything that moves an avatar.
    Lack(Lack),
    /// More faces are present than can be sent or have a port. The first one has this port.
    TooMany(u16),
    /// The system does not accept packets.
    Refused(Refusal),
}

impl Sending {
    /// A stream to `network`.
    pub(super) fn new(network: Network, encoder: Encoder, mirror: bool) -> Self {
        Self {
            network,
            encoder,
            mirror,
            slots: Slots::default(),
            frame: Frame {
                time_of_day: 0.0,
                running_time: Duration::ZERO,
                rate: DEFAULT_RATE,
                width: 0,
                height: 0,
            },
            coverage: Coverage::default(),
            told: false,
            missing_meta: MissingMetaCounter::default(),
        }
    }

    /// Handles the beginning of another stream, whose identities are independent of the earlier
    /// ones.
    pub(super) fn restart(&mut self) {
        self.network.restart();
        self.slots = Slots::default();
        self.coverage = Coverage::default();
        self.told = false;
        self.missing_meta = MissingMetaCounter::default();
    }

    /// Handles the end of the stream. Returns a problem that was not reported yet.
    pub(super) fn end(&mut self) -> Option<Problem> {
        self.coverage.end().map(Problem::Lack)
    }

    /// Takes the frame rate of the stream; `None` or 0 if it has none.
    pub(super) fn set_rate(&mut self, rate: Option<gst::Fraction>) {
        let rate = rate.filter(|rate| rate.numer() > 0);
        self.frame.rate = rate.map_or(DEFAULT_RATE, |rate| (rate.numer(), rate.denom()));
    }

    /// Sends the faces of a frame, each in packets of its own, at a time in seconds since 1970. The
    /// running time is `None` if the frame has no timestamp.
    pub(super) fn send(
        &mut self,
        report: &FrameReport,
        time_of_day: f64,
        running_time: Option<Duration>,
    ) -> Sent {
        self.advance(report, time_of_day, running_time);
        let view = self.view(report);
        let destinations = self.network.destinations();
        let ids: Vec<_> = report.faces.iter().map(|face| face.id).collect();
        let slots = self.slots.assign(&ids);
        let mut sent = Sent::default();
        let protocol = self.encoder.protocol;
        for (face, slot) in std::iter::zip(&report.faces, slots) {
            if slot >= protocol.max_faces() {
                self.tell(Problem::TooMany(destinations[0].address.port()), &mut sent);
                continue;
            }
            let needs_avatar = protocol.needs_avatar();
            let avatar = needs_avatar.then(|| Avatar::new(&face.face, &view));
            let lack = avatar.as_ref().and_then(|it| self.coverage.add(it));
            sent.problems.extend(lack.map(Problem::Lack));
            for to in &destinations {
                let (avatar, version) = (avatar.as_ref(), to.version);
                let packets = self
                    .encoder
                    .encode(&face.face, avatar, slot, &self.frame, version);
                self.send_packets(to, slot, packets, &mut sent);
            }
        }
        sent
    }

    /// Sends the packets of a face with number `slot`; `None` for a face that has none.
    fn send_packets(
        &mut self,
        to: &Destination,
        slot: usize,
        packets: Option<Vec<Vec<u8>>>,
        sent: &mut Sent,
    ) {
        let Some(packets) = packets else {
            return self.tell(Problem::Unfit, sent);
        };
        let first = to.address.port();
        let Some(port) = self.encoder.protocol.port_of(first, slot) else {
            return self.tell(Problem::TooMany(first), sent);
        };
        for packet in packets {
            match self.network.send(to, port, &packet) {
                Ok(()) => sent.packets += 1,
                Err(refusal) => {
                    sent.dropped += 1;
                    sent.problems.extend(refusal.map(Problem::Refused));
                }
            }
        }
    }

    fn tell(&mut self, problem: Problem, sent: &mut Sent) {
        if !std::mem::replace(&mut self.told, true) {
            sent.problems.push(problem);
        }
    }

    /// Advances the running time. Frames without a timestamp follow one another at the frame rate.
    fn advance(&mut self, report: &FrameReport, time_of_day: f64, running_time: Option<Duration>) {
        let frame = self.frame;
        let (frames, seconds) = frame.rate;
        let period = Duration::from_secs_f64(f64::from(seconds) / f64::from(frames));
        let next = || frame.running_time.saturating_add(period);
        self.frame = Frame {
            time_of_day: later(time_of_day, frame.time_of_day),
            running_time: running_time.unwrap_or_else(next),
            rate: frame.rate,
            width: report.width,
            height: report.height,
        };
    }

    fn view(&self, report: &FrameReport) -> View {
        let engine = report.source.engine.parse::<EngineKind>();
        View {
            mirror: self.mirror,
            metres: engine.ok().and_then(|kind| kind.entry().metres),
        }
    }
}

/// Returns `now`, or a time just after `last` if the clock was set back: receivers ignore a packet
/// that is not later than the one before.
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
