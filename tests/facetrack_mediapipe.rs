// SPDX-License-Identifier: MPL-2.0
//! What `facetrack` says on the way to READY when the MediaPipe engine lacks something.
#![cfg(all(feature = "gst", feature = "onnx"))]

mod common;

use std::path::{Path, PathBuf};

use gst::prelude::*;

const BUNDLE: &str = "face_landmarker.task";

fn element() -> gst::Element {
    common::init();
    gst::ElementFactory::make("facetrack")
        .property("engine", "mediapipe")
        .build()
        .expect("the element")
}

/// The error on the way to READY.
fn refusal(element: &gst::Element) -> String {
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    let result = element.set_state(gst::State::Ready);
    element.set_state(gst::State::Null).expect("NULL");
    assert!(result.is_err(), "it is refused");
    let message = bus
        .pop_filtered(&[gst::MessageType::Error])
        .expect("an error message");
    match message.view() {
        gst::MessageView::Error(error) => error.error().to_string(),
        other => panic!("{other:?}"),
    }
}

/// The published bundle of this machine.
fn bundle() -> Option<PathBuf> {
    let found = gstfacetrack::face::locate::model(BUNDLE, "mediapipe", None, None);
    found
        .inspect_err(|error| eprintln!("SKIPPED: {error}"))
        .ok()
}

fn assert_names(error: &str, path: &Path) {
    assert!(error.contains(&*path.to_string_lossy()), "{error}");
    assert!(error.contains("make setup"), "{error}");
}

#[test]
fn a_missing_model_is_named() {
    let element = element();
    element.set_property("model", "/nowhere/face_landmarker.task");
    assert_names(
        &refusal(&element),
        Path::new("/nowhere/face_landmarker.task"),
    );
}

#[test]
fn a_file_that_is_no_model_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.task");
    std::fs::write(&path, b"PK but no zip").expect("a file");
    let element = element();
    element.set_property("model", path.to_str());
    assert_names(&refusal(&element), &path);
}

#[test]
fn a_truncated_or_changed_model_is_named() {
    let Some(good) = bundle() else {
        return;
    };
    let bytes = std::fs::read(good).expect("the bundle");
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in [
        (BUNDLE, &bytes[..bytes.len() / 2]),
        (BUNDLE, &changed[..]),
        ("mine.task", &bytes[..bytes.len() / 2]),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        let element = element();
        element.set_property("models-dir", folder.path().to_str());
        element.set_property("model", path.to_str());
        assert_names(&refusal(&element), &path);
    }
}

#[test]
fn a_missing_runtime_is_named() {
    if bundle().is_none() {
        return;
    }
    let element = element();
    element.set_property("onnxruntime", "/nowhere/libonnxruntime.so");
    assert_names(&refusal(&element), Path::new("/nowhere/libonnxruntime.so"));
}

#[test]
fn what_it_measures_is_known_without_a_model() {
    let element = element();
    let capabilities: gst::Structure = element.property("capabilities");
    assert_eq!(capabilities.get("engine"), Ok("mediapipe"));
    assert_eq!(capabilities.get("landmark-scheme"), Ok("mediapipe-478"));
    assert_eq!(capabilities.get("pose"), Ok(true));
    assert_eq!(capabilities.get("temporal"), Ok(true));
    element.set_property_from_str("running-mode", "image");
    let capabilities: gst::Structure = element.property("capabilities");
    assert_eq!(capabilities.get("temporal"), Ok(false));
}
