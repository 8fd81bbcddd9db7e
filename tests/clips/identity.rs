// SPDX-License-Identifier: MPL-2.0
//! Faces keep their ids in pictures of all sizes and at all frame rates. Portraits move before a
//! grey wall.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::frames::{self, Decoded, PICTURES};
use crate::common::player::folder;
use facetrack::engine::EngineKind;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;

/// Width of the picture in widths of a portrait.
const ROOM: usize = 4;

/// A head in a picture, cut out and scaled to this side.
fn portrait(folder: &Path, name: &str, crop: &str, side: usize) -> Decoded {
    let line = format!(
        "{PICTURES} ! videocrop {crop} ! videoscale ! video/x-raw,width={side},height={side},pixel-aspect-ratio=1/1"
    );
    let mut pictures = frames::decode(&folder.join("media").join(name), &line);
    pictures.next().expect("a picture")
}

/// The ids of all faces while `portraits` move, the last one before the others. `place` is the left
/// edge of a portrait at a time in s, from 0 to 1 across the picture.
fn ids(
    portraits: &[Decoded],
    (fps, seconds): (usize, usize),
    place: fn(usize, f64) -> f64,
    properties: &str,
) -> BTreeSet<u32> {
    let side = portraits[0].width;
    let (width, height) = (ROOM * side, 3 * side / 2);
    let mut harness = Harness::new_parse(&format!("facetrack {properties}"));
    harness.set_src_caps_str(&format!(
        "video/x-raw,format=RGB,width={width},height={height},framerate={fps}/1"
    ));
    let mut ids = BTreeSet::new();
    for frame in 0..fps * seconds {
        let time = frame as f64 / fps as f64;
        let mut picture = vec![128; 3 * width * height];
        for (number, portrait) in portraits.iter().enumerate() {
            let left = (place(number, time) * (width - side) as f64) as usize;
            let rows = picture.chunks_mut(3 * width).skip(side / 4);
            for (row, part) in std::iter::zip(rows, portrait.rgb.chunks(3 * side)) {
                row[3 * left..3 * (left + side)].copy_from_slice(part);
            }
        }
        let mut buffer = gst::Buffer::from_slice(picture);
        let time = gst::ClockTime::from_mseconds((time * 1e3) as u64);
        buffer.get_mut().expect("the only reference").set_pts(time);
        let buffer = harness.push_and_pull(buffer).expect("it flows");
        let report = FaceTrackMeta::from_buffer(&buffer).expect("a report");
        ids.extend(report.faces.iter().map(|face| face.id));
    }
    ids
}

const ASTRONAUT: [&str; 2] = [
    "skimage_astronaut.png",
    "left=130 right=202 top=5 bottom=327",
];
const YUNET: &str = "engine=opencv-yunet";

const BUSINESSWOMAN: [&str; 2] = [
    "mp_business-person.png",
    "left=270 right=228 top=10 bottom=888",
];

#[test]
fn one_face_that_passes_has_one_id() {
    let Some(folder) = folder(EngineKind::OpenCvYunet) else {
        return;
    };
    let passes = |_: usize, time: f64| time;
    for (side, fps) in [(80, 12), (160, 25), (160, 120), (960, 12)] {
        let portraits = [portrait(&folder, ASTRONAUT[0], ASTRONAUT[1], side)];
        let found = ids(&portraits, (fps, 1), passes, YUNET);
        assert_eq!(found, BTreeSet::from([1]), "{side} px, {fps} Hz");
    }
    let portraits = [portrait(&folder, ASTRONAUT[0], ASTRONAUT[1], 960)];
    let older = format!("{YUNET} tracker=centroid max-distance=80");
    let found = ids(&portraits, (12, 1), passes, &older);
    assert!(found.len() > 3, "the case shows nothing: {found:?}");
}

#[test]
fn a_face_that_openseeface_loses_is_found_in_the_same_frame() {
    let Some(folder) = folder(EngineKind::OpenSeeFace) else {
        return;
    };
    let portraits = [portrait(&folder, ASTRONAUT[0], ASTRONAUT[1], 160)];
    // Back and forth, at up to 9 times the size of the face per second.
    let pans = |_: usize, time: f64| 0.5 - (time * std::f64::consts::PI).cos() / 2.0;
    for properties in ["", "max-faces=2"] {
        let properties = format!("engine=openseeface {properties}");
        let found = ids(&portraits, (12, 2), pans, &properties);
        assert_eq!(found, BTreeSet::from([1]), "{properties}");
    }
}

#[test]
fn two_people_who_pass_each_other_have_two_ids() {
    let Some(folder) = folder(EngineKind::OpenCvYunet) else {
        return;
    };
    // In 4 s; the one behind is hidden for about a second.
    let cross = |number: usize, time: f64| (number as f64 - time / 4.0).abs();
    for (side, fps) in [(80, 25), (160, 12), (160, 60)] {
        let portraits =
            [ASTRONAUT, BUSINESSWOMAN].map(|[name, crop]| portrait(&folder, name, crop, side));
        let found = ids(&portraits, (fps, 4), cross, YUNET);
        assert_eq!(found, BTreeSet::from([1, 2]), "{side} px, {fps} Hz");
    }
}
