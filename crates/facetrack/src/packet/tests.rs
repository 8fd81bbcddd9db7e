// SPDX-License-Identifier: MPL-2.0

use std::sync::Arc;
use std::time::Duration;

use nalgebra::{Rotation3, Vector3};
use rosc::{OscMessage, OscPacket, OscType};

use super::ifacialmocap::Version;
use super::*;
use crate::blendshape::{Blendshapes, MEDIAPIPE_CHANNELS};
use crate::geometry::Rect;
use crate::observation::{HeadPose, Observation};

/// Angles of the head of [`face`], degrees: to its left, downward, to its right shoulder.
const YAW: f32 = 30.0;
const PITCH: f32 = 20.0;
const ROLL: f32 = 10.0;

/// The channels of MediaPipe with a value each, and a head whose matrix is scaled, as MediaPipe's.
fn face() -> Observation {
    let names: Arc<[String]> = MEDIAPIPE_CHANNELS.map(str::to_owned).into();
    let values = (0..52).map(|i| i as f32 / 100.0).collect();
    let rotation = turn(Vector3::y(), YAW) * turn(Vector3::x(), PITCH) * turn(Vector3::z(), ROLL);
    let translation = Vector3::new(1.0, 2.0, -50.0);
    Observation {
        blendshapes: Some(Blendshapes::new(names, values)),
        pose: HeadPose::new(&(rotation.into_inner() * 2.0), &translation),
        ..Observation::from_bbox(Rect::default())
    }
}

fn turn(axis: Vector3<f64>, degrees: f32) -> Rotation3<f64> {
    Rotation3::new(axis * f64::from(degrees).to_radians())
}

/// A face with these channels only, without a pose.
fn with_channels(channels: &[(&str, f32)]) -> Observation {
    let names: Vec<_> = channels
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let values = channels.iter().map(|(_, value)| *value).collect();
    Observation {
        blendshapes: Some(Blendshapes::new(names.into(), values)),
        ..Observation::from_bbox(Rect::default())
    }
}

fn avatar(face: &Observation) -> Avatar {
    Avatar::new(face, &View::default())
}

fn mirrored(face: &Observation) -> Avatar {
    let view = View {
        mirror: true,
        ..View::default()
    };
    Avatar::new(face, &view)
}

#[track_caller]
fn assert_near(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (got_value, want_value) in std::iter::zip(got, want) {
        assert!(
            (got_value - want_value).abs() < 1e-4,
            "{got:?}, expected {want:?}"
        );
    }
}

/// All messages of the datagrams.
fn messages(datagrams: &[Vec<u8>]) -> Vec<OscMessage> {
    let bundles =
        datagrams.iter().map(
            |datagram| match rosc::decoder::decode_udp(datagram).expect("OSC") {
                ([], OscPacket::Bundle(bundle)) => bundle,
                other => panic!("no bundle: {other:?}"),
            },
        );
    let packets = bundles.flat_map(|bundle| bundle.content);
    let messages = packets.map(|packet| match packet {
        OscPacket::Message(message) => message,
        other => panic!("no message: {other:?}"),
    });
    messages.collect()
}

/// The numbers of the message with this text.
fn numbers(avatar: &Avatar, name: &str) -> Option<Vec<f32>> {
    let name = OscType::String(name.to_owned());
    let messages = messages(&vmc::encode(avatar, 0.0));
    let message = messages
        .into_iter()
        .find(|it| it.args.first() == Some(&name))?;
    let numbers = message.args.into_iter().skip(1);
    Some(
        numbers
            .map(|number| number.float().expect("a float"))
            .collect(),
    )
}

fn text(avatar: &Avatar, version: Version) -> String {
    String::from_utf8(ifacialmocap::encode(avatar, version)).expect("text")
}

/// The numbers of a part of iFacialMocap's text.
fn part(avatar: &Avatar, name: &str) -> Option<Vec<f32>> {
    let text = text(avatar, Version::One);
    let parts = text.split(['|', '=']);
    let mut parts = parts.filter_map(|part| part.strip_prefix(name)?.strip_prefix('#'));
    let numbers = parts.next()?.split(',');
    Some(
        numbers
            .map(|number| number.parse().expect("a number"))
            .collect(),
    )
}

/// The 61 values at the end of Live Link's packet.
fn values(avatar: &Avatar) -> Vec<f32> {
    let packet = livelink::encode(avatar, "", "", Duration::ZERO, (25, 1));
    let values = packet[packet.len() - 61 * 4..].chunks_exact(4);
    let floats = values.map(|bytes| f32::from_be_bytes(bytes.try_into().expect("four bytes")));
    floats.collect()
}

