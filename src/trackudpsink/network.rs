// SPDX-License-Identifier: MPL-2.0
//! Destinations of the packets of a face.

use std::io;
use std::net::SocketAddr;

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
    /// Kinds of lasting errors of this stream that were already returned.
    told: Vec<io::ErrorKind>,
}

/// The first packet of a stream that the system did not accept, for a reason that may last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) address: SocketAddr,
    pub(super) reason: String,
}

impl Network {
    pub(super) fn new(receiver: Receiver, listener: Option<Listener>) -> Self {
        Self {
            receiver,
            listener,
            failing: false,
            told: Vec::new(),
        }
    }

    /// Handles the beginning of another stream.
    pub(super) fn restart(&mut self) {
        self.told.clear();
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
    /// system, without waiting for it.
    ///
    /// # Errors
    /// Returns an error if the system did not take it, with a refusal if its reason is new.
    pub(super) fn send(
        &mut self,
        to: &Destination,
        port: u16,
        packet: &[u8],
    ) -> Result<(), Option<Refusal>> {
        let mut address = to.address;
        address.set_port(port);
        let asked = self.asked().map(|listener| &listener.socket);
        let socket = asked.unwrap_or(&self.receiver.socket);
        let result = socket.send_to(packet, address);
        self.log(address, &result);
        self.failing = result.is_err();
        result.map_err(|error| self.refusal(address, &error))?;
        Ok(())
    }

    /// The refusal for an error of a kind that this stream has not had.
    fn refusal(&mut self, address: SocketAddr, error: &io::Error) -> Option<Refusal> {
        let kind = error.kind();
        if is_passing(kind) || self.told.contains(&kind) {
            return None;
        }
        self.told.push(kind);
        let reason = error.to_string();
        Some(Refusal { address, reason })
    }

    /// Logs a failure. Only the first of several is a warning, because a failing network fails for
    /// many frames.
    fn log(&self, address: SocketAddr, result: &io::Result<usize>) {
        match result {
            Ok(_) if self.failing => gst::info!(CAT, "packets are sent to {address} again"),
            Ok(_) => (),
            Err(error) if self.failing => gst::debug!(CAT, "packet to {address} dropped: {error}"),
            Err(error) => gst::warning!(CAT, "packets to {address} are dropped: {error}"),
        }
    }
}

/// Returns true for errors that need no action: the buffer of the system is full, or the receiver
/// does not run yet.
fn is_passing(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(
        kind,
        WouldBlock | Interrupted | ConnectionRefused | ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    /// A socket that may not broadcast.
    #[test]
    fn a_reason_is_returned_once_in_a_stream() {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
        let address = SocketAddr::from(([127, 255, 255, 255], 9));
        let mut network = Network::new(Receiver { socket, address }, None);
        let to = network.destinations()[0];
        for _ in 0..2 {
            let sent = network.send(&to, 10, b"packet");
            let refusal = sent.expect_err("it is refused").expect("it is new");
            assert_eq!(refusal.address.to_string(), "127.255.255.255:10");
            assert!(refusal.reason.contains("denied"), "{}", refusal.reason);
            assert_eq!(network.send(&to, 10, b"packet"), Err(None));
            network.restart();
        }
    }

    #[test]
    fn errors_that_pass_are_not_returned() {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a free port");
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let mut network = Network::new(Receiver { socket, address }, None);
        for (kind, is_returned) in [
            (io::ErrorKind::WouldBlock, false),
            (io::ErrorKind::ConnectionRefused, false),
            (io::ErrorKind::NetworkUnreachable, true),
            (io::ErrorKind::NetworkUnreachable, false),
            (io::ErrorKind::PermissionDenied, true),
        ] {
            let refusal = network.refusal(address, &kind.into());
            assert_eq!(refusal.is_some(), is_returned, "{kind}");
        }
    }
}
