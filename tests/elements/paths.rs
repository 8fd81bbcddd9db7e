// SPDX-License-Identifier: MPL-2.0
//! Properties that are paths, set to pipes and to endless devices.

use std::path::Path;
use std::process::Command;

use gst::prelude::*;

use crate::common::{self, bus};
use facetrack::engine::{EngineConfig, EngineKind};

/// Every property that names a file which is read, with an engine that reads it.
const FILES: [(&str, &str, &str); 13] = [
    ("facetrack", "mediapipe", "model"),
    ("facetrack", "opencv-haar", "model"),
    ("facetrack", "opencv-yunet", "model"),
    ("facetrack", "opencv-yunet-pyfeat", "detector-model"),
    ("facetrack", "opencv-yunet-pyfeat", "landmark-model"),
    ("facetrack", "openseeface", "detector-model"),
    ("facetrack", "openseeface", "landmark-model"),
    ("facetrack", "openseeface", "gaze-model"),
    ("facetrack", "eos", "model"),
    ("facetrack", "eos", "detector-model"),
    ("facetrack", "eos", "landmark-model"),
    ("facetrack", "insightface", "model"),
    ("trackjsonload", "", "location"),
];

fn element(factory: &str, engine: &str, property: &str, path: &Path) -> gst::Element {
    let element = gst::ElementFactory::make(factory);
    let element = element.property(property, path.to_str()).build();
    let element = element.expect("the element");
    if !engine.is_empty() {
        element.set_property("engine", engine);
    }
    element
}

fn kind(engine: &str) -> EngineKind {
    engine.parse().expect("an engine")
}

/// The error on the way to PAUSED.
fn refusal(element: &gst::Element) -> Option<String> {
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    let _ = element.set_state(gst::State::Paused);
    element.set_state(gst::State::Null).expect("NULL");
    bus::error(&bus)
}

#[test]
fn a_pipe_or_an_endless_device_is_an_error_at_once() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("coreutils").success());
    for (factory, engine, property) in FILES {
        // An engine names a missing file before it opens the others.
        let config = EngineConfig::default();
        if !engine.is_empty() && common::engine::engine(kind(engine), &config).is_none() {
            continue;
        }
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let element = element(factory, engine, property, path);
            let shown = format!("{engine} {property}={}", path.display());
            let error = refusal(&element).unwrap_or_else(|| panic!("{shown} is taken"));
            assert!(
                error.contains(path.to_str().expect("UTF-8")),
                "{shown}: {error}"
            );
        }
    }
}
