// SPDX-License-Identifier: MPL-2.0
//! `trackudpsink` fed with buffers that carry hand-made reports, and its packets on real sockets.

use crate::common;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::bus::{self, Watch};
use crate::common::child::{child, is_child};
use crate::common::faces::{fitted_face, full_face, morphable_face};
use crate::common::reports::{report, with_malformed_meta, with_report};
use facetrack::packet::openseeface::SIZE;
use facetrack::report::{FrameStatus, TrackedFace};
use gst::prelude::*;
use gst_check::Harness;

/// An address of this machine where no program listens: receivers of other tests are at 127.0.0.1.
const SILENT_HOST: &str = "127.0.0.2";

/// A receiver of packets.
pub struct Receiver(UdpSocket);

impl Receiver {
    pub fn at(address: impl Into<IpAddr>, port: u16) -> std::io::Result<Self> {
        let socket = UdpSocket::bind((address.into(), port))?;
        // Loopback delivers at once; this is for a test that fails.
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self(socket))
    }

    /// On a free port.
    pub fn new() -> Self {
        Self::at(Ipv4Addr::LOCALHOST, 0).expect("a free port")
    }

    pub fn port(&self) -> u32 {
        self.0.local_addr().expect("it is bound").port().into()
    }

    pub fn datagram(&self) -> Vec<u8> {
        let mut datagram = vec![0; 65535];
        let length = self.0.recv(&mut datagram).expect("a packet");
        datagram.truncate(length);
        datagram
    }

    /// Sends a message from the receiver's port.
    pub fn ask(&self, address: (IpAddr, u16), message: &str) {
        let sent = self.0.send_to(message.as_bytes(), address);
        assert_eq!(sent.expect("it is sent"), message.len());
    }

    fn packet(&self) -> Vec<u8> {
        let packet = self.datagram();
        assert_eq!(packet.len(), SIZE);
        packet
    }

    /// Number of the next packet's face.
    fn id(&self) -> i32 {
        let packet = self.packet();
        i32::from_le_bytes(packet[8..12].try_into().expect("four bytes"))
    }

    /// Time of the next packet.
    fn time(&self) -> f64 {
        let packet = self.packet();
        f64::from_le_bytes(packet[..8].try_into().expect("eight bytes"))
    }

    #[track_caller]
    pub fn assert_nothing_came(&self) {
        self.0.set_nonblocking(true).expect("a socket");
        let error = self.0.recv(&mut [0; 65535]).expect_err("no packet");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        self.0.set_nonblocking(false).expect("a socket");
    }
}

/// A sink under test.
pub struct Sink {
    harness: Harness,
    pub element: gst::Element,
    pub bus: Watch,
}

impl Sink {
    /// Sends to `port` as soon as frames are there.
    fn to(port: u32) -> Self {
        Self::with(|element| element.set_property("port", port))
    }

    pub fn with(set: impl FnOnce(&gst::Element)) -> Self {
        let (element, bus) = element();
        set(&element);
        // This sets the sink's `sync` to false.
        let mut harness = Harness::with_element(&element, Some("sink"), None);
        harness.use_testclock();
        harness.play();
        harness.set_src_caps_str("video/x-raw,format=RGB,width=640,height=360,framerate=25/1");
        Self {
            harness,
            element,
            bus,
        }
    }

    pub fn push(&mut self, buffer: gst::Buffer) {
        assert_eq!(self.harness.push(buffer), Ok(gst::FlowSuccess::Ok));
    }

    pub fn push_faces(&mut self, faces: Vec<TrackedFace>) {
        self.push(with_report(gst::Buffer::new(), &report(faces)));
    }

    /// A frame with faces of these identities.
    fn push_ids(&mut self, ids: &[u32]) {
        self.push_faces(ids.iter().map(|id| fitted_face(*id, 100.0)).collect());
    }

    pub fn push_event(&mut self, event: gst::Event) {
        assert!(self.harness.push_event(event));
    }

    pub fn set_caps(&mut self, caps: &str) {
        self.harness.set_src_caps_str(caps);
    }

    /// Sent, dropped.
    pub fn counts(&self) -> (u32, u32) {
        let count = |name| self.element.property(name);
        (count("packets-sent"), count("packets-dropped"))
    }

    #[track_caller]
    pub fn assert_silent(&self) {
        let kinds = [gst::MessageType::Error, gst::MessageType::Warning];
        assert_eq!(
            self.bus.pop_filtered(&kinds).map(|m| format!("{m:?}")),
            None
        );
    }
}

