// SPDX-License-Identifier: MPL-2.0
//! The packets of `trackudpsink` as a receiver reads them that shares nothing with it:
//! `receive_udp.py`.

use crate::common;
use crate::common::recording;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::common::faces::fitted_face;
use crate::common::python::PYTHON;
use crate::common::reports::{report, with_report};
use facetrack::engine::EngineKind;
use facetrack::observation::{Gaze, LandmarkScheme, Observation, Pupil};
use facetrack::report::FrameReport;
use gst::prelude::*;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;
use serde::Deserialize;

/// A packet, with the names of `OpenSee.cs`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Packet {
    time: f64,
    id: i32,
    camera_resolution: [f32; 2],
    right_eye_open: f32,
    left_eye_open: f32,
    #[serde(rename = "got3DPoints")]
    got_3d_points: u8,
    #[serde(rename = "fit3DError")]
    fit_3d_error: f32,
    raw_quaternion: [f32; 4],
    raw_euler: [f32; 3],
    translation: [f32; 3],
    confidence: Vec<f32>,
    points: Vec<[f32; 2]>,
    #[serde(rename = "points3D")]
    points_3d: Vec<[f32; 3]>,
    features: Features,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Features {
    eye_left: f32,
    eye_right: f32,
    eyebrow_steepness_left: f32,
    eyebrow_up_down_left: f32,
    eyebrow_quirk_left: f32,
    eyebrow_steepness_right: f32,
    eyebrow_up_down_right: f32,
    eyebrow_quirk_right: f32,
    mouth_corner_up_down_left: f32,
    mouth_corner_in_out_left: f32,
    mouth_corner_up_down_right: f32,
    mouth_corner_in_out_right: f32,
    mouth_open: f32,
    mouth_wide: f32,
}

impl Features {
    /// Returns the features with the names of `facetracker.py`.
    fn named(&self) -> [(&'static str, f32); 14] {
        [
            ("eye_l", self.eye_left),
            ("eye_r", self.eye_right),
            ("eyebrow_steepness_l", self.eyebrow_steepness_left),
            ("eyebrow_updown_l", self.eyebrow_up_down_left),
            ("eyebrow_quirk_l", self.eyebrow_quirk_left),
            ("eyebrow_steepness_r", self.eyebrow_steepness_right),
            ("eyebrow_updown_r", self.eyebrow_up_down_right),
            ("eyebrow_quirk_r", self.eyebrow_quirk_right),
            ("mouth_corner_updown_l", self.mouth_corner_up_down_left),
            ("mouth_corner_inout_l", self.mouth_corner_in_out_left),
            ("mouth_corner_updown_r", self.mouth_corner_up_down_right),
            ("mouth_corner_inout_r", self.mouth_corner_in_out_right),
            ("mouth_open", self.mouth_open),
            ("mouth_wide", self.mouth_wide),
        ]
    }
}

/// A running receiver.
struct Receiver {
    process: Child,
    port: u32,
    /// Reads what it prints: it would wait for that with the next packets unread.
    packets: JoinHandle<Vec<Packet>>,
}

impl Receiver {
    fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/receive_udp.py");
        let mut process = Command::new(PYTHON)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python is installed");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut lines = output.lines().map(|line| line.expect("text"));
        let port = lines.next().expect("the receiver speaks");
        let packet = |line: String| serde_json::from_str(&line).expect("a packet");
        Self {
            process,
            port: port.parse().expect("a port"),
            packets: thread::spawn(move || lines.map(packet).collect()),
        }
    }

    /// Every packet that has come.
    fn finish(mut self) -> Vec<Packet> {
        drop(self.process.stdin.take());
        assert!(self.process.wait().expect("it ends").success());
        self.packets.join().expect("packets")
    }
}

