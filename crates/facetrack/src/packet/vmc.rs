// SPDX-License-Identifier: MPL-2.0
//! The Virtual Motion Capture protocol: OSC over UDP, after protocol.vmc.info ("Marionette"
//! specification), and as EVMC4U and VMC4UE read it.
//!
//! | address | arguments | |
//! |---|---|---|
//! | `/VMC/Ext/OK` | i | 1: bones follow |
//! | `/VMC/Ext/T` | f | time of the sender, s |
//! | `/VMC/Ext/Bone/Pos` | s fff ffff | Head, LeftEye, RightEye: local position and rotation |
//! | `/VMC/Ext/Blend/Val` | s f | each channel and clip, 0…1 |
//! | `/VMC/Ext/Blend/Apply` | | end of the values |
//!
//! - Rotations are quaternions x, y, z, w in Unity's space: left-handed, y up, z out of the face, x
//!   to its right side. Bones have the names of Unity's `HumanBodyBones`.
//! - Positions of bones are 0: the distance of two bones is part of the model, which is not known
//!   here. Receivers use the rotations; in EVMC4U, "Bone Position Synchronize" has to be off, as
//!   for the desktop program of iFacialMocap.
//! - Names of values are case-sensitive. The channels have the names of "Perfect Sync", which begin
//!   with a capital (`EyeBlinkLeft`). Models without these clips use the names of VRM 0, which are
//!   derived by [`CLIPS`]; the page requires these names from every sender.
//! - The page allows bundles. uOSC, which most receivers use, reads bundles of any number of
//!   messages; here a bundle fits into an Ethernet frame, so that no network drops its fragments.

use rosc::{OscBundle, OscMessage, OscPacket, OscTime, OscType, encoder};

use super::avatar::Avatar;

/// The port of a "Marionette".
pub const PORT: u16 = 39539;

/// Maximum size of a datagram, bytes: an Ethernet frame without the headers of IPv6 and UDP.
pub const MAX_DATAGRAM: usize = 1500 - 40 - 8;

/// `#bundle` and the time tag, bytes.
const BUNDLE_HEADER: usize = 16;

/// The size before each message in a bundle, bytes.
const MESSAGE_HEADER: usize = 4;

/// The time tag that means "immediately".
const IMMEDIATELY: OscTime = OscTime {
    seconds: 0,
    fractional: 1,
};

/// Computes the value of a clip; `None` if one of its channels was not measured.
pub type Clip = fn(&Avatar) -> Option<f32>;

/// The clips of VRM 0 that are derived from channels. The formulas are our choice: the mean of both
/// sides, and vowels that share the mouth among each other. `Blink` is not sent, because receivers
/// add it to `Blink_L` and `Blink_R`; `Fun` and `Neutral` have no channels.
#[rustfmt::skip]
pub const CLIPS: [(&str, Clip); 14] = [
    ("A", |face| Some(face.get("jawOpen")? * (1.0 - rounding(face)?.max(widening(face)?)))),
    ("I", |face| Some(widening(face)? * (1.0 - face.get("jawOpen")?))),
    ("U", |face| Some(face.get("mouthPucker")? * (1.0 - face.get("jawOpen")?))),
    ("E", |face| Some(widening(face)? * face.get("jawOpen")?)),
    ("O", |face| face.get("mouthFunnel")),
    ("Blink_L", |face| face.get("eyeBlinkLeft")),
    ("Blink_R", |face| face.get("eyeBlinkRight")),
    ("Joy", |face| mean(face, "mouthSmileLeft", "mouthSmileRight")),
    ("Angry", |face| mean(face, "browDownLeft", "browDownRight")),
    ("Sorrow", |face| mean(face, "mouthFrownLeft", "mouthFrownRight")),
    ("LookUp", |face| mean(face, "eyeLookUpLeft", "eyeLookUpRight")),
    ("LookDown", |face| mean(face, "eyeLookDownLeft", "eyeLookDownRight")),
    ("LookLeft", |face| mean(face, "eyeLookOutLeft", "eyeLookInRight")),
    ("LookRight", |face| mean(face, "eyeLookInLeft", "eyeLookOutRight")),
];