pub fn element() -> (gst::Element, Watch) {
    common::init();
    let element = gst::ElementFactory::make("trackudpsink")
        .build()
        .expect("the element");
    let bus = Watch::of(&element);
    (element, bus)
}

/// The word of an enum property.
fn options_word(element: &gst::Element, name: &str) -> String {
    gstfacetrack::options::display(&element.property_value(name))
}

/// The message that users see, whether they show details or not.
pub fn text(bus: &gst::Bus, kind: gst::MessageType) -> String {
    bus::next(bus, kind).expect("a message").to_string()
}

#[test]
fn defaults_are_those_of_facetracker_and_of_sinks() {
    let (element, _bus) = element();
    assert_eq!(element.property::<String>("host"), "127.0.0.1");
    assert_eq!(element.property::<u32>("port"), 0, "the protocol's");
    assert_eq!(element.property::<Option<String>>("listen"), None);
    assert_eq!(options_word(&element, "protocol"), "openseeface");
    assert_eq!(element.property::<u32>("face-id-offset"), 0);
    assert!(element.property::<bool>("sync"));
}

#[test]
fn each_face_of_a_frame_is_a_packet() {
    let receiver = Receiver::new();
    let mut sink = Sink::to(receiver.port());
    sink.push_ids(&[3, 8]);
    let packets = [receiver.packet(), receiver.packet()];
    let ids = packets.each_ref().map(|packet| packet[8]);
    assert_eq!(ids, [0, 1]);
    assert_eq!(packets[0][..8], packets[1][..8], "of one time");
    assert_eq!(
        packets[0][12..20],
        [1280f32, 720.0].map(f32::to_le_bytes).concat()
    );
    receiver.assert_nothing_came();
    sink.push_ids(&[3]);
    assert_eq!(receiver.id(), 0);
    assert_eq!(sink.counts(), (3, 0));
    sink.assert_silent();
}

/// `facetracker.py` sends nothing with 40 faces and more, since it sends them all at once.
#[test]
fn more_faces_are_sent_than_by_the_original() {
    let receiver = Receiver::new();
    let mut sink = Sink::to(receiver.port());
    // Read as they come: the receiver's buffer does not hold them all.
    std::thread::scope(|scope| {
        let ids = scope.spawn(|| (0..41).map(|_| receiver.id()).collect::<Vec<_>>());
        sink.push_ids(&(1..=41).collect::<Vec<_>>());
        assert_eq!(ids.join().expect("packets"), (0..41).collect::<Vec<_>>());
    });
    assert_eq!(sink.counts(), (41, 0));
}

#[test]
fn frames_without_a_face_send_nothing() {
    let receiver = Receiver::new();
    let mut sink = Sink::to(receiver.port());
    let mut gap = gst::Buffer::new();
    gap.make_mut().set_flags(gst::BufferFlags::GAP);
    let mut skipped = report(vec![]);
    skipped.status = FrameStatus::Gap;
    let silent = [
        gst::Buffer::new(),
        gap.clone(),
        with_report(gap, &skipped),
        with_report(gst::Buffer::new(), &report(vec![])),
        with_malformed_meta(gst::Buffer::new()),
    ];
    for buffer in silent {
        sink.push(buffer);
    }
    receiver.assert_nothing_came();
    sink.push_ids(&[1]);
    assert_eq!(receiver.id(), 0);
    assert_eq!(sink.counts(), (1, 0));
    sink.assert_silent();
}

#[test]
fn faces_have_small_numbers_that_stay() {
    let receiver = Receiver::new();
    let mut sink = Sink::to(receiver.port());
    let frames: [(&[u32], &[i32]); 6] = [
        (&[1], &[0]),
        (&[1, 2], &[0, 1]),
        (&[2], &[1]),
        (&[], &[]),
        (&[5], &[0]),
        (&[5, 2], &[0, 1]),
    ];
    for (ids, numbers) in frames {
        sink.push_ids(ids);
        for number in numbers {
            assert_eq!(receiver.id(), *number, "{ids:?}");
        }
    }
    // Identities of another stream are others.
    sink.push_event(gst::event::StreamStart::new("another"));
    sink.harness
        .set_src_caps_str("video/x-raw,format=RGB,width=640,height=360");
    sink.push_ids(&[2]);
    assert_eq!(receiver.id(), 0);
}

