// SPDX-License-Identifier: MPL-2.0
//! Packets for avatars.

use std::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};
use facetrack::blendshape::Blendshapes;
use facetrack::geometry::Point;
use facetrack::observation::{
    Features, Gaze, HeadPose, Landmark, LandmarkScheme, Landmarks, ModelFit, Observation, Pupil,
};
use facetrack::packet::ifacialmocap::Version;
use facetrack::packet::openseeface::{SIZE, encode};
use facetrack::packet::{Avatar, CHANNELS, Encoder, Frame, Protocol, Slots, View, vmc};

use crate::shared::pick;

/// A face with any numbers, and any number of them.
fn face(input: &mut Unstructured) -> Result<Observation> {
    let scheme = *input.choose(LandmarkScheme::ALL)?;
    let points = match input.ratio(7, 8)? {
        true => scheme.count(),
        false => pick(input, 0..=80),
    };
    let point = |input: &mut Unstructured| -> Result<Landmark> {
        let [x, y, z] = input.arbitrary()?;
        Ok(Landmark { x, y, z })
    };
    let points: Result<Vec<_>> = (0..points).map(|_| point(input)).collect();
    Ok(Observation {
        landmarks: Some(Landmarks {
            confidences: input.arbitrary()?,
            ..Landmarks::new(scheme, points?)
        }),
        gaze: input.arbitrary::<Option<[f32; 6]>>()?.map(gaze),
        features: input.arbitrary::<Option<[f32; 14]>>()?.map(Features),
        fit: Some(ModelFit {
            success: input.arbitrary()?,
            error: input.arbitrary()?,
            quaternion: input.arbitrary()?,
            euler: input.arbitrary()?,
            rotation: input.arbitrary()?,
            translation: input.arbitrary()?,
            points: input.arbitrary()?,
            projected: Vec::new(),
        }),
        ..Observation::default()
    })
}

fn gaze([x, y, right, u, v, left]: [f32; 6]) -> Gaze {
    let pupil = |x, y, confidence| Pupil {
        position: Point::new(x, y),
        confidence,
    };
    Gaze {
        right: pupil(x, y, right),
        left: pupil(u, v, left),
    }
}

pub fn packet(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(face) = face(&mut input) else { return };
    let Ok((time_of_day, id, width, height)) = input.arbitrary() else {
        return;
    };
    let frame = Frame {
        time_of_day,
        running_time: Duration::ZERO,
        rate: (1, 1),
        width,
        height,
    };
    if let Some(packet) = encode(&face, id, &frame) {
        assert_read_back(&packet, &face, id, &frame);
    }
    if let Ok(avatar) = avatar(&mut input) {
        assert_sent(&face, &avatar, &mut input);
    }
    let frames = Vec::<Vec<u32>>::arbitrary(&mut input);
    assert_numbers_differ(frames.unwrap_or_default());
}

/// The avatar of a face with any channels and any pose.
fn avatar(input: &mut Unstructured) -> Result<Avatar> {
    let count = pick(input, 0..=60);
    let names: Result<Vec<_>> = (0..count)
        .map(|_| input.choose(&CHANNELS).map(|name| (*name).to_owned()))
        .collect();
    let values: Result<Vec<f32>> = (0..count).map(|_| input.arbitrary()).collect();
    let face = Observation {
        blendshapes: Some(Blendshapes::new(names?.into(), values?)),
        pose: input
            .arbitrary::<Option<[[f32; 4]; 4]>>()?
            .map(|matrix| HeadPose { matrix }),
        ..Observation::default()
    };
    let view = View {
        mirror: input.arbitrary()?,
        metres: input.arbitrary()?,
    };
    Ok(Avatar::new(&face, &view))
}

/// Asserts that packets of every protocol have the form that receivers expect.
fn assert_sent(face: &Observation, avatar: &Avatar, input: &mut Unstructured) {
    let rate = input.arbitrary().unwrap_or((25, 1));
    let frame = Frame {
        time_of_day: 0.0,
        running_time: Duration::from_nanos(input.arbitrary().unwrap_or_default()),
        rate,
        width: 1,
        height: 1,
    };
    let slot = pick(input, 0..=100);
    for protocol in [Protocol::Vmc, Protocol::IFacialMocap, Protocol::LiveLink] {
        let encoder = Encoder {
            protocol,
            ..Encoder::default()
        };
        let packets = encoder.encode(face, Some(avatar), slot, &frame, Version::One);
        for packet in packets.expect("every avatar has packets") {
            assert_form(protocol, &packet);
        }
    }
}

fn assert_form(protocol: Protocol, packet: &[u8]) {
    match protocol {
        Protocol::Vmc => assert!(packet.len() <= vmc::MAX_DATAGRAM),
        Protocol::IFacialMocap => {
            let text = std::str::from_utf8(packet).expect("text");
            assert_eq!(text.matches('=').count(), 1);
            assert!(text.ends_with('|') && !text.contains("NaN") && !text.contains("inf"));
        }
        _ => {
            let values = packet[packet.len() - 61 * 4..].chunks_exact(4);
            let floats = values.map(|bytes| f32::from_be_bytes(bytes.try_into().expect("four")));
            assert!(floats.into_iter().all(f32::is_finite));
        }
    }
}

/// Asserts that receivers read the numbers of the face where they expect them.
fn assert_read_back(packet: &[u8], face: &Observation, id: i32, frame: &Frame) {
    assert_eq!(packet.len(), SIZE);
    let float = |at: usize| [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]];
    assert_eq!(packet[..8], frame.time_of_day.to_le_bytes());
    assert_eq!(packet[8..12], id.to_le_bytes());
    let points = face.landmarks.iter().flat_map(|own| &own.points);
    for (index, point) in points.enumerate() {
        assert_eq!(float(345 + 8 * index), point.x.to_le_bytes());
        assert_eq!(float(345 + 8 * index + 4), point.y.to_le_bytes());
    }
    let fit = face.fit.as_ref().expect("a packet has a fit");
    for (index, [x, ..]) in fit.points.iter().take(70).enumerate() {
        assert_eq!(float(889 + 12 * index), x.to_le_bytes());
    }
}

/// Asserts that the faces of a frame get numbers of their own, as low as possible.
fn assert_numbers_differ(frames: Vec<Vec<u32>>) {
    let mut slots = Slots::default();
    let mut most = 0;
    for mut ids in frames {
        ids.sort_unstable();
        ids.dedup();
        most = most.max(ids.len());
        let mut numbers = slots.assign(&ids);
        assert_eq!(numbers.len(), ids.len());
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(numbers.iter().all(|number| *number < most));
    }
}
