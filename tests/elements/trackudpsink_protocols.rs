// SPDX-License-Identifier: MPL-2.0
//! `trackudpsink` with the protocols that send channels and angles: ports, names, receivers that
//! ask, and warnings. `python/tests/test_avatars.py` compares every value.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use gst::prelude::*;

use crate::common::bus::Watch;
use crate::common::faces::{face, full_face, morphable_face};
use crate::common::reports::{report, with_report};
use crate::trackudpsink::{Receiver, Sink, element, text};
use facetrack::report::TrackedFace;

/// The message with which receivers of iFacialMocap ask for packets.
const START: &str = "iFacialMocap_sahuasouryya9218sauhuiayeta91555dy3719";

/// An address of this machine that no other test uses.
fn local(number: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 77, number).into()
}

fn sink(protocol: &str, host: IpAddr, port: u32) -> Sink {
    Sink::with(|element| {
        element.set_property_from_str("protocol", protocol);
        element.set_property("host", host.to_string());
        element.set_property("port", port);
    })
}

fn faces(count: u32) -> Vec<TrackedFace> {
    (1..=count).map(|id| full_face(id, 100.0)).collect()
}

/// Two receivers at consecutive ports.
fn neighbours(host: IpAddr) -> [Receiver; 2] {
    let pairs =
        (20_000..60_000).map(|port| [port, port + 1].map(|port| Receiver::at(host, port).ok()));
    let mut pairs = pairs.filter_map(|[first, second]| Some([first?, second?]));
    pairs.next().expect("two free ports")
}

/// The text between the length and the end of a packet of Live Link: UUID and subject.
fn names(packet: &[u8]) -> [String; 2] {
    let text = |from: usize, to: usize| String::from_utf8(packet[from..to].to_vec());
    let length = i32::from_be_bytes(packet[41..45].try_into().expect("four bytes"));
    let subject = text(45, 45 + length as usize).expect("UTF-8");
    [text(5, 41).expect("UTF-8"), subject]
}

/// Number of the frame in a packet of Live Link.
fn frame_number(packet: &[u8]) -> i32 {
    let start = 45 + names(packet)[1].len();
    i32::from_be_bytes(packet[start..start + 4].try_into().expect("four bytes"))
}

#[test]
fn each_protocol_has_its_port() {
    for (number, (protocol, port)) in [
        ("openseeface", 11573),
        ("vmc", 39539),
        ("ifacialmocap", 49983),
        ("livelink", 11111),
    ]
    .into_iter()
    .enumerate()
    {
        let host = local(10 + number as u8);
        let receiver = Receiver::at(host, port).expect("a free port");
        let mut sink = sink(protocol, host, 0);
        let mut face = crate::common::faces::fitted_face(1, 100.0);
        face.face.pose = full_face(1, 100.0).face.pose;
        sink.push_faces(vec![face]);
        assert!(!receiver.datagram().is_empty(), "{protocol}");
        sink.assert_silent();
    }
}

#[test]
fn subjects_of_live_link_are_faces() {
    let receiver = Receiver::new();
    let mut sink = sink("livelink", Ipv4Addr::LOCALHOST.into(), receiver.port());
    let mut uuids = BTreeSet::new();
    let mut push = |sink: &mut Sink| {
        sink.push_faces(faces(3));
        [(); 3].map(|()| {
            let [uuid, subject] = names(&receiver.datagram());
            uuids.insert(uuid);
            subject
        })
    };
    assert_eq!(push(&mut sink), ["facetrack", "facetrack-2", "facetrack-3"]);
    sink.element.set_state(gst::State::Ready).expect("it stops");
    sink.element.set_property("subject", "Zoë");
    sink.element
        .set_state(gst::State::Playing)
        .expect("it starts");
    sink.push_event(gst::event::StreamStart::new("another"));
    sink.set_caps("video/x-raw,format=RGB,width=640,height=360,framerate=25/1");
    assert_eq!(push(&mut sink), ["Zoë", "Zoë-2", "Zoë-3"]);
    assert_eq!(uuids.len(), 1, "of the element: {uuids:?}");
    sink.assert_silent();
}