#[test]
fn faces_are_numbered_from_an_offset() {
    let receiver = Receiver::new();
    let mut sink = Sink::with(|element| {
        element.set_property("port", receiver.port());
        element.set_property("face-id-offset", 100u32);
    });
    sink.push_ids(&[7, 9]);
    assert_eq!([receiver.id(), receiver.id()], [100, 101]);
}

/// Receivers pass over a packet that is not later than the one before.
#[test]
fn times_are_of_the_day_and_rise() {
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.expect("after 1970").as_secs_f64()
    };
    let receiver = Receiver::new();
    let mut sink = Sink::to(receiver.port());
    let start = now();
    let mut last = start - 1e-3;
    for _ in 0..20 {
        sink.push_ids(&[1]);
        let time = receiver.time();
        assert!(time > last, "{time} after {last}");
        last = time;
    }
    assert!(last <= now() + 1e-3 && last >= start);
}

#[test]
fn faces_of_other_engines_are_reported_once_in_a_stream() {
    let receiver = Receiver::new();
    let mut sink = Sink::to(receiver.port());
    for stream in ["one", "two"] {
        for _ in 0..3 {
            sink.push_faces(vec![full_face(1, 100.0), morphable_face(2, 300.0)]);
        }
        let warning = text(&sink.bus, gst::MessageType::Warning);
        assert!(
            warning.contains("engine=openseeface"),
            "{stream}: {warning}"
        );
        assert!(warning.contains("engine=handmade"), "{stream}: {warning}");
        sink.assert_silent();
        sink.push_event(gst::event::StreamStart::new(stream));
        sink.harness
            .set_src_caps_str("video/x-raw,format=RGB,width=640,height=360");
    }
    receiver.assert_nothing_came();
    sink.push_ids(&[1]);
    receiver.packet();
    assert_eq!(sink.counts(), (1, 0));
}

#[test]
fn nobody_needs_to_listen() {
    let mut sink = Sink::with(|element| element.set_property("host", SILENT_HOST));
    for _ in 0..100 {
        sink.push_ids(&[1]);
    }
    assert_eq!(sink.counts(), (100, 0));
    sink.push_event(gst::event::Eos::new());
    sink.assert_silent();
}

/// A receiver that comes late gets every packet from then on.
#[test]
fn a_receiver_may_come_late() {
    let early = Receiver::new();
    let mut sink = Sink::with(|element| {
        element.set_property("host", SILENT_HOST);
        element.set_property("port", early.port());
    });
    for _ in 0..3 {
        sink.push_ids(&[1]);
    }
    let host: IpAddr = SILENT_HOST.parse().expect("an address");
    let port = early.0.local_addr().expect("it is bound").port();
    let late = Receiver::at(host, port).expect("it is free");
    sink.push_ids(&[1]);
    assert_eq!(late.id(), 0);
    early.assert_nothing_came();
    late.assert_nothing_came();
}

#[test]
fn packets_go_to_a_broadcast_address() {
    let broadcast = Ipv4Addr::new(127, 255, 255, 255);
    let receiver = Receiver::at(broadcast, 0).expect("a free port");
    let mut sink = Sink::with(|element| {
        element.set_property("host", broadcast.to_string());
        element.set_property("port", receiver.port());
    });
    sink.push_ids(&[1]);
    assert_eq!(receiver.id(), 0);
    assert_eq!(sink.counts(), (1, 0));
    sink.assert_silent();
}

/// A command that runs another one without a network.
fn isolated() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net"]);
    command
}

