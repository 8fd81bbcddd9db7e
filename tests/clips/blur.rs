// SPDX-License-Identifier: MPL-2.0
//! Faces in clips after `facetrackblur`, in two passes: detectors do not find them, and a recogniser
//! does not match them with the clear faces.

use std::iter::zip;
use std::path::Path;

use crate::common;
use crate::common::engine::{engine, look_at_rgb};
use crate::common::frames::{self, CLIPS, Decoded, PICTURES};
use crate::common::player::folder;
use facetrack::engine::insightface::Settings;
use facetrack::engine::{Engine, EngineConfig, EngineKind};
use facetrack::observation::Observation;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;

/// Clips with one face or two in most frames, a picture of a group, and modes.
const CASES: [(&str, &str); 6] = [
    ("pyfeat_single_face.mp4", "pixelate"),
    ("pyfeat_single_face.mp4", "blur"),
    ("pyfeat_WolfgangLanger_Pexels.mp4", "pixelate"),
    ("synth_gap.mp4", "pixelate"),
    ("synth_two_faces.mp4", "pixelate"),
    ("insightface_t1.jpg", "pixelate"),
];

/// Maximum share of frames with a face that a detector finds.
const MAX_FOUND: f64 = 0.01;

/// Minimum cosine of two embeddings of one person in InsightFace's demo
/// `web-demos/src_recognition/main.py`.
const SAME_PERSON: f32 = 0.28;

/// Every so many clear frames give embeddings to compare with.
const CLEAR_STEP: usize = 24;

/// Every so many covered frames are searched. The covers of the frames between are alike.
const COVERED_STEP: usize = 6;

fn play(launch: &str) {
    let pipeline = gst::parse::launch(launch).unwrap_or_else(|error| panic!("{launch}: {error}"));
    common::play_to_end(&pipeline);
}

/// The frames of a clip after the two passes of the documentation.
fn blurred(clip: &Path, blur: &str) -> Vec<Decoded> {
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("clip.json");
    let (clip_path, record) = (clip.display(), record.display());
    play(&format!(
        "filesrc location={clip_path} ! decodebin ! videoconvert ! facetrack engine=opencv-yunet \
         detect-max-width=0 detection-confidence=0.3 ! trackjsonsink location={record}"
    ));
    let elements = format!(
        "{CLIPS} ! videoconvert ! trackjsonload location={record} look-ahead=1 ! facetrackblur {blur}"
    );
    frames::decode(clip, &elements).collect()
}

fn find(engine: &mut Engine, frame: &Decoded) -> Vec<Observation> {
    look_at_rgb(engine, (frame.width, frame.height), &frame.rgb, 0)
}

fn cosine(a: &Observation, b: &Observation) -> f32 {
    let embeddings = a.embedding.iter().zip(&b.embedding);
    let products = embeddings.flat_map(|(a, b)| zip(a.iter(), b.iter()));
    products.map(|(a, b)| a * b).sum()
}

/// Two detectors. The second one also recognises.
fn attackers() -> Option<[Engine; 2]> {
    let recogniser = EngineConfig {
        insightface: Settings {
            embedding: true,
            ..Settings::default()
        },
        ..EngineConfig::default()
    };
    Some([
        engine(EngineKind::OpenCvYunet, &EngineConfig::default())?,
        engine(EngineKind::InsightFace, &recogniser)?,
    ])
}

#[test]
fn covered_faces_are_neither_found_nor_recognised() {
    let Some(folder) = folder(EngineKind::OpenCvYunet) else {
        return;
    };
    let Some([mut yunet, mut insightface]) = attackers() else {
        return;
    };
    for (name, mode) in CASES {
        let clip = folder.join("media").join(name);
        let clear = frames::decode(&clip, CLIPS).step_by(CLEAR_STEP);
        let clear: Vec<_> = clear
            .flat_map(|frame| find(&mut insightface, &frame))
            .collect();
        assert!(!clear.is_empty(), "{name}");
        let covered = blurred(&clip, &format!("mode={mode}"));
        let mut found = [0; 2];
        let mut closest = f32::MIN;
        for frame in covered.iter().step_by(COVERED_STEP) {
            let faces = find(&mut insightface, frame);
            found[0] += usize::from(!find(&mut yunet, frame).is_empty());
            found[1] += usize::from(!faces.is_empty());
            let cosines = faces
                .iter()
                .flat_map(|face| clear.iter().map(|it| cosine(it, face)));
            closest = cosines.fold(closest, f32::max);
        }
        let case = format!("{name} {mode}: {found:?} of {}, {closest}", covered.len());
        let most = (covered.len() / COVERED_STEP) as f64 * MAX_FOUND;
        assert!(found.iter().all(|count| *count as f64 <= most), "{case}");
        assert!(closest < SAME_PERSON, "{case}");
    }
}

