// SPDX-License-Identifier: MPL-2.0
//! Faces keep their ids in pictures of all sizes and at all frame rates. Portraits move before a
//! grey wall.

use std::collections::BTreeSet;
use std::iter::zip;
use std::ops::Range;
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

/// The columns of a row of a portrait that are shown, so that its corners cover no other face.
fn oval(row: usize, side: usize) -> Range<usize> {
    let above = (2 * row + 1).abs_diff(side);
    let half = (side * side - above * above).isqrt() / 2;
    side / 2 - half..side / 2 + half
}

/// The id of a face, its time in s and its place, as below.
type Face = (u32, f64, f64);

/// All faces while `portraits` move, the last one before the others. `place` is the left edge of a
/// portrait at a time in s, from 0 to 1 across the picture.
fn faces(
    portraits: &[Decoded],
    (fps, seconds): (usize, usize),
    place: impl Fn(usize, f64) -> f64,
    properties: &str,
) -> Vec<Face> {
    let side = portraits[0].width;
    let (width, height) = (ROOM * side, 3 * side / 2);
    let mut harness = Harness::new_parse(&format!("facetrack {properties}"));
    harness.set_src_caps_str(&format!(
        "video/x-raw,format=RGB,width={width},height={height},framerate={fps}/1"
    ));
    let mut faces = Vec::new();
    for frame in 0..fps * seconds {
        let time = frame as f64 / fps as f64;
        let mut picture = vec![128; 3 * width * height];
        for (number, portrait) in portraits.iter().enumerate() {
            let left = (place(number, time) * (width - side) as f64) as usize;
            let rows = picture.chunks_mut(3 * width).skip(side / 4);
            for (y, (row, part)) in zip(rows, portrait.rgb.chunks(3 * side)).enumerate() {
                let Range { start, end } = oval(y, side);
                row[3 * (left + start)..3 * (left + end)]
                    .copy_from_slice(&part[3 * start..3 * end]);
            }
        }
        let mut buffer = gst::Buffer::from_slice(picture);
        let pts = gst::ClockTime::from_mseconds((time * 1e3) as u64);
        buffer.get_mut().expect("the only reference").set_pts(pts);
        let buffer = harness.push_and_pull(buffer).expect("it flows");
        let report = FaceTrackMeta::from_buffer(&buffer).expect("a report");
        faces.extend(report.faces.iter().map(|face| {
            let left = f64::from(face.face.bbox.center().x) - side as f64 / 2.0;
            (face.id, time, left / (width - side) as f64)
        }));
    }
    faces
}

fn ids(faces: &[Face]) -> BTreeSet<u32> {
    faces.iter().map(|(id, ..)| *id).collect()
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
        let found = ids(&faces(&portraits, (fps, 1), passes, YUNET));
        assert_eq!(found, BTreeSet::from([1]), "{side} px, {fps} Hz");
    }
    let portraits = [portrait(&folder, ASTRONAUT[0], ASTRONAUT[1], 960)];
    let older = format!("{YUNET} tracker=centroid max-distance=80");
    let found = ids(&faces(&portraits, (12, 1), passes, &older));
    assert!(found.len() > 3, "the case shows nothing: {found:?}");
}

#[test]
fn repeated_pictures_do_not_change_ids() {
    const PICTURES: usize = 10;
    for kind in [
        EngineKind::MediaPipe,
        EngineKind::OpenCvHaar,
        EngineKind::OpenCvYunet,
        EngineKind::OpenCvYunetPyfeat,
        EngineKind::OpenSeeFace,
        EngineKind::Eos,
        EngineKind::InsightFace,
    ] {
        let Some(folder) = folder(kind) else {
            continue;
        };
        let portraits = [portrait(&folder, ASTRONAUT[0], ASTRONAUT[1], 160)];
        // Two portraits per second, by a fifth of a portrait per picture.
        let picture = |time: f64| (time * PICTURES as f64 + 0.01).floor() / PICTURES as f64;
        let passes = |_: usize, time: f64| picture(time) * 2.0 / (ROOM - 1) as f64;
        let properties = format!("engine={}", kind.name());
        for repeats in [1, 2, 5] {
            let rate = (PICTURES * repeats, 1);
            let found = ids(&faces(&portraits, rate, passes, &properties));
            assert_eq!(found, BTreeSet::from([1]), "{kind:?}, {repeats} times");
        }
    }
    let Some(folder) = folder(EngineKind::OpenCvYunet) else {
        return;
    };
    // Five pictures per second, by more than half a portrait per picture: only the velocity predicts it.
    let portraits = [portrait(&folder, ASTRONAUT[0], ASTRONAUT[1], 160)];
    let runs = |_: usize, time: f64| {
        let picture = (time * 5.0 + 0.01).floor() / 5.0;
        picture * picture
    };
    for fps in [5, 10, 25] {
        let found = ids(&faces(&portraits, (fps, 1), runs, YUNET));
        assert_eq!(found, BTreeSet::from([1]), "{fps} Hz");
    }
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
        let found = ids(&faces(&portraits, (12, 2), pans, &properties));
        assert_eq!(found, BTreeSet::from([1]), "{properties}");
    }
}

/// The places of two people who change sides.
fn crossing(seconds: usize) -> impl Fn(usize, f64) -> f64 {
    move |number, time| (number as f64 - time / seconds as f64).abs()
}

/// The ids of faces at a person who is apart from the other one.
fn ids_of(number: usize, faces: &[Face], place: impl Fn(usize, f64) -> f64) -> BTreeSet<u32> {
    let is_there = |(_, time, at): &&Face| {
        let [own, other] = [number, 1 - number].map(|it| place(it, *time));
        (own - other).abs() > 0.5 && (at - own).abs() < 0.25
    };
    faces.iter().filter(is_there).map(|(id, ..)| *id).collect()
}

/// While one of them is being covered, the landmarks of `mediapipe` slip onto the other one.
#[test]
fn two_people_who_pass_each_other_keep_their_ids() {
    let Some(folder) = folder(EngineKind::MediaPipe) else {
        return;
    };
    let people = [BUSINESSWOMAN, ASTRONAUT];
    for (side, fps, seconds) in [(120, 25, 2), (120, 60, 4)] {
        let portraits = people.map(|[name, crop]| portrait(&folder, name, crop, side));
        let cross = crossing(seconds);
        let found = faces(&portraits, (fps, seconds), &cross, "engine=mediapipe");
        let case = format!("{side} px, {fps} Hz, {seconds} s");
        assert_eq!(ids(&found), BTreeSet::from([1, 2]), "{case}");
        let [one, other] = [0, 1].map(|number| ids_of(number, &found, &cross));
        assert_eq!(
            (one.len(), other.len()),
            (1, 1),
            "{case}: {one:?} {other:?}"
        );
        assert_ne!(one, other, "{case}");
    }
}

#[test]
fn two_people_who_pass_each_other_have_two_ids() {
    let Some(folder) = folder(EngineKind::OpenCvYunet) else {
        return;
    };
    // The one behind is hidden for about a second.
    let cross = crossing(4);
    for (side, fps) in [(80, 25), (160, 12), (160, 60)] {
        let portraits =
            [ASTRONAUT, BUSINESSWOMAN].map(|[name, crop]| portrait(&folder, name, crop, side));
        let found = ids(&faces(&portraits, (fps, 4), &cross, YUNET));
        assert_eq!(found, BTreeSet::from([1, 2]), "{side} px, {fps} Hz");
    }
}