/// Positions of a nose at (0, 0, 1) and of a left ear at (−1, 0, 0) of a Unity model after a
/// rotation.
fn unity_nose_and_ear(quaternion: &[f32]) -> [Vector3<f32>; 2] {
    let [x, y, z, w] = quaternion.try_into().expect("four numbers");
    // Unity's product of a quaternion and a vector is the usual formula.
    let axis = Vector3::new(x, y, z);
    [Vector3::z(), -Vector3::x()].map(|v| v + axis.cross(&(axis.cross(&v) + v * w)) * 2.0)
}

#[test]
fn a_turned_head_is_the_same_in_every_protocol() {
    let avatar = avatar(&face());
    let bone = numbers(&avatar, "Head").expect("a head");
    assert_eq!(bone[..3], [0.0; 3], "position");
    let [nose, left_ear] = unity_nose_and_ear(&bone[3..]);
    assert!(nose.x < -0.4, "to the left: {nose}");
    assert!(nose.y < -0.3, "down: {nose}");
    assert!(left_ear.y > 0.1, "to the right shoulder: {left_ear}");
    let head = part(&avatar, "head").expect("a head");
    assert_near(&head, &[PITCH, YAW, ROLL, 0.0, 0.0, 0.0]);
    let want = [YAW, -PITCH, ROLL].map(f32::to_radians);
    assert_near(&values(&avatar)[52..55], &want);
}

#[test]
fn a_mirrored_head_turns_the_other_way() {
    let avatar = mirrored(&face());
    let bone = numbers(&avatar, "Head").expect("a head");
    let [nose, left_ear] = unity_nose_and_ear(&bone[3..]);
    assert!(
        nose.x > 0.4 && nose.y < -0.3 && left_ear.y < -0.1,
        "{nose} {left_ear}"
    );
    let head = part(&avatar, "head").expect("a head");
    assert_near(&head, &[PITCH, -YAW, -ROLL, 0.0, 0.0, 0.0]);
    let want = [-YAW, -PITCH, -ROLL].map(f32::to_radians);
    assert_near(&values(&avatar)[52..55], &want);
}

#[test]
fn a_position_is_sent_in_metres() {
    for (mirror, x) in [(false, 0.01), (true, -0.01)] {
        let view = View {
            mirror,
            metres: Some(0.01),
        };
        let head = part(&Avatar::new(&face(), &view), "head").expect("a head");
        assert_near(&head[3..], &[x, 0.02, -0.5]);
    }
}

/// Both eyes look to the left side of the face, and down.
#[test]
fn eyes_follow_their_channels() {
    let face = with_channels(&[
        ("eyeLookOutLeft", 0.5),
        ("eyeLookInLeft", 0.0),
        ("eyeLookUpLeft", 0.0),
        ("eyeLookDownLeft", 0.25),
        ("eyeLookOutRight", 0.0),
        ("eyeLookInRight", 0.5),
        ("eyeLookUpRight", 0.0),
        ("eyeLookDownRight", 0.25),
    ]);
    let (yaw, pitch) = (0.5 * MAX_EYE_ANGLE, 0.25 * MAX_EYE_ANGLE);
    let cases = [(avatar(&face), yaw), (mirrored(&face), -yaw)];
    for (avatar, yaw) in cases {
        for (eye, bone) in [("leftEye", "LeftEye"), ("rightEye", "RightEye")] {
            let angles = part(&avatar, eye).expect(eye);
            assert_near(&angles, &[pitch.to_degrees(), yaw.to_degrees(), 0.0]);
            let bone = numbers(&avatar, bone).expect(bone);
            let [nose, _] = unity_nose_and_ear(&bone[3..]);
            let want = [
                -yaw.sin() * pitch.cos(),
                -pitch.sin(),
                yaw.cos() * pitch.cos(),
            ];
            assert_near(nose.as_slice(), &want);
        }
        let angles = [-yaw, pitch, 0.0];
        assert_near(&values(&avatar)[55..], &[angles, angles].concat());
    }
}

