// SPDX-License-Identifier: MPL-2.0
//! Destinations of the packets of a face.

use std::io;

use super::CAT;
use super::listener::Listener;
use super::receiver::{Destination, Receiver};
use facetrack::packet::ifacialmocap::Version;

/// The receivers of a stream.
pub(super) struct Network {
    receiver: Receiver,
    listener: Option<Listener>,
    /// True if the system did not accept the last packet.
    failing: bool,
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
        if let Some(listener) = &mut self.listener {
            listener.read();
        }
        match self.asked() {
            Some(listener) => listener.askers.clone(),
            None => vec![Destination {
                address: self.receiver.address,
                version: Version::default(),
            }],
        }
    }

    /// The listener, if receivers have asked there.
    fn asked(&self) -> Option<&Listener> {
        let listener = self.listener.as_ref();
        listener.filter(|listener| !listener.askers.is_empty())
    }

    /// Passes a packet for a port of one of the [destinations](Network::destinations) to the
    /// system, without waiting for it. Returns true if the system took it.
    pub(super) fn send(&mut self, to: &Destination, port: u16, packet: &[u8]) -> bool {
        let mut address = to.address;
        address.set_port(port);
        let asked = self.asked().map(|listener| &listener.socket);
        let socket = asked.unwrap_or(&self.receiver.socket);
        let result = socket.send_to(packet, address);
        self.log(&result);
        self.failing = result.is_err();
        result.is_ok()
    }

    /// Logs a failure. Only the first of several is a warning, because a failing network fails for
    /// many frames.
    fn log(&self, result: &io::Result<usize>) {
        let address = self.receiver.address;
        match result {
            Ok(_) if self.failing => gst::info!(CAT, "packets are sent to {address} again"),
            Ok(_) => (),
            Err(error) if self.failing => gst::debug!(CAT, "packet to {address} dropped: {error}"),
            Err(error) => gst::warning!(CAT, "packets to {address} are dropped: {error}"),
        }
    }
}
