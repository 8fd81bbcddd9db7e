// SPDX-License-Identifier: MPL-2.0
//! Rest values of a real face. The clip starts with a face at rest, which smiles after 0.6 s.

use crate::common::player::{self, folder};
use facetrack::blendshape::Blendshapes;
use facetrack::engine::EngineKind;
use facetrack::report::FrameReport;

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
        let properties = format!("engine={} neutral-time=0.3", kind.name());
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
