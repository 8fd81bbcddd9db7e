// SPDX-License-Identifier: MPL-2.0
//! The packet of Epic's app Live Link Face, as `AppleARKitLiveLinkSource.cpp` of Unreal Engine and
//! PyLiveLinkFace read it.
//!
//! | bytes | | |
//! |--:|---|---|
//! | 1 | u8 | version: 6 |
//! | 4 + 36 | text | identity of the device, a UUID |
//! | 4 + n | text | name of the subject |
//! | 4 | i32 | number of the frame |
//! | 4 | f32 | part of a frame since then, 0…1 |
//! | 4 + 4 | 2 × i32 | frame rate: numerator, denominator |
//! | 1 | u8 | number of values: 61 |
//! | 52 × 4 | f32 | the [channels](super::CHANNELS), 0 if not measured |
//! | 3 × 4 | f32 | yaw, pitch and roll of the head, rad |
//! | 2 × 3 × 4 | f32 | yaw, pitch and roll of the left eye and the right eye, rad |
//!
//! Everything is big-endian. A text is its length in bytes as an i32, then UTF-8. (PyLiveLinkFace
//! reads the version and the length of the UUID as a little-endian 6 and `$`, which are the same
//! bytes.)
//!
//! Angles have these units and signs:
//!
//! - Radians. A stream recorded from the app has 0.61 for an eye whose gaze channel is 1
//!   (`examples/dao.gesichter` of think-biq/LLV), which is 35° in radians. MeFaMo sends radians.
//! - Eyes, from that stream: yaw to the right side of the face and pitch downward are positive.
//! - The head has the opposite signs: yaw to the left side of the face and pitch upward are
//!   positive, and roll to the right shoulder. A MetaHuman in Unreal Engine 5.8 turns like this: a
//!   public program set each value and measured the bones, 50° for a value of 1. A receiver for VRM
//!   models in a browser applies these signs, and MeFaMo and Face_Landmark_Link send them; in
//!   Unreal's `AppleARKitFaceSupport` yaw and roll have them. The stream agrees, if the person
//!   looked at the screen: the yaws of head and eyes have the same sign there (correlation 0.95),
//!   and so have their pitches, although eyes turn against the head to stay on a point.

use std::time::Duration;

use super::avatar::{Avatar, EyeAngles, Head};

/// The port on which Unreal Engine listens.
pub const PORT: u16 = 11111;

/// Maximum length of the name of the first subject, bytes. Unreal Engine reads up to 255
/// characters; the number of a face needs some of them.
pub const MAX_SUBJECT: usize = 200;

/// Version of the packet.
const VERSION: u8 = 6;

/// Number of values: 52 channels and 9 angles.
const COUNT: u8 = 61;

/// Nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;

/// The time since the start of the stream in frames: whole ones, and the part of a frame since
/// then. The numerator and denominator of the rate are positive.
fn frames(time: Duration, [numerator, denominator]: [i32; 2]) -> (i32, f32) {
    let units = time.as_nanos() * u128::from(numerator.unsigned_abs());
    let frame = SECOND * u128::from(denominator.unsigned_abs());
    let whole = i32::try_from(units / frame).unwrap_or(i32::MAX);
    (whole, (units % frame) as f32 / frame as f32)
}

/// The name of the face with number `slot`: `name` for the first, then `name-2`, `name-3` and so
/// on.
pub fn subject(name: &str, slot: usize) -> String {
    if slot == 0 {
        name.to_owned()
    } else {
        format!("{name}-{}", slot + 1)
    }
}

/// The packet of a face at a time since the start of the stream, with the numerator and the
/// denominator of the frame rate; `device` is a UUID of 36 characters.
pub fn encode(
    avatar: &Avatar,
    device: &str,
    subject: &str,
    time: Duration,
    (numerator, denominator): (i32, i32),
) -> Vec<u8> {
    let rate = [numerator, denominator].map(|term| term.max(1));
    let (frame, sub_frame) = frames(time, rate);
    let mut packet = vec![VERSION];
    push_text(&mut packet, device);
    push_text(&mut packet, subject);
    packet.extend(frame.to_be_bytes());
    packet.extend(sub_frame.to_be_bytes());
    packet.extend(rate.into_iter().flat_map(i32::to_be_bytes));
    packet.push(COUNT);
    let channels = avatar.channels().map(Option::unwrap_or_default);
    let head = avatar.head.map(|head| of_head(&head));
    let [left, right] = avatar.eyes().map(|eye| eye.map(of_eye));
    let angles = [head, left, right].map(Option::unwrap_or_default);
    let values = channels.iter().chain(angles.as_flattened());
    packet.extend(values.flat_map(|value| value.to_be_bytes()));
    packet
}

/// Yaw, pitch, roll.
fn of_head(head: &Head) -> [f32; 3] {
    let angles = head.angles;
    [angles.yaw, -angles.pitch, angles.roll].map(f32::to_radians)
}

/// Yaw, pitch, roll.
fn of_eye(eye: EyeAngles) -> [f32; 3] {
    [-eye.yaw, eye.pitch, 0.0]
}

fn push_text(packet: &mut Vec<u8>, text: &str) {
    let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
    packet.extend(length.to_be_bytes());
    packet.extend(text.as_bytes());
}
