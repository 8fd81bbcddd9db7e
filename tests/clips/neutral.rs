// SPDX-License-Identifier: MPL-2.0
//! Rest values of a real face. The clip starts with a face at rest, which smiles after 0.6 s.

use std::path::Path;

use crate::common::frames::{self, CLIPS, Decoded};
use crate::common::player::{self, folder};
use facetrack::blendshape::Blendshapes;
use facetrack::engine::EngineKind;
use facetrack::report::FrameReport;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;

/// Number of frames at rest.
const REST: usize = 17;

/// First frame that is corrected: 0.3 s after the first one.
const FIRST_CORRECTED: usize = 9;

/// Maximum mean of the channels of a face at rest.
const MAX_AT_REST: f32 = 0.02;

fn blendshapes(report: &FrameReport) -> &Blendshapes {
    let blendshapes = &report.faces[0].face.blendshapes;
    blendshapes.as_ref().expect("measured")
}

/// Values of the channels of each frame without `_neutral`, before and after the correction.
fn values(reports: &[FrameReport]) -> [Vec<&[f32]>; 2] {
    let measured = reports.iter().map(blendshapes);
    let raw = measured.clone().map(|it| it.raw().unwrap_or(it.values()));
    let corrected = measured.map(Blendshapes::values);
    [
        raw.map(|it| &it[1..]).collect(),
        corrected.map(|it| &it[1..]).collect(),
    ]
}

fn mean(frames: &[&[f32]]) -> f32 {
    let values = frames.iter().flat_map(|values| values.iter());
    values.sum::<f32>() / (frames.len() * frames[0].len()) as f32
}

/// Maximum of a channel.
fn max(frames: &[&[f32]], channel: usize) -> f32 {
    frames
        .iter()
        .map(|values| values[channel])
        .fold(0.0, f32::max)
}

#[test]
fn a_face_at_rest_has_values_near_0_and_keeps_its_range() {
    for kind in [EngineKind::MediaPipe, EngineKind::OpenCvYunetPyfeat] {
        let Some(folder) = folder(kind) else { continue };
        let properties = format!("engine={} neutral-time=0.3 neutral-keep=false", kind.name());
        // The second face of the other clip is the first one again, with another id.
        for (clip, starts) in [("pyfeat_single_face", &[0][..]), ("synth_gap", &[0, 102])] {
            let reports = player::track(&folder.join(format!("media/{clip}.mp4")), &properties);
            for start in starts {
                let reports = &reports[*start..*start + 72];
                let is_corrected = |it: &FrameReport| blendshapes(it).raw().is_some();
                let first = reports.iter().position(is_corrected);
                assert_eq!(first, Some(FIRST_CORRECTED), "{clip} {start}");
                let [raw, corrected] = values(reports);
                let at_rest = FIRST_CORRECTED..REST;
                let [before, after] = [&raw, &corrected].map(|it| mean(&it[at_rest.clone()]));
                eprintln!("{properties} {clip} {start}: {before:.4} before, {after:.4} after");
                assert!(
                    before > 2.0 * MAX_AT_REST,
                    "{clip}: the face is at rest without help"
                );
                assert!(after <= MAX_AT_REST, "{clip} {start}: {after}");
                // A smile is as strong as before.
                let names = blendshapes(&reports[0]).names();
                let smile = names.iter().position(|name| name == "mouthSmileLeft");
                let smile = smile.expect("a channel") - 1;
                let [before, after] = [&raw, &corrected].map(|it| max(it, smile));
                assert!(
                    before > 0.8 && (before - after).abs() < 0.02,
                    "{before} {after}"
                );
            }
        }
    }
}

/// The part of the picture with the face: left, top, right and bottom edge, px.
const FACE: [usize; 4] = [190, 20, 400, 290];

/// Frames with the whole face hidden: 1 s.
const HIDDEN: usize = 30;

/// Frames while the cover moves over the face, and again while it moves away. A cover that appears at
/// once would be a hard cut.
const MOVES: usize = 10;

/// Frame of the clip at which the face begins to come back. It smiles.
const RETURN: usize = 30;

/// The frame with the first `part` of [`MOVES`] parts of the face painted over.
fn hidden(frame: &Decoded, part: usize) -> Decoded {
    let [left, top, right, bottom] = FACE;
    let right = left + (right - left) * part / MOVES;
    let mut hidden = frame.clone();
    for row in hidden
        .rgb
        .chunks_mut(3 * frame.width)
        .take(bottom)
        .skip(top)
    {
        row[3 * left..3 * right].fill(128);
    }
    hidden
}

/// Tracks the clip. The face is hidden after the last frame and then smiles.
fn hidden_and_back(folder: &Path, properties: &str) -> Vec<FrameReport> {
    let clip = folder.join("media/pyfeat_single_face.mp4");
    let clip: Vec<_> = frames::decode(&clip, CLIPS).collect();
    let last = &clip[clip.len() - 1];
    let (going, back) = (1..=MOVES, (0..MOVES).rev());
    let going = going.map(|part| hidden(last, part));
    let away = std::iter::repeat_n(hidden(last, MOVES), HIDDEN);
    let back = clip[RETURN..]
        .iter()
        .zip(back)
        .map(|(frame, part)| hidden(frame, part));
    let covered: Vec<_> = going.chain(away).chain(back).collect();
    let all = clip.iter().chain(&covered).chain(&clip[RETURN + MOVES..]);
    let mut harness = Harness::new_parse(&format!("facetrack {properties}"));
    let (width, height) = (last.width, last.height);
    harness.set_src_caps_str(&format!(
        "video/x-raw,format=RGB,width={width},height={height},framerate=30/1"
    ));
    let track = |(number, frame): (u64, &Decoded)| {
        let mut buffer = gst::Buffer::from_slice(frame.rgb.clone());
        let time = gst::ClockTime::from_mseconds(number * 1000 / 30);
        buffer.get_mut().expect("the only reference").set_pts(time);
        let buffer = harness.push_and_pull(buffer).expect("it flows");
        FaceTrackMeta::from_buffer(&buffer).expect("a report")
    };
    (0..).zip(all).map(track).collect()
}

/// A smile after the return is as strong as it is only if it is not learned as rest.
#[test]
fn a_face_that_was_hidden_keeps_its_rest() {
    for kind in [EngineKind::MediaPipe, EngineKind::OpenCvYunetPyfeat] {
        let Some(folder) = folder(kind) else { continue };
        for (keeps, expected) in [(true, 0.8..1.0), (false, 0.0..0.3)] {
            let properties = format!("engine={} neutral-time=0.3", kind.name());
            let reports = hidden_and_back(&folder, &format!("{properties} neutral-keep={keeps}"));
            let is_away = reports.iter().position(|report| report.faces.is_empty());
            let mut back = reports.into_iter().skip(is_away.expect("it is hidden"));
            let first = back.find(|report| !report.faces.is_empty());
            let first = first.expect("it is back");
            assert!(first.faces[0].id > 1, "the case shows nothing");
            assert_eq!(blendshapes(&first).is_corrected(), keeps, "{properties}");
            let smile = back.skip(FIRST_CORRECTED).map(|report| {
                let smile = blendshapes(&report).get("mouthSmileLeft");
                smile.expect("a channel")
            });
            let smile = smile.fold(0.0, f32::max);
            eprintln!("{properties}, kept: {keeps}: smile {smile:.3}");
            assert!(expected.contains(&smile), "{smile}");
        }
    }
}
