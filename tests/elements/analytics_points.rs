// SPDX-License-Identifier: MPL-2.0
//! The points of faces in GStreamer's own analytics metadata, read by its Python bindings. Needs
//! GStreamer 1.30.

use std::path::Path;

use facetrack::engine::EngineKind;
use facetrack::report::TrackedFace;

use crate::common::player::{Player, folder};
use crate::common::python;

/// Frames that are compared.
const FRAMES: usize = 10;

#[test]
fn python_reads_the_points() {
    let Some(folder) = folder(EngineKind::OpenSeeFace) else {
        return;
    };
    if !python::has_bindings("GstAnalytics", "gir1.2-gst-plugins-bad-1.0") {
        return;
    }
    let clip = folder.join("media/pyfeat_single_face.mp4");
    if !clip.is_file() {
        eprintln!("SKIPPED: {} is not there", clip.display());
        return;
    }
    let properties = "engine=openseeface";
    let reports = Player::new(&clip, properties).reports(FRAMES);
    let faces = reports.iter().flat_map(|report| &report.faces);
    let expected: Vec<_> = faces.map(line).collect();
    assert!(expected.len() >= FRAMES, "{}", expected.len());
    assert_eq!(read(&clip, properties), expected);
}

/// A face as the script prints it.
fn line(tracked: &TrackedFace) -> String {
    let landmarks = tracked.face.landmarks.as_ref().expect("landmarks");
    let points = std::iter::zip(&landmarks.points, &landmarks.confidences);
    let points = points.map(|(p, confidence)| {
        let [x, y] = [p.x, p.y].map(|it| it.floor() as i32);
        format!(" {x},{y},{confidence:.4}")
    });
    format!("openseeface face-66-kp{}", points.collect::<String>())
}

fn read(clip: &Path, properties: &str) -> Vec<String> {
    let output = python::script(include_str!("../read_points.py"))
        .with_models()
        .arg(&format!(
            "filesrc location={} ! decodebin ! identity eos-after={} ! facetrack {properties}",
            clip.display(),
            FRAMES + 1,
        ))
        .run();
    assert!(output.success, "{}", output.text);
    output
        .text
        .lines()
        .take(FRAMES)
        .map(str::to_owned)
        .collect()
}
