// SPDX-License-Identifier: MPL-2.0

use super::*;
use crate::options::tests::{environment, options};
use facetrack::device::{ConvAlgorithmSearch, CudaTuning, DeviceChoice};
use facetrack::engine::insightface::Module;
use facetrack::engine::opencv::haar::Search;
use facetrack::engine::opencv::yunet::{
    MAX_WIDTH as YUNET_MAX_WIDTH, NMS_THRESHOLD as YUNET_NMS_THRESHOLD,
};
use facetrack::engine::{RunningMode, eos, insightface};
use facetrack::smoothing::OneEuro;

fn plan(set: &[(&str, &str)], env: &[(&'static str, &str)]) -> Plan {
    let plan = Plan::new(&options(set), &environment(env)).expect("a known engine");
    assert_eq!(plan.warnings, []);
    plan
}

/// A `value` that `variable` can't have is told, and changes nothing.
fn assert_warns(engine: &str, variable: &'static str, value: &str, option: &str) {
    let engine = ("STEP5_TRACKING_ENGINE", engine);
    let env = environment(&[engine, (variable, value)]);
    let given = Plan::new(&options(&[]), &env).expect("an engine");
    let [warning] = given.warnings.as_slice() else {
        panic!("{variable}: {:?}", given.warnings);
    };
    assert_eq!((warning.variable, warning.option), (variable, option));
    let usual = plan(&[], &[engine]);
    assert_eq!(given.setup, usual.setup, "{variable}");
    assert_eq!(given.live, usual.live, "{variable}");
}

#[test]
fn defaults_are_those_of_the_domain() {
    let plan = plan(&[], &[]);
    assert_eq!(plan.setup.kind, EngineKind::MediaPipe);
    let config = EngineConfig {
        detect_max_width: Some(0),
        nms_threshold: Some(YUNET_NMS_THRESHOLD),
        ..EngineConfig::default()
    };
    assert_eq!(plan.setup.config, config);
    assert_eq!(plan.setup.tracker, TrackerConfig::default());
    assert_eq!(plan.live.tuning, Tuning::default());
    assert_eq!(plan.live.schedule, ScheduleSettings::default());
    assert_eq!(plan.live.post_messages, PostMessages::None);
    assert_eq!(plan.live.profile_interval, 0);
}

#[test]
fn the_environment_reaches_its_options() {
    let plan = plan(
        &[],
        &[
            ("STEP5_TRACKING_ENGINE", "MediaPipe_Landmarker"),
            ("STEP5_MEDIAPIPE_MAX_FACES", "1"),
            ("STEP5_BLENDSHAPES_THROTTLE_N", "4"),
            ("STEP5_ONNX_INTRA_OP_THREADS", "2"),
            ("STEP5_ENABLE_PROFILING", "true"),
        ],
    );
    assert_eq!(plan.setup.kind, EngineKind::MediaPipe);
    assert_eq!(plan.setup.config.max_faces, Some(1));
    assert_eq!(plan.setup.config.threads, 2);
    assert_eq!(plan.live.tuning.blendshape_interval, 4);
    assert_eq!(plan.live.profile_interval, 20);
}

#[test]
fn the_environment_reaches_openseeface() {
    let engine = ("STEP5_TRACKING_ENGINE", "openseeface");
    let plan_of = |env: &[_]| plan(&[], &[&[engine], env].concat());
    let plan = plan_of(&[
        ("STEP5_OPENSEEFACE_MAX_FACES", "3"),
        ("STEP5_OPENSEEFACE_DETECTION_THRESHOLD", "0.4"),
        ("STEP5_OPENSEEFACE_JAWOPEN_SCALE", "2.5"),
        ("STEP5_OPENSEEFACE_DETECT_EVERY_N", "2"),
        ("STEP5_OPENSEEFACE_MODELS_DIR", "/models"),
        ("STEP5_OPENSEEFACE_DETECTION_MODEL_PATH", "/detector.onnx"),
        ("STEP5_OPENSEEFACE_MODEL_ID", " -3"),
    ]);
    let config = &plan.setup.config;
    assert_eq!(plan.setup.kind, EngineKind::OpenSeeFace);
    assert_eq!(config.max_faces, Some(3));
    assert_eq!(config.jaw_open_scale, 2.5);
    assert_eq!(config.paths.models_dir, Some("/models".into()));
    assert_eq!(config.detector_model, Some("/detector.onnx".into()));
    assert_eq!(config.landmark_model, Some("-3".into()));
    assert_eq!(plan.live.tuning.thresholds.detection, 0.4);
    assert_eq!(plan.live.schedule.inference_interval, 2);

    let id = ("STEP5_OPENSEEFACE_MODEL_ID", "1");
    let path = ("STEP5_OPENSEEFACE_LANDMARK_MODEL_PATH", "/lm.onnx");
    let landmark_model = |env: &[_]| plan_of(env).setup.config.landmark_model;
    assert_eq!(landmark_model(&[id]), Some("1".into()));
    assert_eq!(landmark_model(&[id, path]), Some("/lm.onnx".into()));
    assert_eq!(landmark_model(&[]), None);
}

#[test]
fn what_openseeface_can_not_understand_warns() {
    for (variable, value, option) in [
        ("STEP5_OPENSEEFACE_MAX_FACES", "many", "max-faces"),
        (
            "STEP5_OPENSEEFACE_DETECTION_THRESHOLD",
            "1.5",
            "detection-confidence",
        ),
        ("STEP5_OPENSEEFACE_JAWOPEN_SCALE", "-1", "jaw-open-scale"),
        (
            "STEP5_OPENSEEFACE_DETECT_EVERY_N",
            "0",
            "inference-interval",
        ),
        ("STEP5_OPENSEEFACE_MODEL_ID", "5", "landmark-model"),
        ("STEP5_OPENSEEFACE_MODEL_ID", "best", "landmark-model"),
    ] {
        assert_warns("openseeface", variable, value, option);
    }
}

#[test]
fn defaults_of_openseeface_are_those_of_the_domain() {
    let plan = plan(&[("engine", "openseeface")], &[]);
    let config = EngineConfig {
        detect_max_width: Some(0),
        nms_threshold: Some(YUNET_NMS_THRESHOLD),
        ..EngineConfig::default()
    };
    assert_eq!(plan.setup.config, config);
    assert_eq!(plan.setup.calibration_file, None);
}

#[test]
fn the_environment_reaches_eos() {
    let plan = plan(
        &[],
        &[
            ("STEP5_TRACKING_ENGINE", "EOS"),
            ("STEP5_EOS_MAX_FACES", "2"),
            ("STEP5_EOS_MAX_WIDTH", "800"),
            ("STEP5_EOS_FIT_EVERY_N", "3"),
            ("STEP5_EOS_JAWOPEN_SCALE", "1.5"),
            ("STEP5_EOS_MODELS_DIR", "/models"),
            ("STEP5_EOS_SFM_MODEL_PATH", "/shapes.bin"),
            ("STEP5_YUNET_MODEL_PATH", "/yunet.onnx"),
            ("STEP5_FACEMESH_ONNX_PATH", "/face.task"),
            // These variables are for other engines.
            ("STEP5_YUNET_MAX_WIDTH", "320"),
            ("STEP5_OPENSEEFACE_DETECT_EVERY_N", "7"),
            ("STEP5_OPENSEEFACE_MODEL_ID", "1"),
        ],
    );
    let config = &plan.setup.config;
    assert_eq!(plan.setup.kind, EngineKind::Eos);
    assert_eq!(config.max_faces, Some(2));
    assert_eq!(config.detect_max_width, Some(800));
    assert_eq!(config.jaw_open_scale, 1.5);
    assert_eq!(config.paths.models_dir, Some("/models".into()));
    assert_eq!(config.model, Some("/shapes.bin".into()));
    assert_eq!(config.detector_model, Some("/yunet.onnx".into()));
    assert_eq!(config.landmark_model, Some("/face.task".into()));
    assert_eq!(plan.live.schedule.inference_interval, 3);
}

#[test]
fn what_eos_can_not_understand_warns() {
    for (variable, value, option) in [
        ("STEP5_EOS_MAX_FACES", "-1", "max-faces"),
        ("STEP5_EOS_MAX_WIDTH", "wide", "detect-max-width"),
        ("STEP5_EOS_FIT_EVERY_N", "0", "inference-interval"),
        ("STEP5_EOS_JAWOPEN_SCALE", "nan", "jaw-open-scale"),
    ] {
        assert_warns("eos", variable, value, option);
    }
}

#[test]
fn defaults_of_eos_are_those_of_the_domain() {
    let plan = plan(&[("engine", "eos")], &[]);
    let config = EngineConfig {
        detect_max_width: Some(eos::MAX_WIDTH),
        nms_threshold: Some(YUNET_NMS_THRESHOLD),
        ..EngineConfig::default()
    };
    assert_eq!(plan.setup.config, config);
    assert_eq!(plan.live.tuning.smoothing, None);
}

#[test]
fn the_environment_reaches_insightface() {
    let plan = plan(
        &[],
        &[
            ("STEP5_TRACKING_ENGINE", "InsightFace"),
            ("STEP5_INSIGHTFACE_MODEL_NAME", "buffalo_s"),
            ("STEP5_INSIGHTFACE_MAX_FACES", "2"),
            ("STEP5_INSIGHTFACE_MAX_WIDTH", "800"),
            ("STEP5_INSIGHTFACE_DET_SIZE", "320,320"),
            ("STEP5_INSIGHTFACE_ALLOWED_MODULES", "detection, genderage"),
            ("STEP5_INSIGHTFACE_DETECT_EVERY_N", "3"),
            ("STEP5_INSIGHTFACE_JAWOPEN_SCALE", "1.5"),
            ("STEP5_INSIGHTFACE_CTX_ID", "2"),
            ("STEP5_ONNX_INTRA_OP_THREADS", "4"),
            ("STEP5_GPU_FALLBACK_AUTO", "0"),
            ("STEP5_GPU_MAX_VRAM_MB", "1024"),
            ("STEP5_CUDA_LIB_PATH", "/a:/b"),
            ("CUDA_HOME", "/cuda"),
            // These variables are for other engines.
            ("STEP5_EOS_MAX_FACES", "7"),
            ("STEP5_EOS_MAX_WIDTH", "320"),
        ],
    );
    let Setup {
        kind,
        config,
        request,
        ..
    } = &plan.setup;
    assert_eq!(*kind, EngineKind::InsightFace);
    assert_eq!(config.model, Some("buffalo_s".into()));
    assert_eq!(config.max_faces, Some(2));
    assert_eq!(config.detect_max_width, Some(800));
    assert_eq!(config.jaw_open_scale, 1.5);
    assert_eq!(config.threads, 4);
    let told = insightface::Settings {
        allowed_modules: Some(vec![Module::Detection, Module::GenderAge]),
        det_size: 320,
        embedding: false,
    };
    assert_eq!(config.insightface, told);
    assert_eq!(plan.live.schedule.inference_interval, 3);
    let wanted = Request {
        fallback: false,
        gpu_id: Some(2),
        max_vram: 1 << 30,
        libraries: LibrarySearch {
            folders: vec!["/a".into(), "/b".into()],
            homes: vec!["/cuda".into()],
        },
        ..Request::default()
    };
    assert_eq!(*request, wanted);
}

#[test]
fn a_size_of_the_detector_is_a_side_or_both() {
    let engine = ("STEP5_TRACKING_ENGINE", "insightface");
    for (value, side) in [
        ("320", 320),
        (" 1280 ", 1280),
        ("320,320", 320),
        ("320 , 320", 320),
        ("320x320", 320),
        ("4096X4096", 4096),
        ("auto", 0),
        ("0,0", 0),
    ] {
        let plan = plan(&[], &[engine, ("STEP5_INSIGHTFACE_DET_SIZE", value)]);
        assert_eq!(plan.setup.config.insightface.det_size, side, "{value:?}");
    }
}

#[test]
fn what_insightface_can_not_understand_warns() {
    for (variable, value, option) in [
        ("STEP5_INSIGHTFACE_MAX_FACES", "-1", "max-faces"),
        ("STEP5_INSIGHTFACE_MAX_WIDTH", "wide", "detect-max-width"),
        ("STEP5_INSIGHTFACE_DET_SIZE", "641", "det-size"),
        ("STEP5_INSIGHTFACE_DET_SIZE", "640x480", "det-size"),
        ("STEP5_INSIGHTFACE_DET_SIZE", "640,640,640", "det-size"),
        ("STEP5_INSIGHTFACE_DET_SIZE", "4128", "det-size"),
        (
            "STEP5_INSIGHTFACE_ALLOWED_MODULES",
            "detection,age",
            "allowed-modules",
        ),
        (
            "STEP5_INSIGHTFACE_DETECT_EVERY_N",
            "0",
            "inference-interval",
        ),
        ("STEP5_INSIGHTFACE_JAWOPEN_SCALE", "nan", "jaw-open-scale"),
        ("STEP5_INSIGHTFACE_CTX_ID", "-2", "gpu-id"),
        ("STEP5_INSIGHTFACE_CTX_ID", "cuda:0", "gpu-id"),
        ("TRACKING_DISABLE_GPU", "perhaps", "device"),
    ] {
        assert_warns("insightface", variable, value, option);
    }
}

#[test]
fn defaults_of_insightface_are_those_of_the_domain() {
    let plan = plan(&[("engine", "insightface")], &[]);
    let config = EngineConfig {
        detect_max_width: Some(insightface::MAX_WIDTH),
        nms_threshold: Some(insightface::NMS_THRESHOLD),
        ..EngineConfig::default()
    };
    assert_eq!(plan.setup.config, config);
    assert_eq!(plan.setup.request, Request::default());
    assert_eq!(plan.live.tuning.smoothing, None);
}

#[test]
fn options_of_insightface_reach_it() {
    let switches = [
        "embedding",
        "deterministic",
        "arena-shrinkage",
        "pinned-io",
        "cuda-graph",
        "tensorrt",
        "fp16",
    ];
    let set: Vec<_> = switches.map(|name| (name, "true")).into();
    let more = [
        ("engine", "insightface"),
        ("det-size", "1024"),
        ("allowed-modules", "recognition"),
        ("tf32", "true"),
        ("warm-up-runs", "0"),
        ("cudnn-conv-algo-search", "exhaustive"),
        ("cuda-lib-path", "/first"),
        ("gpu-min-free-vram", "1"),
        ("gpu-id", "1"),
        ("device", "cuda"),
    ];
    let env = [("STEP5_CUDA_LIB_PATH", "/then")];
    let plan = plan(&[set, more.into()].concat(), &env);
    let settings = insightface::Settings {
        allowed_modules: Some(vec![Module::Recognition]),
        det_size: 1024,
        embedding: true,
    };
    assert_eq!(plan.setup.config.insightface, settings);
    let request = Request {
        device: Some(DeviceChoice::Cuda),
        gpu_id: Some(1),
        min_free_vram: 1 << 20,
        libraries: LibrarySearch {
            folders: vec!["/first".into(), "/then".into()],
            homes: Vec::new(),
        },
        tuning: CudaTuning {
            warm_up_runs: 0,
            conv_algorithm_search: ConvAlgorithmSearch::Exhaustive,
            tf32: true,
            deterministic: true,
            arena_shrinkage: true,
            pinned_io: true,
            cuda_graph: true,
            tensorrt: true,
            fp16: true,
        },
        ..Request::default()
    };
    assert_eq!(plan.setup.request, request);
}

#[test]
fn each_way_to_run_on_a_gpu_has_a_switch_of_its_own() {
    let usual = plan(&[], &[]).setup.request.tuning;
    let mut seen = vec![usual];
    for (name, value) in [
        ("warm-up-runs", "1"),
        ("cudnn-conv-algo-search", "default"),
        ("tf32", "true"),
        ("deterministic", "true"),
        ("arena-shrinkage", "true"),
        ("pinned-io", "true"),
        ("cuda-graph", "true"),
        ("tensorrt", "true"),
        ("fp16", "true"),
    ] {
        let tuning = plan(&[(name, value)], &[]).setup.request.tuning;
        assert!(!seen.contains(&tuning), "{name}");
        seen.push(tuning);
    }
}

#[test]
fn a_device_that_was_set_is_distinguished_from_one_that_was_not() {
    let device = |set: &[_]| plan(set, &[]).setup.request.device;
    assert_eq!(device(&[]), None);
    for (word, choice) in [
        ("auto", DeviceChoice::Auto),
        ("cpu", DeviceChoice::Cpu),
        ("cuda", DeviceChoice::Cuda),
    ] {
        assert_eq!(device(&[("device", word)]), Some(choice));
    }
}

#[test]
fn a_device_may_have_a_number_as_active_device_has() {
    let set = [("device", "cuda:1"), ("gpu-id", "0")];
    let request = plan(&set, &[]).setup.request;
    assert_eq!(request.device, Some(DeviceChoice::Cuda));
    assert_eq!(request.gpu_id, Some(1), "the number of the device is used");
    for wrong in ["cuda:", "cuda:-1", "cuda:x", "gpu", "CUDA"] {
        let error = Plan::new(&options(&[("device", wrong)]), &environment(&[])).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("cuda:<number>") && error.contains(wrong),
            "{error}"
        );
    }
}

#[test]
fn the_environment_gates_the_gpu() {
    let gpu_policy = |set: &[_], env: &[_]| plan(set, env).setup.request.gpu_policy;
    assert_eq!(gpu_policy(&[], &[]), GpuPolicy::Allowed);
    for (variable, value) in [
        ("TRACKING_DISABLE_GPU", "1"),
        ("STEP5_ENABLE_GPU", "0"),
        ("STEP5_INSIGHTFACE_CTX_ID", "-1"),
    ] {
        let closed = GpuPolicy::Disabled {
            variable,
            value: value.to_owned(),
        };
        assert_eq!(gpu_policy(&[], &[(variable, value)]), closed);
    }
    let engine = ("engine", "insightface");
    let number = [("STEP5_INSIGHTFACE_CTX_ID", "-1")];
    let set = [engine, ("gpu-id", "-1")];
    assert_eq!(
        gpu_policy(&set, &number),
        GpuPolicy::Allowed,
        "the property beats it"
    );
}

#[test]
fn a_variable_that_nobody_asks_warns_of_nothing() {
    let env = environment(&[("TRACKING_DISABLE_GPU", "perhaps")]);
    for set in [
        &[("engine", "scripted")][..],
        &[("engine", "insightface"), ("device", "auto")],
    ] {
        let plan = Plan::new(&options(set), &env).unwrap();
        assert_eq!(plan.warnings, [], "{set:?}");
    }
}

#[test]
fn a_path_that_is_set_beats_the_environment() {
    let set = SearchPaths {
        runtime: Some("/a.so".into()),
        models_dir: Some("/m".into()),
        ..SearchPaths::default()
    };
    let found = SearchPaths {
        runtime: Some("/own.so".into()),
        home: Some("/h".into()),
        ..SearchPaths::default()
    };
    let both = SearchPaths {
        home: found.home.clone(),
        ..set.clone()
    };
    assert_eq!(search_paths(set, found), both);
}

#[test]
fn modules_that_do_not_exist_are_an_error() {
    let set = [
        ("engine", "insightface"),
        ("allowed-modules", "detection,landmarks"),
    ];
    let error = Plan::new(&options(&set), &Environment::default()).unwrap_err();
    assert_eq!(
        facetrack_remedies::message(&error),
        "`allowed-modules`: \"landmarks\" is not a module, expected one of: detection, landmark_2d_106, landmark_3d_68, genderage, recognition"
    );
}

#[test]
fn options_of_eos_reach_it() {
    let set = [
        ("engine", "eos"),
        ("identity", "per-frame"),
        ("mesh", "true"),
    ];
    let told = eos::Settings {
        identity: eos::Identity::PerFrame,
        mesh: true,
    };
    assert_eq!(plan(&set, &[]).setup.config.eos, told);
}

#[test]
fn each_engine_has_its_own_defaults() {
    for kind in EngineKind::ALL {
        let plan = plan(&[("engine", kind.name())], &[]);
        assert_eq!(plan.live.tuning.thresholds, kind.thresholds());
        assert_eq!(plan.setup.config.opencv_haar, Search::default());
        let overlap = match kind {
            EngineKind::InsightFace => insightface::NMS_THRESHOLD,
            _ => YUNET_NMS_THRESHOLD,
        };
        assert_eq!(plan.setup.config.nms_threshold, Some(overlap));
    }
    for (engine, width) in [
        ("mediapipe", 0),
        ("opencv-yunet", YUNET_MAX_WIDTH),
        ("opencv-yunet-pyfeat", YUNET_MAX_WIDTH),
        ("eos", eos::MAX_WIDTH),
        ("insightface", insightface::MAX_WIDTH),
    ] {
        let plan = plan(&[("engine", engine)], &[]);
        assert_eq!(plan.setup.config.detect_max_width, Some(width), "{engine}");
    }
}

#[test]
fn other_settings_do_not_make_another_engine_of_the_one_that_is_loaded() {
    let loaded = plan(&[("max-faces", "2")], &[]);
    let set = options(&[
        ("engine", "opencv-yunet"),
        ("max-faces", "1"),
        ("presence-confidence", "0.25"),
    ]);
    let live = Live::with(&loaded.setup, &set, &Environment::default());
    let mut want = loaded.live;
    want.tuning.thresholds.presence = 0.25;
    assert_eq!(live, want);
}

#[test]
fn an_unknown_engine_lists_the_known_ones() {
    let error = Plan::new(&options(&[("engine", "dlib")]), &Environment::default()).unwrap_err();
    let known = EngineKind::ALL.map(EngineKind::name).join(", ");
    assert_eq!(
        error.to_string(),
        format!("unknown engine \"dlib\", `engine` is one of: {known}")
    );
}

#[test]
fn native_smoothing_is_the_originals() {
    let one = ("max-faces", "1");
    for (set, smooths) in [
        (vec![], false),
        (vec![one], true),
        (vec![one, ("running-mode", "image")], false),
        (vec![one, ("smoothing", "off")], false),
        (vec![one, ("engine", "scripted")], false),
        (vec![("smoothing", "one-euro")], true),
    ] {
        let tuning = plan(&set, &[]).live.tuning;
        let want = smooths.then_some(OneEuro::default());
        assert_eq!(tuning.smoothing, want, "{set:?}");
    }
}

#[test]
fn every_choice_has_a_meaning() {
    for (option, word) in [
        ("running-mode", "image"),
        ("pnp-points", "all"),
        ("identity", "per-frame"),
        ("tracker", "iou"),
        ("device", "cuda"),
        ("cudnn-conv-algo-search", "heuristic"),
    ] {
        plan(&[(option, word)], &[]);
    }
    let plan = plan(&[("running-mode", "image")], &[]);
    assert_eq!(plan.setup.config.running_mode, RunningMode::Image);
}
