// SPDX-License-Identifier: MPL-2.0
//! One face is followed while another one passes by. The clip of one face is at the left of a wider
//! picture. A larger portrait moves in from the right and out again.

use std::path::Path;

use crate::common::frames::{self, CLIPS, Decoded, PICTURES};
use crate::common::player::{self, folder};
use facetrack::engine::EngineKind;
use facetrack::report::FrameReport;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;

/// Size of the picture, px.
const WIDTH: usize = 1280;
const HEIGHT: usize = 480;

/// Side of the portrait, px. Its face is 1.3 times as large as the one in the clip.
const PORTRAIT: usize = 450;

/// Position of the portrait when it is nearest to the face, px.
const NEAREST: usize = 400;

/// Frames at which the portrait comes and goes; 1.8 s of the clip.
const COMES: usize = 8;
const GOES: usize = 62;

/// The picture of the astronaut, cut to the head and enlarged.
fn portrait(folder: &Path) -> Decoded {
    let cut = format!(
        "{PICTURES} ! videocrop left=130 right=202 top=5 bottom=327 ! videoscale \
         ! video/x-raw,width={PORTRAIT},height={PORTRAIT}"
    );
    let mut pictures = frames::decode(&folder.join("media/skimage_astronaut.png"), &cut);
    pictures.next().expect("a picture")
}

/// Draws `part` into a picture, with its left edge at `left`.
fn paste(picture: &mut [u8], part: &Decoded, left: usize) {
    let width = part.width.min(WIDTH.saturating_sub(left));
    let rows = std::iter::zip(
        picture.chunks_mut(3 * WIDTH),
        part.rgb.chunks(3 * part.width),
    );
    for (row, part) in rows {
        row[3 * left..3 * (left + width)].copy_from_slice(&part[..3 * width]);
    }
}

/// Left edge of the portrait in a frame of the clip, px.
fn left(number: usize) -> usize {
    let middle = (COMES + GOES) / 2;
    let way = number.clamp(COMES, GOES).abs_diff(middle);
    NEAREST + (WIDTH - NEAREST) * way / (GOES - middle)
}

/// Tracks the clip while somebody passes.
fn passing(folder: &Path, properties: &str) -> Vec<FrameReport> {
    let line = format!("facetrack {properties}");
    let mut harness = Harness::new_parse(&line);
    harness.set_src_caps_str(&format!(
        "video/x-raw,format=RGB,width={WIDTH},height={HEIGHT},framerate=30/1"
    ));
    let portrait = portrait(folder);
    let clip = frames::decode(&folder.join("media/pyfeat_single_face.mp4"), CLIPS);
    let track = |(number, frame): (usize, Decoded)| {
        let mut picture = vec![128; 3 * WIDTH * HEIGHT];
        paste(&mut picture, &frame, 0);
        paste(&mut picture, &portrait, left(number));
        let mut buffer = gst::Buffer::from_slice(picture);
        let time = gst::ClockTime::from_mseconds(number as u64 * 1000 / 30);
        buffer.get_mut().expect("the only reference").set_pts(time);
        let buffer = harness.push_and_pull(buffer).expect("it flows");
        FaceTrackMeta::from_buffer(&buffer).expect("a report")
    };
    (0..).zip(clip).map(track).collect()
}

fn ids(reports: &[FrameReport]) -> Vec<Vec<u32>> {
    let ids = |report: &FrameReport| report.faces.iter().map(|face| face.id).collect();
    reports.iter().map(ids).collect()
}

/// The face that was there first has the id 1.
#[test]
fn the_face_keeps_its_id_in_every_frame_while_another_one_passes() {
    for kind in [
        EngineKind::MediaPipe,
        EngineKind::OpenCvYunet,
        EngineKind::OpenCvYunetPyfeat,
    ] {
        let Some(folder) = folder(kind) else { continue };
        let name = kind.name();
        let all = passing(&folder, &format!("engine={name}"));
        let is_passing = |report: &&FrameReport| report.faces.len() == 2;
        let passed = all.iter().filter(is_passing).count();
        let larger = all.iter().filter(is_passing).filter(|report| {
            let side = |index: usize| report.faces[index].face.bbox.width;
            side(0).max(side(1)) > 1.2 * side(0).min(side(1))
        });
        let larger = larger.count();
        eprintln!("{name}: two faces in {passed} frames, one clearly larger in {larger}");
        assert!(passed > 20 && larger > 20, "{name}: nobody passes");
        for select in ["largest", "center", "first", "id"] {
            let reports = passing(&folder, &format!("engine={name} select={select}"));
            assert_eq!(ids(&reports), vec![vec![1]; all.len()], "{name} {select}");
        }
    }
}

/// Number of changes of the selected id from frame to frame.
fn switches(reports: &[FrameReport]) -> usize {
    let ids = ids(reports);
    ids.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Two faces of similar size, both in all frames.
#[test]
fn one_of_two_faces_is_selected_in_every_frame() {
    for kind in [EngineKind::MediaPipe, EngineKind::OpenCvYunet] {
        let Some(folder) = folder(kind) else { continue };
        let clip = folder.join("media/synth_two_faces.mp4");
        for select in ["largest", "center", "first"] {
            let properties = format!("engine={} select={select}", kind.name());
            let reports = player::track(&clip, &properties);
            let faces: Vec<_> = reports.iter().map(|report| report.faces.len()).collect();
            let switches = switches(&reports);
            eprintln!(
                "{properties}: {switches} switches in {} frames",
                faces.len()
            );
            assert_eq!((faces, switches), (vec![1; 200], 0), "{properties}");
        }
    }
}
