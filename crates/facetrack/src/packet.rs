// SPDX-License-Identifier: MPL-2.0
//! Packets that move avatars: faces in the protocols of their receivers.
//!
//! [`openseeface`] sends landmarks and a fitted model. The other protocols send an [`Avatar`]:
//! channels, the rotation of the head and of the eyes. Each of them converts the coordinates in one
//! function, and documents names, units and signs.

mod avatar;
mod coverage;
mod encoder;
pub mod ifacialmocap;
pub mod livelink;
pub mod openseeface;
mod slots;
pub mod vmc;

pub use avatar::{Avatar, CHANNELS, EyeAngles, Head, MAX_EYE_ANGLE, View};
pub use coverage::{Coverage, Lack, complete_engines};
pub use encoder::{Encoder, Frame};
pub use slots::Slots;

use crate::words::choices;

choices! {
    /// Protocol of packets.
    pub enum Protocol, words protocol_words {
        OpenSeeFace = "openseeface": "landmarks and the fitted model of engine=openseeface, for VSeeFace, VTube Studio and vpuppr",
        Vmc = "vmc": "the Virtual Motion Capture protocol (OSC), for VSeeFace, EVMC4U, VMC4UE, Warudo and VNyan",
        IFacialMocap = "ifacialmocap": "the text of the app iFacialMocap, for VMagicMirror, Warudo, VBridger and VRCFaceTracking",
        LiveLink = "livelink": "the packets of the app Live Link Face, for Unreal Engine and Blender",
    }
}

impl Protocol {
    /// Maximum number of faces of a frame that are sent. Our choice for protocols with a port for
    /// each face: more people do not fit in front of a camera that sees their expressions.
    /// Otherwise it is the maximum of facetrack's `max-faces`.
    pub const fn max_faces(self) -> usize {
        match self {
            Self::OpenSeeFace | Self::LiveLink => 100,
            Self::Vmc | Self::IFacialMocap => 16,
        }
    }

    /// Returns true if packets are made of an [`Avatar`]; otherwise of an observation.
    pub fn needs_avatar(self) -> bool {
        self != Self::OpenSeeFace
    }

    /// The port on which receivers listen by default.
    pub const fn port(self) -> u16 {
        match self {
            Self::OpenSeeFace => openseeface::PORT,
            Self::Vmc => vmc::PORT,
            Self::IFacialMocap => ifacialmocap::PORT,
            Self::LiveLink => livelink::PORT,
        }
    }

    /// The port for the face with number `slot` if the first face is sent to `port`; `None` if the
    /// face is not sent. If packets do not name their face, each face has its own port.
    pub fn port_of(self, port: u16, slot: usize) -> Option<u16> {
        match self {
            _ if slot >= self.max_faces() => None,
            Self::OpenSeeFace | Self::LiveLink => Some(port),
            Self::Vmc | Self::IFacialMocap => port.checked_add(slot as u16),
        }
    }
}

#[cfg(test)]
mod tests;