/// Pictures per second, and the pictures without the face.
const RATE: usize = 15;
const LOST: std::ops::Range<usize> = 12..20;

/// Displacement of the face per picture, px.
const STEP: usize = 20;

/// Left edge of the face in a picture.
fn left(picture: usize) -> usize {
    40 + picture * STEP
}

/// A frame with the face before a grey wall, or only the wall where the face cannot be found.
fn picture_of(face: &Decoded, picture: usize) -> (Vec<u8>, [usize; 2]) {
    let side = face.width;
    let [width, height] = [left(LOST.end + 4) + side, 2 * side];
    let mut pixels = vec![128; 3 * width * height];
    let height_shown = if LOST.contains(&picture) { 0 } else { side };
    let rows = pixels.chunks_mut(3 * width).skip(side / 2);
    for (y, row) in rows.take(height_shown).enumerate() {
        let part = &face.rgb[3 * side * y..][..3 * side];
        row[3 * left(picture)..][..3 * side].copy_from_slice(part);
    }
    (pixels, [width, height])
}

/// Returns the smallest covered part of the lost face, and the number of frames in which it is found
/// although it should be lost. Each picture is in `repeats` frames.
fn cover(face: &Decoded, repeats: usize) -> (f64, usize) {
    let mut harness = Harness::new_parse("facetrack engine=opencv-yunet ! facetrackblur mode=fill");
    let (_, [width, height]) = picture_of(face, 0);
    let fps = RATE * repeats;
    harness.set_src_caps_str(&format!(
        "video/x-raw,format=RGB,width={width},height={height},framerate={fps}/1"
    ));
    let (mut least, mut found) = (1.0_f64, 0);
    for frame in 0..LOST.end * repeats {
        let picture = frame / repeats;
        let (pixels, _) = picture_of(face, picture);
        let mut buffer = gst::Buffer::from_slice(pixels);
        let pts = gst::ClockTime::from_nseconds((frame * 1_000_000_000 / fps) as u64);
        buffer.get_mut().expect("the only reference").set_pts(pts);
        let buffer = harness.push_and_pull(buffer).expect("it flows");
        if LOST.contains(&picture) {
            let report = FaceTrackMeta::from_buffer(&buffer).expect("a report");
            found += usize::from(!report.faces.is_empty());
            let map = buffer.map_readable().expect("pixels");
            least = least.min(black(&map, width, (left(picture), face.width)));
        }
    }
    (least, found)
}

/// Black part of the middle of a face, which is half as wide and high.
fn black(pixels: &[u8], width: usize, (left, side): (usize, usize)) -> f64 {
    let rows = pixels.chunks(3 * width).skip(side * 3 / 4).take(side / 2);
    let middle = rows.flat_map(|row| row[3 * (left + side / 4)..][..3 * (side / 2)].chunks(3));
    let count = middle.filter(|pixel| **pixel == [0; 3]).count();
    count as f64 / (side / 2 * (side / 2)) as f64
}

#[test]
fn a_face_that_is_lost_stays_covered_if_pictures_are_repeated() {
    let Some(folder) = folder(EngineKind::OpenCvYunet) else {
        return;
    };
    let crop = "videocrop left=130 right=202 top=5 bottom=327 ! videoscale \
                ! video/x-raw,width=160,height=160,pixel-aspect-ratio=1/1";
    let path = folder.join("media/skimage_astronaut.png");
    let face = frames::decode(&path, &format!("{PICTURES} ! {crop}")).next();
    let face = face.expect("a picture");
    for repeats in [1, 2, 3, 5] {
        let (least, found) = cover(&face, repeats);
        assert_eq!(found, 0, "the face is not lost");
        assert!(least >= 0.98, "{repeats} times: {least}");
    }
}
