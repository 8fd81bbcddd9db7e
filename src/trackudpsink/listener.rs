// SPDX-License-Identifier: MPL-2.0
//! Listens for receivers of iFacialMocap, which request packets.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use super::CAT;
use super::receiver::Destination;
use facetrack::packet::ifacialmocap::{PORT, Version};

/// Maximum number of receivers that are answered at a time. Another one replaces the first.
const MAX_ASKERS: usize = 8;

/// Messages read for each frame, so that a flood of them does not hold up the stream.
const MAX_MESSAGES: usize = 16;

/// Bytes read of a message; a longer one is cut and not understood.
const MAX_MESSAGE: usize = 256;

/// A socket at the port of the app, and those who have asked there.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: UdpSocket,
    pub(super) askers: Vec<Destination>,
}

/// The address where receivers may ask.
///
/// # Errors
/// Returns an error if `listen` is not an address.
pub(super) fn address(listen: &str) -> Result<SocketAddr, String> {
    let address = listen.parse::<IpAddr>().map_err(|_| {
        format!(
            "listen={listen} is no address. Set `listen` to an address of this machine, such as 0.0.0.0 for all"
        )
    })?;
    Ok((address, PORT).into())
}

impl Listener {
    /// Opens the port.
    ///
    /// # Errors
    /// Returns an error if another program has it.
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            askers: Vec::new(),
        })
    }

    /// Reads the messages that have come, without waiting for one.
    pub(super) fn read(&mut self) {
        for _ in 0..MAX_MESSAGES {
            let mut message = [0; MAX_MESSAGE];
            // An error means that there is no message, or that an answer was refused.
            let Ok((length, mut address)) = self.socket.recv_from(&mut message) else {
                break;
            };
            match Version::requested_by(&message[..length]) {
                Some(version) => {
                    address.set_port(PORT);
                    self.admit(Destination { address, version });
                }
                None => gst::debug!(CAT, "{address} sent something else than a start message"),
            }
        }
    }

    /// Admits a receiver. It has one entry for all its ports, and gets the answer that it requested
    /// last.
    fn admit(&mut self, asker: Destination) {
        let is_known = |own: &Destination| own.address.ip() == asker.address.ip();
        if let Some(known) = self.askers.iter_mut().find(|own| is_known(own)) {
            *known = asker;
            return;
        }
        gst::info!(CAT, "{} asked for packets", asker.address.ip());
        if self.askers.len() == MAX_ASKERS {
            self.askers.remove(0);
        }
        self.askers.push(asker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_are_listened_at() {
        let all = address("0.0.0.0").expect("an address");
        assert_eq!(all.to_string(), "0.0.0.0:49983");
        assert_eq!(address("::1").expect("an address").port(), 49983);
        for listen in ["true", "localhost", "1.2.3.4:5"] {
            let error = address(listen).expect_err(listen).to_string();
            assert!(error.contains("Set `listen`"), "{error}");
        }
    }

    #[test]
    fn some_receivers_are_answered_and_the_last_ones() {
        let mut listener = Listener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let asker = |host, port, version| Destination {
            address: ([127, 0, 0, host], port).into(),
            version,
        };
        for host in 1..=9 {
            listener.admit(asker(host, 5, Version::One));
        }
        listener.admit(asker(4, 6, Version::Two));
        let hosts = listener.askers.iter().map(|asker| asker.address.ip());
        let want = (2..=9).map(|host| IpAddr::from([127, 0, 0, host]));
        assert_eq!(hosts.collect::<Vec<_>>(), want.collect::<Vec<_>>());
        assert_eq!(listener.askers[2], asker(4, 6, Version::Two));
    }
}
