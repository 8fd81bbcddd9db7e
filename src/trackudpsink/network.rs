// SPDX-License-Identifier: MPL-2.0
//! Where the packets of a face go.

use std::io;

use super::CAT;
use super::listener::{Asker, Listener};
use super::receiver::Receiver;
use facetrack::packet::ifacialmocap::{PORT, Version};

/// The receivers of a stream.
pub(super) struct Network {
    receiver: Receiver,
    listener: Option<Listener>,
    /// Whether the system did not accept the last packet.
    failing: bool,
}

/// A receiver of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) enum Destination {
    /// The one at `host`.
    Host,
    /// One that has asked for packets.
    Asker(Asker),
}

impl Destination {
    /// The form of iFacialMocap's text that the receiver reads.
    pub(super) fn version(&self) -> Version {
        match self {
            Self::Host => Version::default(),
            Self::Asker(asker) => asker.version,
        }
    }
}

impl Network {
    pub(super) fn new(receiver: Receiver, listener: Option<Listener>) -> Self {
        Self {
            receiver,
            listener,
            failing: false,
        }
    }

    /// The receivers of the next frame: those who have asked, else the one at `host`.
    pub(super) fn destinations(&mut self) -> Vec<Destination> {
        let askers = self
            .listener
            .iter_mut()
            .flat_map(|listener| listener.askers());
        let askers: Vec<_> = askers.copied().map(Destination::Asker).collect();
        if askers.is_empty() {
            vec![Destination::Host]
        } else {
            askers
        }
    }

    /// The port for the first face.
    pub(super) fn port(&self, to: &Destination) -> u16 {
        match to {
            Destination::Host => self.receiver.address.port(),
            Destination::Asker(_) => PORT,
        }
    }

    /// Sends a packet to a port. Returns whether the system took it.
    pub(super) fn send(&mut self, to: &Destination, port: u16, packet: &[u8]) -> bool {
        let result = match (to, &self.listener) {
            (Destination::Asker(asker), Some(listener)) => listener.send(asker, packet, port),
            _ => self.receiver.send(packet, port),
        };
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