/// Frames are numbered with the frame rate of the caps, or 60 without one. Frames without a
/// timestamp follow each other.
#[test]
fn frames_of_live_link_are_numbered() {
    let receiver = Receiver::new();
    let mut sink = sink("livelink", Ipv4Addr::LOCALHOST.into(), receiver.port());
    let push = |sink: &mut Sink, pts: Option<u64>| {
        let mut buffer = gst::Buffer::new();
        let pts = pts.map(gst::ClockTime::from_mseconds);
        buffer.make_mut().set_pts(pts);
        sink.push(with_report(buffer, &report(faces(1))));
        frame_number(&receiver.datagram())
    };
    for (pts, number) in [(Some(0), 0), (Some(2000), 50), (None, 51), (None, 52)] {
        assert_eq!(push(&mut sink, pts), number, "{pts:?}");
    }
    sink.set_caps("video/x-raw,format=RGB,width=640,height=360,framerate=0/1");
    assert_eq!(push(&mut sink, Some(3000)), 180);
}

#[test]
fn faces_without_names_have_ports() {
    for (number, protocol) in ["vmc", "ifacialmocap"].into_iter().enumerate() {
        let host = local(20 + number as u8);
        let [first, second] = neighbours(host);
        let mut sink = sink(protocol, host, first.port());
        sink.push_faces(vec![full_face(4, 100.0), face(9, 300.0)]);
        let sizes = [&first, &second].map(|receiver| receiver.datagram().len());
        assert!(
            sizes[0] > sizes[1],
            "the second face has no channels: {sizes:?}"
        );
        sink.assert_silent();
    }
}

#[test]
fn some_of_many_faces_are_sent() {
    for (protocol, port, most, remedy) in [
        ("ifacialmocap", 0, 16, "Set max-faces"),
        ("ifacialmocap", 65530, 6, "Lower `port`, or set max-faces"),
        ("livelink", 0, 100, "Set max-faces"),
    ] {
        let mut sink = sink(protocol, local(30), port);
        for _ in 0..3 {
            sink.push_faces(faces(120));
        }
        assert_eq!(sink.counts(), (3 * most, 0));
        let warning = text(&sink.bus, gst::MessageType::Warning);
        for part in [remedy, &format!("limited to {most}.")] {
            assert!(warning.contains(part), "{warning}");
        }
        sink.assert_silent();
    }
}

fn part(datagram: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8(datagram.to_vec()).expect("text");
    let mut parts = text.split('|');
    parts.find(|part| part.starts_with(name)).map(str::to_owned)
}

#[test]
fn a_mirror_exchanges_the_sides() {
    let receiver = Receiver::new();
    let mut blinks = Vec::new();
    for mirror in [false, true] {
        let mut sink = Sink::with(|element| {
            element.set_property_from_str("protocol", "ifacialmocap");
            element.set_property("port", receiver.port());
            element.set_property("mirror", mirror);
        });
        sink.push_faces(faces(1));
        let datagram = receiver.datagram();
        blinks.push(["eyeBlink_L-", "eyeBlink_R-"].map(|name| {
            let part = part(&datagram, name).expect(name);
            part.trim_start_matches(name).to_owned()
        }));
    }
    let [[left, right], mirrored] = [blinks[0].clone(), blinks[1].clone()];
    assert_ne!(left, right);
    assert_eq!(mirrored, [right, left]);
}

#[test]
fn receivers_may_ask_for_packets() {
    let [own, asker, other] = [local(40), local(41), local(42)];
    let host = Receiver::new();
    let mut sink = Sink::with(|element| {
        element.set_property_from_str("protocol", "ifacialmocap");
        element.set_property("port", host.port());
        element.set_property("listen", own.to_string());
    });
    sink.push_faces(faces(1));
    assert!(part(&host.datagram(), "jawOpen-").is_some(), "unasked");

    let asker = Receiver::at(asker, 49983).expect("a free port");
    asker.ask((own, 49983), "hello");
    asker.ask((own, 49983), &format!("{START}|sendDataVersion=v2"));
    sink.push_faces(faces(1));
    assert!(part(&asker.datagram(), "jawOpen&").is_some(), "version 2");

    // The answer goes to the receiver's 49983, whatever port it asks from.
    let other = Receiver::at(other, 49983).expect("a free port");
    let elsewhere = UdpSocket::bind((local(42), 0)).expect("a free port");
    elsewhere
        .send_to(START.as_bytes(), (own, 49983))
        .expect("it is sent");
    sink.push_faces(faces(1));
    assert!(part(&other.datagram(), "jawOpen-").is_some(), "version 1");
    asker.datagram();
    host.assert_nothing_came();
    assert_eq!(sink.counts(), (4, 0));
    sink.assert_silent();
}

