// SPDX-License-Identifier: MPL-2.0
//! The way to receivers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use facetrack::packet::ifacialmocap::Version;

/// Destination of packets. It need not be reachable.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) socket: UdpSocket,
    pub(super) address: SocketAddr,
}

/// A receiver of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Destination {
    /// Address of the receiver, with the port for the first face.
    pub(super) address: SocketAddr,
    /// The form of iFacialMocap's text that it reads.
    pub(super) version: Version,
}

impl Receiver {
    /// Resolves `host`, which may block. No later call blocks.
    ///
    /// # Errors
    /// Returns an error if the host cannot be resolved, or the system has no socket for its address
    /// family: the kind of error and its text.
    pub(super) fn find(host: &str, port: u16) -> Result<Self, (gst::ResourceError, String)> {
        let address = resolve(host, port).map_err(|error| {
            let text = format!(
                "host={host} cannot be resolved: {error}. Set `host` to the name or address of the receiver, such as 127.0.0.1"
            );
            (gst::ResourceError::NotFound, text)
        })?;
        let socket = open(address).map_err(|error| {
            let text =
                format!("the UDP socket for host={host} ({address}) cannot be created: {error}");
            (gst::ResourceError::OpenWrite, text)
        })?;
        Ok(Self { socket, address })
    }
}

/// The first IPv4 address of `host`, else its first one: OpenSeeFace's receivers listen on IPv4,
/// and `localhost` is often both.
fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    let ipv4 = addresses.iter().find(|address| address.is_ipv4());
    ipv4.or(addresses.first())
        .copied()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no address"))
}

/// A socket that is not connected: so a receiver that does not run yet, or is stopped for a while,
/// causes no error of a later packet.
fn open(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_nonblocking(true)?;
    // Otherwise the system refuses packets to broadcast addresses.
    socket.set_broadcast(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_addresses() {
        for (host, address) in [
            ("127.0.0.1", "127.0.0.1:11573"),
            ("localhost", "127.0.0.1:11573"),
            ("::1", "[::1]:11573"),
        ] {
            let resolved = resolve(host, 11573).expect("an address");
            assert_eq!(resolved.to_string(), address);
        }
    }

    #[test]
    fn a_host_that_nobody_knows_is_reported_with_a_remedy() {
        for host in ["", "no such host", "receiver.invalid", "1.2.3.4.5"] {
            let (code, error) = Receiver::find(host, 11573).expect_err("no address");
            assert_eq!(code, gst::ResourceError::NotFound);
            assert!(error.contains(&format!("host={host} ")), "{error}");
            assert!(error.contains("Set `host`"), "{error}");
        }
    }
}
