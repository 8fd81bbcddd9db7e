// SPDX-License-Identifier: MPL-2.0
//! Properties and errors of `facetrack` for each engine before it runs, and how the cascade does
//! without a runtime.

use crate::common;

use std::path::{Path, PathBuf};

use crate::common::bus::refusal;
use crate::common::clip::{Clip, FRAMES};
use crate::common::engine::installed_paths;
use crate::common::tool::Tool;
use gst::prelude::*;

/// A published model of an engine.
struct Model {
    engine: &'static str,
    /// The property that names it.
    property: &'static str,
    file: &'static str,
    family: &'static str,
}

const BUNDLE: Model = Model {
    engine: "mediapipe",
    property: "model",
    file: "face_landmarker.task",
    family: "mediapipe",
};

const CASCADE: Model = Model {
    engine: "opencv-haar",
    property: "model",
    file: "haarcascade_frontalface_default.xml",
    family: "haar",
};

const YUNET: Model = Model {
    engine: "opencv-yunet",
    property: "model",
    file: "face_detection_yunet_2023mar.onnx",
    family: "yunet",
};

const OPENSEEFACE: Model = Model {
    engine: "openseeface",
    property: "landmark-model",
    file: "lm_model0_opt.onnx",
    family: "openseeface",
};

/// The first of the files that make eos' model.
const SFM: Model = Model {
    engine: "eos",
    property: "model",
    file: "sfm_shape_3448.bin",
    family: "eos",
};

const MODELS: [Model; 11] = [
    BUNDLE,
    CASCADE,
    YUNET,
    Model {
        engine: "opencv-yunet-pyfeat",
        property: "detector-model",
        ..YUNET
    },
    Model {
        engine: "opencv-yunet-pyfeat",
        property: "landmark-model",
        ..BUNDLE
    },
    OPENSEEFACE,
    Model {
        property: "detector-model",
        file: "mnv3_detection_opt.onnx",
        ..OPENSEEFACE
    },
    Model {
        property: "gaze-model",
        file: "mnv3_gaze32_split_opt.onnx",
        ..OPENSEEFACE
    },
    SFM,
    Model {
        engine: "eos",
        property: "detector-model",
        ..YUNET
    },
    Model {
        engine: "eos",
        property: "landmark-model",
        ..BUNDLE
    },
];

impl Model {
    /// Its path on this machine.
    fn find(&self) -> Option<PathBuf> {
        installed_paths()
            .model(self.file, self.family, None)
            .inspect_err(|error| eprintln!("SKIPPED: {error}"))
            .ok()
    }
}

fn element(engine: &str) -> gst::Element {
    common::init();
    gst::ElementFactory::make("facetrack")
        .property("engine", engine)
        .build()
        .expect("the element")
}

/// Returns the error for `path` in place of `model`.
fn refusal_of(model: &Model, path: &Path) -> String {
    let element = element(model.engine);
    element.set_property(model.property, path.to_str());
    refusal(&element).to_string()
}

#[track_caller]
fn assert_names(error: &str, path: &Path) {
    assert!(error.contains(&*path.to_string_lossy()), "{error}");
    assert!(error.contains("facetrack fetch"), "{error}");
}

/// Returns true if all other models of the engine are installed: the error names the first missing
/// one.
fn others_are_there(model: &Model) -> bool {
    MODELS
        .iter()
        .filter(|other| other.engine == model.engine && other.property != model.property)
        .all(|other| other.find().is_some())
}

#[test]
fn a_missing_model_is_named() {
    for model in MODELS.iter().filter(|model| others_are_there(model)) {
        let path = Path::new("/nowhere").join(model.file);
        let error = refusal_of(model, &path);
        assert_names(&error, &path);
        let property = format!("`{}`", model.property);
        assert!(error.contains(&property), "{property} is not in: {error}");
    }
}

#[test]
fn a_file_that_is_no_model_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine");
    for content in [
        &b""[..],
        b"PK but no zip",
        b"<?xml version=\"1.0\"?>",
        &[0xff; 4096],
    ] {
        std::fs::write(&path, content).expect("a file");
        for model in MODELS.iter().filter(|model| others_are_there(model)) {
            assert_names(&refusal_of(model, &path), &path);
        }
    }
}