#[test]
fn a_port_that_another_program_has_is_no_error() {
    let own = local(50);
    let _receiver = Receiver::at(own, 49983).expect("a free port");
    let host = Receiver::new();
    let mut sink = Sink::with(|element| {
        element.set_property_from_str("protocol", "ifacialmocap");
        element.set_property("port", host.port());
        element.set_property("listen", own.to_string());
    });
    let info = text(&sink.bus, gst::MessageType::Info);
    assert!(info.contains("127.0.77.50:49983"), "{info}");
    sink.push_faces(faces(1));
    assert!(!host.datagram().is_empty());
    sink.assert_silent();
}

/// No port is opened for others, whatever the protocol.
#[test]
fn nobody_can_ask_unless_wanted() {
    let own = local(60);
    for (protocol, listen) in [("ifacialmocap", None), ("vmc", Some(own.to_string()))] {
        let mut sink = Sink::with(|element| {
            element.set_property_from_str("protocol", protocol);
            element.set_property("host", local(61).to_string());
            element.set_property("listen", listen);
        });
        sink.push_faces(faces(1));
        UdpSocket::bind((own, 49983)).expect("the port is free");
    }
}

#[test]
fn settings_that_make_no_sense_are_errors_before_the_stream() {
    for (property, value) in [("listen", "yes".to_owned()), ("subject", "x".repeat(201))] {
        let (element, bus) = element();
        element.set_property_from_str("protocol", "ifacialmocap");
        element.set_property(property, value);
        assert!(element.set_state(gst::State::Paused).is_err());
        let error = text(&bus, gst::MessageType::Error);
        assert!(error.contains(property), "{error}");
        element.set_state(gst::State::Null).expect("it stops");
    }
}

/// The warning that the avatar moves only in part.
#[track_caller]
fn assert_warns(bus: &Watch) {
    let warning = text(bus, gst::MessageType::Warning);
    for part in [
        "only in part",
        "1 of 52 channels and a head pose",
        "mediapipe",
    ] {
        assert!(warning.contains(part), "{warning}");
    }
}

#[test]
fn a_lack_of_channels_is_reported_once_in_a_stream() {
    for protocol in ["vmc", "ifacialmocap", "livelink"] {
        let mut sink = sink(protocol, local(70), 0);
        for _ in 0..100 {
            sink.push_faces(vec![morphable_face(1, 100.0)]);
        }
        assert_warns(&sink.bus);
        sink.push_event(gst::event::StreamStart::new("another"));
        sink.set_caps("video/x-raw,format=RGB,width=640,height=360");
        sink.push_faces(vec![morphable_face(1, 100.0)]);
        sink.assert_silent();
        sink.push_event(gst::event::Eos::new());
        assert_warns(&sink.bus);
    }
}

#[test]
fn a_face_with_all_channels_is_no_reason_to_warn() {
    for protocol in ["vmc", "ifacialmocap", "livelink"] {
        let mut sink = sink(protocol, local(80), 0);
        for _ in 0..100 {
            sink.push_faces(faces(1));
        }
        sink.push_event(gst::event::Eos::new());
        sink.assert_silent();
    }
}

/// The time is measured from the buffer to the packets. The median is used, because other programs
/// run meanwhile.
#[test]
fn packets_leave_within_a_millisecond() {
    for protocol in ["vmc", "ifacialmocap", "livelink"] {
        let mut sink = sink(protocol, local(90), 0);
        let mut times: Vec<_> = (0..201)
            .map(|_| {
                let buffer = with_report(gst::Buffer::new(), &report(faces(1)));
                let start = Instant::now();
                sink.push(buffer);
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        eprintln!("{protocol}: {:?}, at most {:?}", times[100], times[200]);
        assert!(
            times[100] <= Duration::from_millis(1),
            "{protocol}: {times:?}"
        );
    }
}
