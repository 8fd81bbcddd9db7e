// SPDX-License-Identifier: MPL-2.0
//! The options of the element `facetrack`.

use super::{Access, OptionSpec, choices, env, env_number_of, env_of, env_square_of, env_switch};
use crate::device::{ConvAlgorithmSearch, DeviceChoice};
use crate::engine::openseeface::PnpPoints;
use crate::engine::{EngineKind, RunningMode, eos, insightface};
pub use crate::schedule::LateFrames;
use crate::tracker::TrackerKind;

/// Frames between two profiling lines when the environment asks for them; the number of the pipeline that set the
/// variable's meaning.
const PROFILE_INTERVAL_BY_ENVIRONMENT: i32 = 20;

choices! {
    /// Smoothing of landmarks over time.
    pub enum Smoothing {
        Native = "native": "as the engine's original does: mediapipe smooths in video mode with max-faces=1 alone",
        Off = "off": "landmarks as measured",
        OneEuro = "one-euro": "a One-Euro filter per face, for any number of faces",
    }
}

choices! {
    /// Element messages on the bus.
    pub enum PostMessages {
        None = "none": "no messages",
        OnChange = "on-change": "when a face enters or leaves",
        EveryFrame = "every-frame": "each frame, and when a face enters or leaves",
    }
}

/// Engines that run networks.
const NETWORKS: &[&str] = &[
    "mediapipe",
    "opencv-yunet",
    "opencv-yunet-pyfeat",
    "openseeface",
    "eos",
    "insightface",
];

/// Engines that read models.
const MODELS: &[&str] = &[
    "mediapipe",
    "opencv-haar",
    "opencv-yunet",
    "opencv-yunet-pyfeat",
    "openseeface",
    "eos",
    "insightface",
];

/// Engines that report landmarks and blendshapes.
const LANDMARKS: &[&str] = &[
    "mediapipe",
    "opencv-yunet-pyfeat",
    "openseeface",
    "eos",
    "insightface",
    "scripted",
];

/// Engines whose detector finds faces at every place, so that one face may be found several times.
const DENSE: &[&str] = &["opencv-yunet", "opencv-yunet-pyfeat", "eos", "insightface"];

/// Engines that find faces with a cascade.
const HAAR: &[&str] = &["opencv-haar"];

/// OpenSeeFace's tracker.
const OPENSEEFACE: &[&str] = &["openseeface"];

/// The fit of a morphable model.
const EOS: &[&str] = &["eos"];

/// InsightFace's packs, which alone may run on a GPU.
const INSIGHTFACE: &[&str] = &["insightface"];