#[test]
fn a_truncated_or_changed_model_is_named() {
    for model in MODELS.iter().filter(|model| others_are_there(model)) {
        let Some(good) = model.find() else {
            continue;
        };
        let bytes = std::fs::read(good).expect("the model");
        let half = &bytes[..bytes.len() / 2];
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 1;
        let folder = tempfile::tempdir().expect("a folder");
        for (name, bytes) in [(model.file, half), (model.file, &changed), ("mine", half)] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("a file");
            assert_names(&refusal_of(model, &path), &path);
        }
    }
}

/// This runs in another process, because a loaded runtime cannot be unloaded.
#[test]
fn a_missing_runtime_is_named() {
    let runtime = Path::new("/nowhere/libonnxruntime.so");
    for model in [BUNDLE, YUNET] {
        let Some(path) = model.find() else {
            continue;
        };
        let run = Tool::new("gst-launch-1.0")
            .args("videotestsrc ! facetrack")
            .arg(&format!("engine={}", model.engine))
            .arg(&format!("model={}", path.display()))
            .args("runtime=onnxruntime")
            .arg(&format!("onnxruntime={}", runtime.display()))
            .args("! fakesink")
            .run();
        assert!(!run.success, "{}", run.text);
        assert_names(&run.text, runtime);
    }
}

#[test]
fn the_runtime_of_the_networks_is_named() {
    if BUNDLE.find().is_none() {
        return;
    }
    let mut candidates = installed_paths().runtime_candidates().into_iter();
    let onnxruntime = candidates.any(|path| path.is_file());
    let onnxruntime = onnxruntime.then_some(("onnxruntime", "CPUExecutionProvider"));
    let cases = [("auto", "built-in"), ("built-in", "built-in")];
    for (runtime, provider) in cases.into_iter().chain(onnxruntime) {
        let element = element("mediapipe");
        element.set_property_from_str("runtime", runtime);
        element.set_state(gst::State::Ready).expect("it loads");
        let active: String = element.property("active-execution-provider");
        assert_eq!(active, provider, "{runtime}");
        let capabilities: gst::Structure = element.property("capabilities");
        let runtimes: gst::Array = capabilities.get("runtimes").expect("a list");
        let runtimes: Vec<_> = runtimes.iter().map(|name| name.get::<&str>()).collect();
        let expected = runtime.replace("auto", "built-in");
        assert_eq!(runtimes, [Ok(&*expected)], "{runtime}");
        element.set_state(gst::State::Null).expect("NULL");
    }
}

#[test]
fn what_an_engine_measures_is_known_before_ready() {
    let mesh = Some("mediapipe-478");
    let (measured, derived) = (Some("measured"), Some("derived"));
    let openseeface = Some("openseeface-66");
    for (engine, scheme, landmarks, key_points, blendshapes, source, pose, more) in [
        ("mediapipe", mesh, 478u32, 0u32, 52, measured, true, false),
        ("opencv-haar", None, 0, 0, 0, None, false, false),
        ("opencv-yunet", None, 0, 5, 0, None, false, false),
        (
            "opencv-yunet-pyfeat",
            mesh,
            478,
            5,
            52,
            measured,
            true,
            false,
        ),
        ("openseeface", openseeface, 66, 0, 8, derived, true, true),
        ("eos", Some("ibug-68"), 68, 5, 1, derived, true, false),
        (
            "insightface",
            Some("ibug-68"),
            68,
            5,
            1,
            derived,
            true,
            false,
        ),
    ] {
        let measured: gst::Structure = element(engine).property("capabilities");
        assert_eq!(measured.get("engine"), Ok(engine));
        assert_eq!(measured.get("landmark-scheme").ok(), scheme, "{engine}");
        assert_eq!(measured.get("landmarks"), Ok(landmarks), "{engine}");
        assert_eq!(measured.get("key-points"), Ok(key_points), "{engine}");
        let channels: gst::Array = measured.get("blendshapes").expect("a list");
        assert_eq!(channels.len(), blendshapes, "{engine}");
        assert_eq!(measured.get("blendshape-source").ok(), source, "{engine}");
        let near_zero: gst::Array = measured.get("near-zero-blendshapes").expect("a list");
        let of_mediapipe = if blendshapes == 52 { 3 } else { 0 };
        assert_eq!(near_zero.len(), of_mediapipe, "{engine}");
        assert_eq!(measured.get("pose"), Ok(pose), "{engine}");
        assert_eq!(measured.get("gaze"), Ok(more), "{engine}");
        assert_eq!(measured.get("features"), Ok(more), "{engine}");
        assert_eq!(measured.get("fit"), Ok(more), "{engine}");
        assert_eq!(measured.get("morphable"), Ok(engine == "eos"), "{engine}");
        let secondary = (engine == "insightface").then_some("insightface-106");
        assert_eq!(
            measured.get("secondary-landmark-scheme").ok(),
            secondary,
            "{engine}"
        );
    }
}