#[test]
fn each_channel_has_its_place() {
    let face = face();
    let shapes = face.blendshapes.as_ref().expect("channels");
    let avatar = avatar(&face);
    let all = values(&avatar);
    let text = text(&avatar, Version::Two);
    for (index, channel) in CHANNELS.into_iter().enumerate() {
        let value = shapes.get(channel);
        assert_eq!(all[index], value.unwrap_or(0.0), "{channel}");
        let capital = channel[..1].to_uppercase() + &channel[1..];
        assert_eq!(numbers(&avatar, &capital), value.map(|value| vec![value]));
    }
    let percent = |channel| (shapes.get(channel).expect(channel) * 100.0).round();
    for (name, channel) in [
        ("eyeBlink_L", "eyeBlinkLeft"),
        ("mouthSmile_R", "mouthSmileRight"),
        ("jawLeft", "jawLeft"),
        ("mouthRight", "mouthRight"),
        ("browInnerUp", "browInnerUp"),
    ] {
        let part = format!("{name}&{}", percent(channel));
        assert!(text.split('|').any(|own| own == part), "{part} in {text}");
    }
    assert!(
        !text.contains("tongueOut") && !text.contains("_neutral"),
        "{text}"
    );
}

#[test]
fn a_mirrored_face_has_its_sides_exchanged() {
    let face = face();
    let shapes = face.blendshapes.as_ref().expect("channels");
    let avatar = mirrored(&face);
    for (name, original) in [
        ("eyeBlinkLeft", "eyeBlinkRight"),
        ("mouthSmileRight", "mouthSmileLeft"),
        ("jawLeft", "jawRight"),
        ("mouthRight", "mouthLeft"),
        ("jawOpen", "jawOpen"),
    ] {
        assert_eq!(avatar.get(name), shapes.get(original), "{name}");
    }
}

#[test]
fn what_was_not_measured_is_left_out() {
    let avatar = avatar(&with_channels(&[("jawOpen", 0.254), ("nothing", 1.0)]));
    assert_eq!(text(&avatar, Version::One), "jawOpen-25|=|");
    let messages = messages(&vmc::encode(&avatar, 1.5));
    let names: Vec<_> = messages.iter().map(|message| &*message.addr).collect();
    let want = [
        "/VMC/Ext/OK",
        "/VMC/Ext/T",
        "/VMC/Ext/Blend/Val",
        "/VMC/Ext/Blend/Apply",
    ];
    assert_eq!(names, want);
    assert_eq!(messages[1].args, [OscType::Float(1.5)]);
    let nothing = values(&avatar).into_iter().filter(|value| *value != 0.0);
    assert_eq!(nothing.collect::<Vec<_>>(), [0.254]);
}

/// Invalid values that another element may have attached to a buffer.
#[test]
fn invalid_values_are_left_out_or_limited() {
    let face = with_channels(&[("jawOpen", f32::NAN), ("cheekPuff", 3.0), ("jawLeft", -1.0)]);
    let values = avatar(&face);
    let got = ["jawOpen", "cheekPuff", "jawLeft"].map(|name| values.get(name));
    assert_eq!(got, [None, Some(1.0), Some(0.0)]);
    for matrix in [[[0.0; 4]; 4], [[f32::NAN; 4]; 4], [[f32::INFINITY; 4]; 4]] {
        let face = Observation {
            pose: Some(HeadPose { matrix }),
            ..Observation::default()
        };
        assert_eq!(avatar(&face).head, None, "{matrix:?}");
    }
}

#[test]
fn clips_of_vrm_0_are_derived() {
    let avatar = avatar(&with_channels(&[
        ("jawOpen", 0.5),
        ("mouthFunnel", 0.25),
        ("mouthPucker", 0.125),
        ("mouthStretchLeft", 0.5),
        ("mouthStretchRight", 0.0),
        ("eyeBlinkLeft", 0.75),
        ("mouthSmileLeft", 1.0),
        ("mouthSmileRight", 0.5),
        ("eyeLookOutLeft", 0.5),
        ("eyeLookInRight", 0.25),
    ]));
    for (name, value) in [
        ("A", Some(0.5 * 0.75)),
        ("I", Some(0.25 * 0.5)),
        ("U", Some(0.125 * 0.5)),
        ("E", Some(0.25 * 0.5)),
        ("O", Some(0.25)),
        ("Blink_L", Some(0.75)),
        ("Blink_R", None),
        ("Joy", Some(0.75)),
        ("LookLeft", Some(0.375)),
        ("LookRight", None),
    ] {
        let want = value.map(|value| vec![value]);
        assert_eq!(numbers(&avatar, name), want, "{name}");
    }
}