/// Every option of `facetrack`, in the order in which they are shown.
pub const FACETRACK: &[OptionSpec] = &[
    OptionSpec::checked_text(
        "engine",
        Some("mediapipe"),
        |name| {
            name.parse::<EngineKind>()
                .map(|_| ())
                .map_err(|e| e.to_string())
        },
        "Engine that finds the faces: mediapipe (alias mediapipe_landmarker), opencv-haar, opencv-yunet, opencv-yunet-pyfeat, openseeface, eos, insightface or scripted; underscores are as good as hyphens; one that is set while frames flow is loaded beside them",
    )
    .access(Access::Playing)
    .env(&[env("STEP5_TRACKING_ENGINE")]),
    OptionSpec::choice(
        "running-mode",
        RunningMode::CHOICES,
        "Whether frames follow one another",
    )
    .engines(&["mediapipe", "openseeface", "eos", "scripted"]),
    OptionSpec::int(
        "max-faces",
        (0, 100, 0),
        "Greatest number of faces; 0 = the engine's own (mediapipe: 5, opencv-*, eos and insightface: all, openseeface: 1)",
    )
    .unit("faces")
    .env(&[
        env_of("mediapipe", "STEP5_MEDIAPIPE_MAX_FACES"),
        env_of("opencv-haar", "STEP5_OPENCV_MAX_FACES"),
        env_of("opencv-yunet", "STEP5_OPENCV_MAX_FACES"),
        env_of("opencv-yunet-pyfeat", "STEP5_OPENCV_MAX_FACES"),
        env_of("openseeface", "STEP5_OPENSEEFACE_MAX_FACES"),
        env_of("eos", "STEP5_EOS_MAX_FACES"),
        env_of("insightface", "STEP5_INSIGHTFACE_MAX_FACES"),
    ]),
    OptionSpec::float(
        "detection-confidence",
        (0.0, 1.0, 0.5),
        "Least score for a detected face",
    )
    .access(Access::Playing)
    .engines(NETWORKS)
    .env(&[env_of("openseeface", "STEP5_OPENSEEFACE_DETECTION_THRESHOLD")])
    .engine_defaults(&[
        ("opencv-yunet", 0.7),
        ("opencv-yunet-pyfeat", 0.7),
        ("openseeface", 0.6),
        ("eos", 0.7),
    ]),
    OptionSpec::float(
        "presence-confidence",
        (0.0, 1.0, 0.5),
        "Least score of the landmark network for a face to be there; opencv-yunet-pyfeat and eos report a face below it without landmarks; openseeface's models -1, -2 and -3 want 0.87",
    )
    .access(Access::Playing)
    .engines(&["mediapipe", "opencv-yunet-pyfeat", "openseeface", "eos"])
    .engine_defaults(&[("openseeface", 0.6)]),
    OptionSpec::float(
        "tracking-confidence",
        (0.0, 1.0, 0.5),
        "Least overlap of a detection with a followed face for both to be the same; video mode",
    )
    .access(Access::Playing)
    .engines(&["mediapipe"]),
    OptionSpec::float(
        "nms-threshold",
        (0.0, 1.0, 0.3),
        "Greatest overlap (IoU) of two detected faces",
    )
    .engines(DENSE)
    .engine_defaults(&[("insightface", 0.4)]),
    OptionSpec::int(
        "detect-max-width",
        (0, 16384, 0),
        "Wider frames are reduced to this width for the detector, and what it finds is scaled back; 0 = never",
    )
    .unit("px")
    .env(&[
        env_of("opencv-yunet", "STEP5_YUNET_MAX_WIDTH"),
        env_of("opencv-yunet-pyfeat", "STEP5_YUNET_MAX_WIDTH"),
        env_of("eos", "STEP5_EOS_MAX_WIDTH"),
        env_of("insightface", "STEP5_INSIGHTFACE_MAX_WIDTH"),
    ])
    .engines(DENSE)
    .engine_defaults(&[
        ("opencv-yunet", 640.0),
        ("opencv-yunet-pyfeat", 640.0),
        ("eos", 1280.0),
        ("insightface", 1280.0),
    ]),
    OptionSpec::int(
        "det-size",
        (
            insightface::DET_SIZE_STEP as i32,
            insightface::MAX_DET_SIZE as i32,
            insightface::DET_SIZE as i32,
        ),
        "Side of the square that frames are fitted into for the detector, a multiple of 32: more finds smaller faces and takes longer; too little GPU memory lowers it",
    )
    .unit("px")
    .env(&[env_square_of(
        "insightface",
        "STEP5_INSIGHTFACE_DET_SIZE",
        insightface::DET_SIZE_STEP,
    )])
    .engines(INSIGHTFACE),
    OptionSpec::checked_text(
        "allowed-modules",
        None,
        |list| insightface::modules(list).map(|_| ()),
        "Networks of the pack that run, by commas or spaces: detection, which always does, landmark_2d_106, landmark_3d_68, genderage, and recognition, which needs embedding=true as well; unset = all",
    )
    .env(&[env_of("insightface", "STEP5_INSIGHTFACE_ALLOWED_MODULES")])
    .engines(INSIGHTFACE),
    OptionSpec::bool(
        "embedding",
        false,
        "Measure each face's embedding, which identifies people: where it is stored or sent, the law may protect it as biometric data",
    )
    .engines(INSIGHTFACE),
    OptionSpec::float(
        "scale-factor",
        (1.001, 100.0, 1.1),
        "Ratio of two neighbouring sizes that faces are looked for in",
    )
    .engines(HAAR),
    OptionSpec::int(
        "min-neighbors",
        (0, 1000, 5),
        "Detections that agree on a face for it to count; 0 = every detection is a face",
    )
    .engines(HAAR),
    OptionSpec::int("min-size", (0, 16384, 30), "Least width and height of a face")
        .unit("px")
        .engines(HAAR),
    OptionSpec::int(
        "max-size",
        (0, 16384, 0),
        "Greatest width and height of a face; 0 = no limit",
    )
    .unit("px")
    .engines(HAAR),
    OptionSpec::int(
        "scan-every",
        (1, 1000, 3),
        "With fewer faces than max-faces, every n-th frame is searched for more",
    )
    .unit("frames")
    .engines(OPENSEEFACE),
    OptionSpec::int(
        "discard-after",
        (0, 1000, 10),
        "Frames that lost faces are looked for where they were; 0 = none",
    )
    .unit("frames")
    .engines(OPENSEEFACE),
    OptionSpec::bool("gaze", true, "Measure where the eyes look").engines(OPENSEEFACE),
    OptionSpec::choice(
        "pnp-points",
        PnpPoints::CHOICES,
        "Points of the 3-D face model to report as the camera sees them",
    )
    .engines(OPENSEEFACE),
    OptionSpec::float(
        "calibration-time",
        (0.0, 1_000_000.0, 900.0),
        "Time from a face's first frame on in which its range of expression is learned; 0 = always",
    )
    .unit("s")
    .engines(OPENSEEFACE),
    OptionSpec::text(
        "calibration-file",
        None,
        "File that keeps what is learned of each face's range of expression: read at the start where it exists, written at the stream's end; the action signal reset-calibration starts anew; unset = none",
    )
    .engines(&["openseeface", "scripted"]),
    OptionSpec::choice(
        "identity",
        eos::Identity::CHOICES,
        "Frames that the shape of a face's model is fitted to; with running-mode=image always each by itself",
    )
    .engines(EOS),
    OptionSpec::bool(
        "mesh",
        false,
        "Report every vertex of the fitted mesh in the metadata",
    )
    .engines(EOS),
    OptionSpec::float(
        "jaw-open-scale",
        (0.0, 1000.0, 1.0),
        "What the blendshape jawOpen is multiplied by where it is derived from landmarks",
    )
    .env(&[
        env_of("openseeface", "STEP5_OPENSEEFACE_JAWOPEN_SCALE"),
        env_of("eos", "STEP5_EOS_JAWOPEN_SCALE"),
        env_of("insightface", "STEP5_INSIGHTFACE_JAWOPEN_SCALE"),
    ])
    .engines(&["openseeface", "eos", "insightface"]),
    OptionSpec::choice(
        "smoothing",
        Smoothing::CHOICES,
        "Smoothing of landmarks over time",
    )
    .access(Access::Playing)
    .engines(LANDMARKS),
    OptionSpec::float(
        "smoothing-min-cutoff",
        (0.0001, 1000.0, 0.05),
        "One-Euro: cutoff frequency of a resting face; less is smoother",
    )
    .unit("Hz")
    .access(Access::Playing)
    .engines(LANDMARKS),
    OptionSpec::float(
        "smoothing-beta",
        (0.0, 100_000.0, 80.0),
        "One-Euro: cutoff gained per face size and second of speed; more follows faster",
    )
    .access(Access::Playing)
    .engines(LANDMARKS),
    OptionSpec::float(
        "smoothing-derivate-cutoff",
        (0.0001, 1000.0, 1.0),
        "One-Euro: cutoff frequency of the speed",
    )
    .unit("Hz")
    .access(Access::Playing)
    .engines(LANDMARKS),
    OptionSpec::int(
        "blendshape-interval",
        (1, 1000, 1),
        "Blendshapes of a face are measured in every n-th of its frames and repeated between; 1 = in each",
    )
    .unit("frames")
    .env(&[env("STEP5_BLENDSHAPES_THROTTLE_N")])
    .access(Access::Playing)
    .engines(LANDMARKS),
    OptionSpec::int(
        "inference-interval",
        (1, 1000, 1),
        "Frames 1, n+1, 2n+1 … are analysed, faces of the frames between are held; 1 = every frame",
    )
    .unit("frames")
    .env(&[
        env_of("openseeface", "STEP5_OPENSEEFACE_DETECT_EVERY_N"),
        env_of("eos", "STEP5_EOS_FIT_EVERY_N"),
        env_of("insightface", "STEP5_INSIGHTFACE_DETECT_EVERY_N"),
    ])
    .access(Access::Playing),
    OptionSpec::float(
        "max-fps",
        (0.0, 1000.0, 0.0),
        "Most frames a second of stream time that are analysed, faces of the frames between are held; 0 = no limit",
    )
    .unit("Hz")
    .access(Access::Playing),
    OptionSpec::bool(
        "predict",
        false,
        "Faces of frames that are not analysed move on as they moved between the last two that were, at most as long, and have the origin predicted; otherwise they are held where they were",
    )
    .access(Access::Playing),
    OptionSpec::choice(
        "late-frames",
        LateFrames::CHOICES,
        "Frames that come when the next one is due already, or that a sink can't show in time: no frame is dropped, and of a stream that is always late one in four is analysed, or a quarter of the time is spent on it",
    )
    .access(Access::Playing),
    OptionSpec::int(
        "threads",
        (1, 256, 1),
        "Threads that one network runs on",
    )
    .unit("threads")
    .env(&[env("STEP5_ONNX_INTRA_OP_THREADS")])
    .engines(NETWORKS),
    OptionSpec::text(
        "model",
        None,
        "Model file; unset = the engine's published model in models-dir or the usual folders; eos: its sfm_shape_3448.bin, beside which the other files of the model are looked for first; insightface: the folder of a pack, or its name, such as buffalo_l",
    )
    .env(&[
        env_of("opencv-haar", "STEP5_OPENCV_HAAR_CASCADE_PATH"),
        env_of("opencv-yunet", "STEP5_YUNET_MODEL_PATH"),
        env_of("eos", "STEP5_EOS_SFM_MODEL_PATH"),
        env_of("insightface", "STEP5_INSIGHTFACE_MODEL_NAME"),
    ])
    .engines(&[
        "mediapipe",
        "opencv-haar",
        "opencv-yunet",
        "eos",
        "insightface",
    ]),
    OptionSpec::text(
        "detector-model",
        None,
        "Model file of the face detector, for engines with several models; unset = the published one, as with model",
    )
    .env(&[
        env_of("opencv-yunet-pyfeat", "STEP5_YUNET_MODEL_PATH"),
        env_of("eos", "STEP5_YUNET_MODEL_PATH"),
        env_of("openseeface", "STEP5_OPENSEEFACE_DETECTION_MODEL_PATH"),
    ])
    .engines(&["opencv-yunet-pyfeat", "openseeface", "eos"]),
    OptionSpec::text(
        "landmark-model",
        None,
        "Model file of the landmarks, for engines with several models: a face_landmarker.task, or one of openseeface's lm_model*_opt.onnx, which -3…4 stand for; unset = the published one, as with model, of openseeface's the best that is there",
    )
    .env(&[
        env_of("opencv-yunet-pyfeat", "STEP5_FACEMESH_ONNX_PATH"),
        env_of("eos", "STEP5_FACEMESH_ONNX_PATH"),
        env_of("openseeface", "STEP5_OPENSEEFACE_LANDMARK_MODEL_PATH"),
        env_number_of("openseeface", "STEP5_OPENSEEFACE_MODEL_ID", (-3, 4)),
    ])
    .engines(&["opencv-yunet-pyfeat", "openseeface", "eos"]),
    OptionSpec::text(
        "gaze-model",
        None,
        "Model file of the gaze, for engines with several models; unset = the published one, as with model",
    )
    .engines(OPENSEEFACE),
    OptionSpec::text(
        "models-dir",
        None,
        "Folder to look for models in; unset = FACETRACK_MODELS_DIR, ~/.local/share/facetrack/models, then /usr/local/share and /usr/share; for insightface's packs also INSIGHTFACE_HOME/models and ~/.insightface/models",
    )
    .env(&[
        env_of("openseeface", "STEP5_OPENSEEFACE_MODELS_DIR"),
        env_of("eos", "STEP5_EOS_MODELS_DIR"),
    ])
    .engines(MODELS),
    OptionSpec::text(
        "onnxruntime",
        None,
        "Path of libonnxruntime.so; unset = FACETRACK_ONNXRUNTIME, ORT_DYLIB_PATH, ~/.local/share/facetrack/runtime, then /usr/local/share and /usr/share, then the system's loader",
    )
    .engines(NETWORKS),
    OptionSpec::text(
        "script",
        None,
        "What the scripted engine sees, such as `face x=0.3 dx=0.01 from=10 to=50; landmarks`; unset = one moving face",
    )
    .engines(&["scripted"]),
    OptionSpec::choice(
        "tracker",
        TrackerKind::CHOICES,
        "How a face keeps its id from frame to frame",
    ),
    OptionSpec::float(
        "max-distance",
        (0.0, 100_000.0, 80.0),
        "Greatest way of a face's centre between two frames of one id",
    )
    .unit("px"),
    OptionSpec::int(
        "max-age",
        (0, 100_000, 7),
        "Analysed frames that an id survives without its face; frames that are held do not count",
    )
    .unit("frames"),
    OptionSpec::choice(
        "device",
        DeviceChoice::CHOICES,
        "Where networks run: insightface on a GPU, and without one on the processor if gpu-fallback lets it; other engines on the processor whatever is set. Where it is not set, TRACKING_DISABLE_GPU, STEP5_ENABLE_GPU and STEP5_GPU_ENGINES may forbid the GPU",
    ),
    OptionSpec::int(
        "gpu-id",
        (-1, 63, -1),
        "CUDA device; -1 = the one with the most free memory, but -1 in the environment is the processor, as InsightFace has it",
    )
    .env(&[env_of("insightface", "STEP5_INSIGHTFACE_CTX_ID")])
    .engines(INSIGHTFACE),
    OptionSpec::bool(
        "gpu-fallback",
        true,
        "Run on the processor when the GPU was wanted but is not to be had",
    )
    .env(&[env("STEP5_GPU_FALLBACK_AUTO")])
    .engines(INSIGHTFACE),
    OptionSpec::int(
        "gpu-max-vram",
        (1, 1_048_576, 2048),
        "Greatest GPU memory that the runtime may take",
    )
    .unit("MiB")
    .env(&[env("STEP5_GPU_MAX_VRAM_MB")])
    .engines(INSIGHTFACE),
    OptionSpec::int(
        "gpu-min-free-vram",
        (0, 1_048_576, 1536),
        "A GPU with less free memory counts as not available",
    )
    .unit("MiB")
    .engines(INSIGHTFACE),
    OptionSpec::text(
        "cuda-lib-path",
        None,
        "Folder with CUDA's libraries, or of a Python environment with NVIDIA's packages: looked in before those of the variable, by colons, the toolkits of STEP5_CUDA_HOME and CUDA_HOME, the loader's path and /usr/local/cuda*",
    )
    .env(&[env_of("insightface", "STEP5_CUDA_LIB_PATH")])
    .engines(INSIGHTFACE),
    OptionSpec::int(
        "warm-up-runs",
        (0, 1000, 3),
        "Runs on the GPU before the first frame, so that it does not wait for what the first run sets up",
    )
    .unit("runs")
    .engines(INSIGHTFACE),
    OptionSpec::choice(
        "cudnn-conv-algo-search",
        ConvAlgorithmSearch::CHOICES,
        "How cuDNN chooses among its convolutions",
    )
    .engines(INSIGHTFACE),
    OptionSpec::bool(
        "tf32",
        true,
        "Multiply with 10 bits of mantissa on Ampere and newer, which is faster; TensorRT decides by itself",
    )
    .engines(INSIGHTFACE),
    OptionSpec::bool(
        "deterministic",
        false,
        "The same result in every run on the GPU: fixed convolutions, no TF32, slower; not with tensorrt",
    )
    .engines(INSIGHTFACE),
    OptionSpec::bool(
        "arena-shrinkage",
        false,
        "Give GPU memory back after each run, slower; not what a CUDA graph knows",
    )
    .engines(INSIGHTFACE),
    OptionSpec::bool(
        "pinned-io",
        false,
        "Copy to and from the GPU through page-locked memory that is bound once",
    )
    .engines(INSIGHTFACE),
    OptionSpec::bool(
        "cuda-graph",
        false,
        "Record the detector's run as a CUDA graph and replay it; not with tensorrt",
    )
    .engines(INSIGHTFACE),
    OptionSpec::bool(
        "tensorrt",
        false,
        "Run networks with TensorRT on the same GPU, which builds its engines at each start: slow to start",
    )
    .engines(INSIGHTFACE),
    OptionSpec::bool(
        "fp16",
        false,
        "On the GPU run the networks that the pack has in half precision as well in that; with tensorrt, whatever is faster in it",
    )
    .engines(INSIGHTFACE),
    OptionSpec::choice(
        "post-messages",
        PostMessages::CHOICES,
        "Element messages on the bus",
    )
    .access(Access::Playing),
    OptionSpec::int(
        "profile-interval",
        (0, i32::MAX, 0),
        "Log the time of each stage every n frames; 0 = never",
    )
    .unit("frames")
    .env(&[
        env_switch("STEP5_ENABLE_PROFILING", PROFILE_INTERVAL_BY_ENVIRONMENT),
        env_switch("STEP5_GPU_PROFILING", PROFILE_INTERVAL_BY_ENVIRONMENT),
    ])
    .access(Access::Playing),
    OptionSpec::structure(
        "stats",
        "Time of each stage: count, and mean, p50, p95 in ms; latency that the element adds in a live pipeline in ms; on a GPU also vram, the process's memory there in MiB",
    ),
    OptionSpec::text("active-device", None, "Device in use: cpu, or cuda:<index>; empty before READY")
        .access(Access::ReadOnly),
    OptionSpec::text(
        "active-execution-provider",
        None,
        "Execution provider in use, empty before READY",
    )
    .access(Access::ReadOnly),
    OptionSpec::text("device-reason", None, "Why that device is in use")
        .access(Access::ReadOnly),
    OptionSpec::structure(
        "capabilities",
        "What the chosen engine measures: landmark scheme and count, key points, blendshape channels and whether they are measured or derived, pose, gaze, features, attributes, length of the embedding, and whether frames depend on one another; of the engine's original models until they are loaded, of those that are there then",
    ),
];