/// The packet says what the report says of its face.
#[track_caller]
fn assert_tells(packet: &Packet, report: &FrameReport, face: &Observation) {
    let landmarks = face.landmarks.as_ref().expect("landmarks");
    assert_eq!(landmarks.scheme, LandmarkScheme::OpenSeeFace66);
    let fit = face.fit.as_ref().expect("a fit");
    let nowhere = Pupil::default();
    let gaze = face.gaze.unwrap_or(Gaze {
        right: nowhere,
        left: nowhere,
    });
    let pupils = [gaze.right, gaze.left];
    let size = [report.width, report.height].map(|side| side as f32);
    assert_eq!(packet.camera_resolution, size);
    assert_eq!(packet.got_3d_points, u8::from(fit.success));
    let error = if fit.success { fit.error } else { 99999.0 };
    assert_eq!(packet.fit_3d_error, error);
    assert_eq!(packet.raw_quaternion, fit.quaternion);
    assert_eq!(packet.raw_euler, fit.euler);
    assert_eq!(packet.translation, fit.translation);
    let scores = landmarks.confidences.iter().copied();
    let scores: Vec<_> = scores.chain(pupils.map(|p| p.confidence)).collect();
    assert_eq!(packet.confidence, scores);
    let points = landmarks.points.iter().map(|p| [p.x, p.y]);
    let pupils = pupils.map(|p| [p.position.x, p.position.y]);
    assert_eq!(packet.points, points.chain(pupils).collect::<Vec<_>>());
    assert_eq!(packet.points_3d.len(), 70);
    for (index, [x, y, z]) in packet.points_3d.iter().enumerate() {
        let point = fit.points.get(index).copied().unwrap_or_default();
        assert_eq!([*x, -y, -z], point, "point {index}");
    }
    for (name, value) in packet.features.named() {
        let measured = face.features.and_then(|features| features.get(name));
        assert_eq!(value, measured.unwrap_or(0.0), "{name}");
    }
    let open = |eye: f32| 1.0 - (-eye).clamp(0.0, 1.0);
    assert_eq!(packet.right_eye_open, open(packet.features.eye_right));
    assert_eq!(packet.left_eye_open, open(packet.features.eye_left));
}

/// The packets say what the reports say, face by face.
fn assert_tell(packets: &[Packet], reports: &[FrameReport]) {
    let faces: Vec<_> = reports
        .iter()
        .flat_map(|report| report.faces.iter().map(move |face| (report, &face.face)))
        .collect();
    assert_eq!(packets.len(), faces.len());
    for (packet, (report, face)) in std::iter::zip(packets, faces) {
        assert_tells(packet, report, face);
    }
}

#[test]
fn a_receiver_reads_what_was_reported() {
    common::init();
    let receiver = Receiver::start();
    let sink = gst::ElementFactory::make("trackudpsink")
        .property("port", receiver.port)
        .build()
        .expect("the element");
    let mut harness = Harness::with_element(&sink, Some("sink"), None);
    harness.play();
    harness.set_src_caps_str("video/x-raw,format=RGB,width=1280,height=720");
    let mut bare = fitted_face(7, 500.0);
    bare.face.gaze = None;
    bare.face.features = None;
    let mut failed = fitted_face(3, 100.0);
    let fit = failed.face.fit.as_mut().expect("a fit");
    fit.success = false;
    fit.points = Vec::new();
    let reports = [
        report(vec![fitted_face(3, 100.0), bare]),
        report(vec![]),
        report(vec![failed]),
    ];
    let mut read_back = Vec::new();
    for report in &reports {
        let buffer = with_report(gst::Buffer::new(), report);
        read_back.push(FaceTrackMeta::from_buffer(&buffer).expect("a report"));
        harness.push(buffer).expect("the sink takes it");
    }
    let packets = receiver.finish();
    assert_tell(&packets, &read_back);
    let ids: Vec<_> = packets.iter().map(|packet| packet.id).collect();
    assert_eq!(ids, [0, 1, 0]);
    assert_eq!(packets[0].time, packets[1].time);
    assert!(packets[2].time > packets[0].time);
}

/// A face as OpenSeeFace found it: what `facetracker.py` packs.
#[derive(Deserialize)]
struct Original {
    landmarks: Vec<[f32; 2]>,
    conf: Vec<f32>,
    success: bool,
    quaternion: [f32; 4],
    euler: [f32; 3],
    translation: [f32; 3],
    pnp_error: f32,
    pts_3d: Vec<[f32; 3]>,
    eye_blink: [f32; 2],
    features: BTreeMap<String, f32>,
}