#[test]
fn a_shape_of_each_frames_own_makes_frames_independent() {
    for (property, value) in [("identity", "per-frame"), ("running-mode", "image")] {
        let element = element("eos");
        element.set_property_from_str(property, value);
        let measured: gst::Structure = element.property("capabilities");
        assert_eq!(measured.get("temporal"), Ok(false), "{property}");
    }
}

#[test]
fn what_is_not_wanted_of_a_pack_is_not_promised() {
    for (properties, attributes, embedding) in [
        (&[][..], true, 0u32),
        (&[("embedding", "true")], true, 512),
        (&[("allowed-modules", "landmark_2d_106")], false, 0),
    ] {
        let element = element("insightface");
        for (name, value) in properties {
            element.set_property_from_str(name, value);
        }
        let measured: gst::Structure = element.property("capabilities");
        assert_eq!(measured.get("attributes"), Ok(attributes), "{properties:?}");
        assert_eq!(measured.get("embedding"), Ok(embedding), "{properties:?}");
    }
}

#[test]
fn gaze_that_is_not_wanted_is_not_promised() {
    let element = element("openseeface");
    element.set_property("gaze", false);
    let measured: gst::Structure = element.property("capabilities");
    assert_eq!(measured.get("gaze"), Ok(false));
    assert_eq!(measured.get("features"), Ok(true));
}

#[test]
fn what_needs_several_frames_is_not_promised_of_pictures() {
    let element = element("openseeface");
    element.set_property_from_str("running-mode", "image");
    let measured: gst::Structure = element.property("capabilities");
    assert_eq!(measured.get("features"), Ok(false));
    let channels: gst::Array = measured.get("blendshapes").expect("a list");
    let channels: Vec<_> = channels.iter().map(|name| name.get::<&str>()).collect();
    assert_eq!(channels, [Ok("jawOpen")]);
}

#[test]
fn whether_frames_depend_on_one_another_is_known_before_ready() {
    for (engine, mode, temporal) in [
        ("mediapipe", "video", true),
        ("mediapipe", "image", false),
        ("opencv-haar", "video", false),
        ("opencv-yunet", "video", false),
        ("opencv-yunet-pyfeat", "video", false),
        ("openseeface", "video", true),
        ("eos", "video", true),
        ("insightface", "video", false),
    ] {
        let element = element(engine);
        element.set_property_from_str("running-mode", mode);
        let measured: gst::Structure = element.property("capabilities");
        assert_eq!(measured.get("temporal"), Ok(temporal), "{engine}, {mode}");
    }
}

#[test]
fn what_openseeface_learns_is_kept_for_the_next_stream() {
    let others = MODELS.iter().filter(|model| model.engine == "openseeface");
    if others.filter_map(Model::find).count() < 3 {
        return;
    }
    common::init();
    let clip = Clip::draw();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("faces.json");
    let play = || {
        let pipeline = gst::parse::launch(&format!(
            "{} ! facetrack engine=openseeface calibration-file={} ! fakesink",
            clip.source(),
            file.display()
        ))
        .expect("a pipeline");
        common::play_to_end(&pipeline);
        std::fs::read_to_string(&file).expect("a calibration")
    };
    let first = play();
    let second = play();
    assert_ne!(first, second, "the second continues the first");
    std::fs::remove_file(&file).expect("it is there");
    assert_eq!(first, play(), "without a file it starts again");
}

#[test]
fn the_cascade_needs_no_runtime() {
    let Some(cascade) = CASCADE.find() else {
        return;
    };
    let clip = Clip::draw();
    let run = Tool::new("gst-launch-1.0")
        .env("FACETRACK_ONNXRUNTIME", "/nowhere/libonnxruntime.so")
        .args(&format!(
            "-q {} ! facetrack engine=opencv-haar",
            clip.source()
        ))
        .arg(&format!("model={}", cascade.display()))
        .args("! trackjsonsink")
        .run();
    assert!(run.success, "{}", run.text);
    let faces = run.text.matches("\"obj_1\"").count();
    assert_eq!(faces, FRAMES, "{}", run.text);
}
