// SPDX-License-Identifier: MPL-2.0
//! OpenSeeFace's packets.

use arbitrary::{Arbitrary, Result, Unstructured};
use facetrack::geometry::Point;
use facetrack::observation::{
    Features, Gaze, Landmark, LandmarkScheme, Landmarks, ModelFit, Observation, Pupil,
};
use facetrack::packet::{Header, SIZE, Slots, encode};

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
    let Ok((time, id, width, height)) = input.arbitrary() else {
        return;
    };
    let header = Header {
        time,
        id,
        width,
        height,
    };
    if let Some(packet) = encode(&face, &header) {
        assert_read_back(&packet, &face, &header);
    }
    let frames = Vec::<Vec<u32>>::arbitrary(&mut input);
    assert_numbers_differ(frames.unwrap_or_default());
}

/// Asserts that receivers read the numbers of the face where they expect them.
fn assert_read_back(packet: &[u8], face: &Observation, header: &Header) {
    assert_eq!(packet.len(), SIZE);
    let float = |at: usize| [packet[at], packet[at + 1], packet[at + 2], packet[at + 3]];
    assert_eq!(packet[..8], header.time.to_le_bytes());
    assert_eq!(packet[8..12], header.id.to_le_bytes());
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