/// The datagrams of a face `time` seconds after the start, each a bundle of at most
/// [`MAX_DATAGRAM`] bytes.
pub fn encode(avatar: &Avatar, time: f32) -> Vec<Vec<u8>> {
    let mut messages = vec![
        message("/VMC/Ext/OK", vec![OscType::Int(1)]),
        message("/VMC/Ext/T", vec![OscType::Float(time)]),
    ];
    let head = avatar.head.map(|head| head.rotation);
    let [left, right] = avatar.eyes().map(|eye| eye.map(|eye| eye.rotation()));
    let bones = [("Head", head), ("LeftEye", left), ("RightEye", right)].into_iter();
    messages.extend(bones.filter_map(|(name, rotation)| Some(bone(name, rotation?))));
    messages.extend(values(avatar).map(|(name, value)| {
        let arguments = vec![OscType::String(name), OscType::Float(value)];
        message("/VMC/Ext/Blend/Val", arguments)
    }));
    messages.push(message("/VMC/Ext/Blend/Apply", Vec::new()));
    bundles(messages).into_iter().map(datagram).collect()
}

/// Names and values: the channels, then the clips of VRM 0.
fn values(avatar: &Avatar) -> impl Iterator<Item = (String, f32)> {
    let channels = avatar.measured();
    let clips = CLIPS.iter().filter_map(|(name, clip)| {
        let value = clip(avatar)?;
        Some(((*name).to_owned(), value))
    });
    channels
        .map(|(name, value)| (capitalized(name), value))
        .chain(clips)
}

fn mean(face: &Avatar, left: &str, right: &str) -> Option<f32> {
    Some((face.get(left)? + face.get(right)?) / 2.0)
}

/// Degree to which the lips are rounded.
fn rounding(face: &Avatar) -> Option<f32> {
    Some(face.get("mouthFunnel")?.max(face.get("mouthPucker")?))
}

/// Degree to which the mouth is widened.
fn widening(face: &Avatar) -> Option<f32> {
    mean(face, "mouthStretchLeft", "mouthStretchRight")
}

fn capitalized(name: &str) -> String {
    let mut name = name.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

fn bone(name: &str, rotation: [f32; 4]) -> OscMessage {
    let position = [0.0; 3].into_iter();
    let numbers = position.chain(unity(rotation)).map(OscType::Float);
    let name = OscType::String(name.to_owned());
    message(
        "/VMC/Ext/Bone/Pos",
        [name].into_iter().chain(numbers).collect(),
    )
}

/// A rotation in Unity's space, whose x axis points the other way.
fn unity([x, y, z, w]: [f32; 4]) -> [f32; 4] {
    [x, -y, -z, w]
}

fn message(address: &str, args: Vec<OscType>) -> OscMessage {
    OscMessage {
        addr: address.to_owned(),
        args,
    }
}

/// Bundles that fit into a datagram each, with the messages in their order.
fn bundles(messages: Vec<OscMessage>) -> Vec<OscBundle> {
    let mut bundles: Vec<OscBundle> = Vec::new();
    let mut free = 0;
    for message in messages {
        let message = OscPacket::Message(message);
        let size = MESSAGE_HEADER + encoded(&message).len();
        match bundles.last_mut().filter(|_| size <= free) {
            Some(bundle) => bundle.content.push(message),
            None => {
                free = MAX_DATAGRAM - BUNDLE_HEADER;
                bundles.push(OscBundle {
                    timetag: IMMEDIATELY,
                    content: vec![message],
                });
            }
        }
        free -= size.min(free);
    }
    bundles
}

fn datagram(bundle: OscBundle) -> Vec<u8> {
    encoded(&OscPacket::Bundle(bundle))
}

fn encoded(packet: &OscPacket) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(_) = encoder::encode_into(packet, &mut bytes);
    bytes
}
