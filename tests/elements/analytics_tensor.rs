// SPDX-License-Identifier: MPL-2.0
//! The landmarks of faces in GStreamer's own analytics metadata, read by its Python bindings. Needs
//! GStreamer 1.28.

use facetrack::engine::EngineKind;
use gst::glib;
use gst::meta::CustomMeta;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

use crate::common::player::{folder, open};
use crate::common::python;

/// Frames that are compared.
const FRAMES: usize = 10;

#[test]
fn python_reads_all_landmarks() {
    let Some(folder) = folder(EngineKind::MediaPipe) else {
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
    // Fractions of the frame remain valid when the picture is scaled.
    for after in ["", " ! videoscale ! video/x-raw,width=160,height=90"] {
        let elements = format!("decodebin ! facetrack engine=mediapipe{after}");
        let (pipeline, out) = open(&clip, &elements);
        let samples = std::iter::from_fn(|| out.pull_sample().ok()).take(FRAMES);
        let expected: Vec<_> = samples
            .map(|it| line(it.buffer().expect("a frame")))
            .collect();
        pipeline.set_state(gst::State::Null).expect("it stops");
        let output = python::script(include_str!("../read_tensor.py"))
            .with_models()
            .arg(&format!("filesrc location={} ! {elements}", clip.display()))
            .run();
        assert!(output.success, "{}", output.text);
        let read: Vec<_> = output.text.lines().take(FRAMES).collect();
        assert_eq!(read, expected);
    }
}

/// The line that the script prints for the face of a frame, with the bytes of `FaceTrackMeta`.
fn line(buffer: &gst::BufferRef) -> String {
    let meta = CustomMeta::from_buffer(buffer, FaceTrackMeta::NAME).expect("a record");
    let face: &gst::StructureRef = meta.structure().get("face-0").expect("a face");
    let bytes: &glib::Bytes = face.get("landmarks").expect("landmarks");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("face-478-kp 478x3 {hex}")
}