#[test]
fn packets_that_the_system_does_not_take_are_counted_and_reported_once_in_a_stream() {
    let name = "trackudpsink::packets_that_the_system_does_not_take_are_counted_and_reported_once_in_a_stream";
    if !is_child(name) {
        if !isolated().arg("true").status().is_ok_and(|it| it.success()) {
            return eprintln!("SKIPPED: this user cannot run unshare");
        }
        let (mut isolated, child) = (isolated(), child(name, &[]));
        isolated.arg(child.get_program()).args(child.get_args());
        let variables = child.get_envs();
        isolated.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        let output = isolated.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let mut sink = Sink::with(|_| ());
    for (stream, dropped) in [("one", 6), ("two", 12)] {
        for _ in 0..3 {
            sink.push_ids(&[1, 2]);
        }
        assert_eq!(sink.counts(), (0, dropped));
        let warning = text(&sink.bus, gst::MessageType::Warning);
        for part in ["127.0.0.1:11573", "unreachable", "set `host`"] {
            assert!(warning.contains(part), "{part} not in {warning}");
        }
        sink.assert_silent();
        sink.push_event(gst::event::StreamStart::new(stream));
        sink.set_caps("video/x-raw,format=RGB,width=640,height=360");
    }
}

#[test]
fn a_receiver_may_have_another_kind_of_address() {
    let Ok(receiver) = Receiver::at(Ipv6Addr::LOCALHOST, 0) else {
        eprintln!("SKIPPED: this machine has no IPv6");
        return;
    };
    let mut sink = Sink::with(|element| {
        element.set_property("host", "::1");
        element.set_property("port", receiver.port());
    });
    sink.push_ids(&[1]);
    assert_eq!(receiver.id(), 0);
}

#[test]
fn a_host_that_nobody_knows_is_an_error_before_the_stream() {
    let (element, bus) = element();
    element.set_property("host", "receiver.invalid");
    assert!(element.set_state(gst::State::Paused).is_err());
    let error = text(&bus, gst::MessageType::Error);
    assert!(error.contains("host=receiver.invalid"), "{error}");
    assert!(error.contains("Set `host`"), "{error}");
    element.set_state(gst::State::Null).expect("it stops");
    element.set_property("host", "localhost");
    element.set_state(gst::State::Paused).expect("it starts");
    element.set_state(gst::State::Null).expect("it stops");
}

#[test]
fn a_stream_goes_on_after_a_flush_and_another_start() {
    let receiver = Receiver::new();
    let mut sink = Sink::to(receiver.port());
    sink.push_ids(&[1, 2]);
    sink.push_event(gst::event::FlushStart::new());
    sink.push_event(gst::event::FlushStop::new(true));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    sink.push_event(gst::event::Segment::new(&segment));
    sink.push_ids(&[2]);
    assert_eq!([receiver.id(), receiver.id(), receiver.id()], [0, 1, 1]);
    sink.push_event(gst::event::Eos::new());

    let other = Receiver::new();
    sink.element.set_state(gst::State::Ready).expect("it stops");
    sink.element.set_property("port", other.port());
    sink.element
        .set_state(gst::State::Playing)
        .expect("it starts");
    sink.push_event(gst::event::StreamStart::new("another"));
    sink.harness
        .set_src_caps_str("video/x-raw,format=RGB,width=640,height=360");
    sink.push_ids(&[1]);
    assert_eq!(other.id(), 0);
    assert_eq!(sink.counts(), (1, 0));
    receiver.assert_nothing_came();
}

/// A sink in time with the stream's clock, and a frame that is due in an hour, which another thread
/// pushes.
fn with_a_waiting_frame(
    test: impl FnOnce(&mut Sink, &Receiver),
) -> Result<gst::FlowSuccess, gst::FlowError> {
    let receiver = Receiver::new();
    let mut sink = Sink::to(receiver.port());
    sink.element.set_property("sync", true);
    let mut buffer = gst::Buffer::new();
    buffer
        .make_mut()
        .set_pts(gst::ClockTime::from_seconds(3600));
    let buffer = with_report(buffer, &report(vec![fitted_face(1, 100.0)]));
    let pad = sink.element.static_pad("sink").expect("a pad");
    let source = pad.peer().expect("the harness");
    std::thread::scope(|scope| {
        let pushed = scope.spawn(move || source.push(buffer));
        sink.harness
            .wait_for_clock_id_waits(1, 20)
            .expect("the frame waits");
        receiver.assert_nothing_came();
        test(&mut sink, &receiver);
        pushed.join().expect("no panic")
    })
}

#[test]
fn frames_are_sent_when_their_time_comes() {
    let flow = with_a_waiting_frame(|sink, receiver| {
        assert!(sink.harness.crank_single_clock_wait().is_ok());
        assert_eq!(receiver.id(), 0);
    });
    assert_eq!(flow, Ok(gst::FlowSuccess::Ok));
}

#[test]
fn a_flush_does_not_wait_for_a_frame() {
    let flow = with_a_waiting_frame(|sink, receiver| {
        sink.push_event(gst::event::FlushStart::new());
        receiver.assert_nothing_came();
    });
    assert_eq!(flow, Err(gst::FlowError::Flushing));
}