/// Each number of a packet next to the number that the original sends.
fn pairs(packet: &Packet, original: &Original) -> [(&'static str, Vec<(f32, f32)>); 9] {
    let features = packet.features.named();
    let openness = [packet.right_eye_open, packet.left_eye_open];
    let points_3d = original.pts_3d.iter().map(|[x, y, z]| [*x, -y, -z]);
    [
        (
            "points",
            zip(
                packet.points.as_flattened(),
                original.landmarks.as_flattened(),
            ),
        ),
        ("scores", zip(&packet.confidence, &original.conf)),
        (
            "quaternion",
            zip(&packet.raw_quaternion, &original.quaternion),
        ),
        ("angles", zip(&packet.raw_euler, &original.euler)),
        (
            "translation",
            zip(&packet.translation, &original.translation),
        ),
        ("error", vec![(packet.fit_3d_error, original.pnp_error)]),
        (
            "3-D points",
            zip(
                packet.points_3d.as_flattened(),
                points_3d.collect::<Vec<_>>().as_flattened(),
            ),
        ),
        ("open eyes", zip(&openness, &original.eye_blink)),
        (
            "features",
            features
                .map(|(name, value)| (value, original.features[name]))
                .to_vec(),
        ),
    ]
}

fn zip(ours: &[f32], theirs: &[f32]) -> Vec<(f32, f32)> {
    assert_eq!(ours.len(), theirs.len());
    std::iter::zip(ours.iter().copied(), theirs.iter().copied()).collect()
}

/// Mean differences of the numbers of each kind from the original's.
fn distances(packets: &[Packet], originals: &[Original]) -> BTreeMap<&'static str, f32> {
    let mut all: BTreeMap<_, Vec<f32>> = BTreeMap::new();
    for (packet, original) in std::iter::zip(packets, originals) {
        assert_eq!(packet.got_3d_points != 0, original.success);
        for (kind, pairs) in pairs(packet, original) {
            let distances = pairs
                .into_iter()
                .map(|(ours, theirs)| (ours - theirs).abs());
            all.entry(kind).or_default().extend(distances);
        }
    }
    all.into_iter()
        .map(|(kind, distances)| (kind, recording::mean(&distances)))
        .collect()
}

/// The clip is played at its own speed, as in use.
#[test]
fn a_receiver_reads_what_the_engine_measured() {
    let Some(folder) = common::player::folder(EngineKind::OpenSeeFace) else {
        return;
    };
    let receiver = Receiver::start();
    let pipeline = gst::parse::launch(&format!(
        "filesrc location={}/media/pyfeat_single_face.mp4 ! decodebin ! facetrack engine=openseeface ! trackudpsink name=out port={}",
        folder.display(),
        receiver.port
    ))
    .expect("a pipeline");
    let reports = Arc::new(Mutex::new(Vec::new()));
    let sink = pipeline.downcast_ref::<gst::Bin>().expect("a bin");
    let pad = sink.by_name("out").and_then(|out| out.static_pad("sink"));
    let seen = Arc::clone(&reports);
    pad.expect("a pad")
        .add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            let report = info.buffer().and_then(|it| FaceTrackMeta::from_buffer(it));
            seen.lock().expect("whole").extend(report);
            gst::PadProbeReturn::Ok
        });
    common::play_to_end(&pipeline);
    let packets = receiver.finish();
    let reports = reports.lock().expect("whole");
    assert_eq!((reports.len(), packets.len()), (72, 72));
    assert_tell(&packets, &reports);
    assert!(packets.iter().all(|packet| packet.id == 0));
    assert!(packets.is_sorted_by(|a, b| a.time < b.time));

    // Far more than the engine may be off, and far less than if numbers were swapped or turned
    // round.
    let recorded = recording::read(&folder, "osf_m0", "pyfeat_single_face");
    let originals: Vec<Original> = recorded
        .frames
        .into_iter()
        .flat_map(|frame| frame.faces)
        .collect();
    for (kind, distance) in distances(&packets, &originals) {
        eprintln!("{kind}: {distance:.5}");
        let limit = match kind {
            "points" => 2.0,
            "angles" | "error" => 2.0,
            _ => 0.05,
        };
        assert!(distance <= limit, "{kind}: {distance}");
    }
}