#[test]
fn bundles_fit_into_frames_of_a_network() {
    let datagrams = vmc::encode(&avatar(&face()), 0.0);
    let sizes: Vec<_> = datagrams.iter().map(Vec::len).collect();
    assert!(
        sizes.iter().all(|size| *size <= vmc::MAX_DATAGRAM),
        "{sizes:?}"
    );
    assert_eq!(sizes.len(), 3);
    let messages = messages(&datagrams);
    let last = messages.last().map(|message| &*message.addr);
    assert_eq!(last, Some("/VMC/Ext/Blend/Apply"));
    assert_eq!(messages.len(), 2 + 3 + 51 + vmc::CLIPS.len() + 1);
}

#[test]
fn packets_of_live_link_say_when_and_of_whom_they_are() {
    let packet = livelink::encode(
        &avatar(&face()),
        "device",
        &livelink::subject("Zoë", 1),
        Duration::from_millis(1500),
        (30_000, 1001),
    );
    let start = b"\x06\0\0\0\x06device\0\0\0\x06Zo\xc3\xab-2";
    let (got, rest) = packet.split_at(start.len());
    assert_eq!(got, start);
    // 1.5 s × 30000/1001 = 44.955.
    assert_eq!(rest[..4], 44i32.to_be_bytes());
    let part = f32::from_be_bytes(rest[4..8].try_into().expect("four bytes"));
    assert!((part - 0.955).abs() < 1e-3, "{part}");
    assert_eq!(
        rest[8..16],
        [30_000i32, 1001].map(i32::to_be_bytes).concat()
    );
    assert_eq!((rest[16], rest.len()), (61, 17 + 61 * 4));
}

#[test]
fn frame_numbers_have_no_end() {
    for rate in [(i32::MAX, 1), (1, i32::MAX), (0, 0), (-1, -1)] {
        livelink::encode(&avatar(&face()), "", "", Duration::MAX, rate);
    }
}

#[test]
fn start_messages_ask_for_a_version() {
    let start = "iFacialMocap_sahuasouryya9218sauhuiayeta91555dy3719";
    for (message, version) in [
        (start.to_owned(), Some(Version::One)),
        (format!("{start}|sendDataVersion=v2"), Some(Version::Two)),
        (format!("{start}\n"), Some(Version::One)),
        (format!("{start}|sendDataVersion=v9"), None),
        (start.replace('_', "_UDPTCP_"), None),
        (String::new(), None),
    ] {
        let requested = Version::requested_by(message.as_bytes());
        assert_eq!(requested, version, "{message}");
    }
    assert_eq!(Version::requested_by(b"\xff"), None);
}

#[test]
fn faces_have_ports_where_packets_have_no_names() {
    for (protocol, ports) in [
        (Protocol::OpenSeeFace, [Some(9), Some(9), Some(9), Some(9)]),
        (Protocol::LiveLink, [Some(9), Some(9), Some(9), Some(9)]),
        (Protocol::Vmc, [Some(9), Some(10), Some(24), None]),
        (Protocol::IFacialMocap, [Some(9), Some(10), Some(24), None]),
    ] {
        let got = [0, 1, 15, 16].map(|slot| protocol.port_of(9, slot));
        assert_eq!(got, ports, "{protocol:?}");
        let last = protocol.port_of(u16::MAX, 0);
        assert_eq!(last, Some(u16::MAX), "{protocol:?}");
    }
    assert_eq!(Protocol::Vmc.port_of(u16::MAX, 1), None);
}

#[test]
fn a_lack_of_measurements_is_found_once() {
    let partial = avatar(&with_channels(&[("jawOpen", 0.5)]));
    let mut coverage = Coverage::default();
    let lacks: Vec<_> = (0..200).filter_map(|_| coverage.add(&partial)).collect();
    let lack = Lack {
        channels: 1,
        has_pose: false,
    };
    assert_eq!((lacks, coverage.end()), (vec![lack], None));

    let mut short = Coverage::default();
    assert_eq!(
        (short.end(), short.add(&partial), short.end()),
        (None, None, Some(lack))
    );

    let mut late = Coverage::default();
    let faces = std::iter::repeat_n(&partial, 30);
    assert!(faces.into_iter().all(|face| late.add(face).is_none()));
    assert_eq!((late.add(&avatar(&face())), late.end()), (None, None));
}

#[test]
fn some_engines_measure_everything() {
    assert_eq!(complete_engines(), ["mediapipe", "opencv-yunet-pyfeat"]);
}
