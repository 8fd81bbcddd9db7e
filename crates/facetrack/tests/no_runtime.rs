// SPDX-License-Identifier: MPL-2.0
//! Errors of engines without ONNX Runtime. In a process of its own, because a loaded runtime cannot
//! be unloaded.

use facetrack::device::{Fault, MachineProbe, Probe, Request};
use std::time::Duration;

use facetrack::engine::{EngineConfig, EngineError, EngineKind, Frame, describe, load};
use facetrack::image::ImageView;
use facetrack::model::{ModelError, RuntimeChoice};
use facetrack_assets::locate::SearchPaths;

fn without_runtime() -> SearchPaths {
    SearchPaths {
        runtime: Some("/nowhere/libonnxruntime.so".into()),
        ..SearchPaths::from_vars(std::env::var_os)
    }
}

#[test]
fn a_missing_runtime_is_an_error_that_names_the_path() {
    let config = EngineConfig {
        paths: without_runtime(),
        runtime: RuntimeChoice::OnnxRuntime,
        ..EngineConfig::default()
    };
    for kind in [
        EngineKind::MediaPipe,
        EngineKind::OpenCvYunet,
        EngineKind::OpenCvYunetPyfeat,
    ] {
        let error = load(kind, &config).err();
        match error.expect("there is no runtime at that path") {
            EngineError::Model(reason @ ModelError::Missing { .. })
            | EngineError::Part {
                source: reason @ ModelError::Missing { .. },
                ..
            } => {
                eprintln!("SKIPPED: {reason}");
            }
            EngineError::Model(reason @ ModelError::Runtime { .. })
            | EngineError::Part {
                source: reason @ ModelError::Runtime { .. },
                ..
            } => {
                let message = reason.to_string();
                assert!(message.contains("/nowhere/libonnxruntime.so"), "{message}");
            }
            other => panic!("{}: {other}", kind.name()),
        }
    }
}

#[test]
fn engines_whose_networks_are_built_in_need_no_runtime() {
    let pixels = vec![128; 320 * 240 * 3];
    let frame = Frame {
        image: ImageView::rgb(320, 240, &pixels).unwrap(),
        time: Duration::ZERO,
    };
    for (kind, runtime) in [
        (EngineKind::MediaPipe, RuntimeChoice::Auto),
        (EngineKind::MediaPipe, RuntimeChoice::BuiltIn),
        (EngineKind::OpenSeeFace, RuntimeChoice::Auto),
        (EngineKind::OpenCvYunet, RuntimeChoice::Auto),
        (EngineKind::OpenCvYunetPyfeat, RuntimeChoice::Auto),
        (EngineKind::Eos, RuntimeChoice::Auto),
    ] {
        let config = EngineConfig {
            paths: without_runtime(),
            runtime,
            ..EngineConfig::default()
        };
        match load(kind, &config) {
            Ok(mut engine) => {
                assert!(engine.look(&frame, &kind.thresholds()).unwrap().is_empty());
                let runtimes = engine.info.runtimes;
                assert_eq!(runtimes.execution_provider(), "built-in", "{runtimes:?}");
                assert_eq!(runtimes.fallbacks, [""; 0]);
            }
            Err(EngineError::Model(reason) | EngineError::Part { source: reason, .. })
                if matches!(reason, ModelError::Missing { .. }) =>
            {
                eprintln!("SKIPPED: {reason}");
            }
            Err(reason) => panic!("{}: {reason}", kind.name()),
        }
    }
}

#[test]
fn engines_without_networks_need_no_runtime() {
    let config = EngineConfig {
        paths: without_runtime(),
        ..EngineConfig::default()
    };
    assert!(load(EngineKind::Scripted, &config).is_ok());
    match load(EngineKind::OpenCvHaar, &config).err() {
        None => (),
        Some(EngineError::Model(reason @ ModelError::Missing { .. })) => {
            eprintln!("SKIPPED: {reason}");
        }
        Some(other) => panic!("{other}"),
    }
}

#[test]
fn a_runtime_that_does_not_load_is_a_fault() {
    let request = Request {
        paths: SearchPaths {
            runtime: Some("/nowhere/a.so".into()),
            ..SearchPaths::default()
        },
        ..Request::default()
    };
    let fault = MachineProbe::default().provider(&request).unwrap_err();
    assert!(
        matches!(&fault, Fault::Runtime(why) if why.contains("/nowhere/a.so")),
        "{fault:?}"
    );
}

#[test]
fn what_an_engine_measures_is_known_without_a_runtime() {
    for kind in EngineKind::ALL {
        let info = describe(kind, &EngineConfig::default()).unwrap();
        assert_eq!(info.name, kind.name());
        assert!(info.models.is_empty());
    }
}
