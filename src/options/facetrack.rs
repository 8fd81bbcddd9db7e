// SPDX-License-Identifier: MPL-2.0
//! Options of the element `facetrack`.

use std::path::PathBuf;

use serde_json::{Map, Value};
use smart_default::SmartDefault;

use super::field::*;
use super::row::{engines_with, names};
use super::{Defaults, Environment, Options, Row, named_values, rows};
use facetrack::analyzer::Tuning;
use facetrack::cuts::OnCut;
use facetrack::device::{ConvAlgorithmSearch, DeviceChoice, MAX_VRAM, MIN_FREE_VRAM, Request};
use facetrack::engine::{
    self, EngineConfig, EngineKind, Identity, PnpPoints, RunningMode, Setting,
};
use facetrack::gain::Gains;
use facetrack::model::RuntimeChoice;
use facetrack::schedule::{LateFrames, ScheduleSettings};
use facetrack::selection::Select;
use facetrack::smoothing::OneEuro;
use facetrack::tracker::{TrackerConfig, TrackerKind};

choice_field! {
    /// Smoothing of landmarks over time.
    pub(crate) enum Smoothing, "GstFaceTrackSmoothing" {
        Native = "native": "as the program that the engine reproduces: mediapipe smooths only in video mode with max-faces=1, the others do not smooth",
        Off = "off": "landmarks as measured",
        OneEuro = "one-euro": "a One-Euro filter per face, for any number of faces",
    }
}

choice_field! {
    /// Element messages on the bus.
    pub(crate) enum PostMessages, "GstFaceTrackPostMessages" {
        None = "none": "no messages",
        OnChange = "on-change": "when a face enters or leaves",
        EveryFrame = "every-frame": "for each frame, and when a face enters or leaves",
    }
}

facetrack::on_cut_words!(enum_field, "GstFaceTrackOnCut");
facetrack::late_frames_words!(enum_field, "GstFaceTrackLateFrames");
facetrack::runtime_words!(enum_field, "GstFaceTrackRuntime");
facetrack::running_mode_words!(enum_field, "GstFaceTrackRunningMode");
facetrack::pnp_points_words!(enum_field, "GstFaceTrackPnpPoints");
facetrack::identity_words!(enum_field, "GstFaceTrackIdentity");
facetrack::tracker_words!(enum_field, "GstFaceTrackTracker");
facetrack::select_words!(enum_field, "GstFaceTrackSelect");
facetrack::conv_algorithm_search_words!(enum_field, "GstFaceTrackConvAlgorithmSearch");

/// Settings of the element. Settings that have another form in the domain are converted when an
/// engine is loaded.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub(crate) struct FaceTrackSettings {
    #[default(EngineKind::default().name().to_owned())]
    pub engine: String,
    pub config: EngineConfig,
    /// Value that is used instead of the one in `config`, where `None` stands for the default of
    /// the engine.
    #[default(EngineKind::default().entry().nms_threshold)]
    pub nms_threshold: f32,
    /// Value that is used instead of the one in `config`, like `nms_threshold`.
    pub detect_max_width: u32,
    /// Modules, as a list.
    pub allowed_modules: Option<String>,
    pub calibration_file: Option<PathBuf>,
    pub neutral_file: Option<PathBuf>,
    /// Gains, as a list.
    pub gains: Option<String>,
    /// Tuning without `smoothing` and gains.
    pub tuning: Tuning,
    pub smoothing: Smoothing,
    pub one_euro: OneEuro,
    pub tracker: TrackerConfig,
    pub schedule: ScheduleSettings,
    /// Frames to analyse at once; 0 for one per core.
    #[default(1)]
    pub workers: u32,
    pub post_messages: PostMessages,
    /// Frames between two lines in the log; 0 for none.
    pub profile_interval: u32,
    /// Request without the fields below.
    pub request: Request,
    /// A device that is set overrides the environment.
    pub device: Option<String>,
    /// CUDA device; -1 for any, `None` if it is not set.
    pub gpu_id: Option<i32>,
    /// Memory, MiB.
    #[default(mebibytes(MAX_VRAM))]
    pub gpu_max_vram: u32,
    /// Memory, MiB.
    #[default(mebibytes(MIN_FREE_VRAM))]
    pub gpu_min_free_vram: u32,
    pub cuda_lib_path: Option<PathBuf>,
}

fn mebibytes(bytes: u64) -> u32 {
    (bytes >> 20) as u32
}

impl Defaults for FaceTrackSettings {
    const ELEMENT: &'static str = "facetrack";

    const TAKES_EFFECT: &'static str =
        "when the element next goes from READY to PAUSED, or another engine is loaded";

    fn check(&self) -> Result<(), String> {
        let gains = self.gains();
        gains.map_or_else(
            |reason| Err(format!("`blendshape-gain`: {reason}")),
            |_| Ok(()),
        )
    }

    /// Rows in the order of the documentation.
    const ROWS: &'static [Row<Self>] = rows![
        "engine": engine, playing, checked(check_engine) =>
            "Engine: mediapipe, opencv-haar, opencv-yunet, opencv-yunet-pyfeat, openseeface, eos, insightface or scripted",
        "running-mode": config.running_mode, of(Setting::RunningMode) =>
            "Whether frames follow one another or are independent",
        "max-faces": config.max_faces, range(0.0, 100.0, "faces") =>
            "Maximum number of faces; 0 = default of the engine: 5 (mediapipe), 1 (openseeface), no limit (others)",
        "detection-confidence": tuning.thresholds.detection, playing, range(0.0, 1.0, ""),
            of(Setting::Detection) =>
            "Minimum confidence of a detected face",
        "presence-confidence": tuning.thresholds.presence, playing, range(0.0, 1.0, ""),
            of(Setting::Presence) =>
            "Minimum confidence of the landmark network that a face is present",
        "tracking-confidence": tuning.thresholds.tracking, playing, range(0.0, 1.0, ""),
            of(Setting::Overlap) =>
            "Minimum overlap (IoU) of a detection with a tracked face to count as the same face, in video mode",
        "nms-threshold": nms_threshold, range(0.0, 1.0, ""), of(Setting::Suppression) =>
            "Maximum overlap (IoU) of two detected faces",
        "detect-max-width": detect_max_width, range(0.0, 16384.0, "px"), of(Setting::Suppression) =>
            "Maximum width of the detector's input: wider frames are scaled down for the detector; 0 = no limit",
        "det-size": config.insightface.det_size,
            range(0.0, engine::MAX_DET_SIZE as f64, "px"), of(Setting::InsightFace) =>
            "Side of the square input of the detector, a multiple of 32; 0 = inputs of 128 and 640",
        "allowed-modules": allowed_modules, of(Setting::InsightFace),
            checked(|list| engine::modules(list).map(|_| ())) =>
            "Networks of the pack to run: landmark_2d_106, landmark_3d_68, genderage, recognition; unset = all",
        "embedding": config.insightface.embedding, of(Setting::InsightFace) =>
            "Measure the embedding of each face, which identifies people",
        "scale-factor": config.opencv_haar.scale_factor, range(1.001, 100.0, ""),
            of(Setting::OpenCvHaar) =>
            "Ratio of two successive face sizes in the search",
        "min-neighbors": config.opencv_haar.min_neighbors, range(0.0, 1000.0, ""),
            of(Setting::OpenCvHaar) =>
            "Minimum number of overlapping detections that make a face; 0 = every detection is a face",
        "min-size": config.opencv_haar.min_size, range(0.0, 16384.0, "px"), of(Setting::OpenCvHaar) =>
            "Minimum width and height of a face",
        "max-size": config.opencv_haar.max_size, range(0.0, 16384.0, "px"), of(Setting::OpenCvHaar) =>
            "Maximum width and height of a face; 0 = no limit",
        "scan-every": config.openseeface.scan_every, range(1.0, 1000.0, "frames"),
            of(Setting::OpenSeeFace) =>
            "Interval between searches for more faces while fewer than max-faces are tracked",
        "discard-after": config.openseeface.discard_after, range(0.0, 1000.0, "frames"),
            of(Setting::OpenSeeFace) =>
            "Number of frames to search for a lost face at its last position; 0 = none",
        "gaze": config.openseeface.gaze, of(Setting::OpenSeeFace) => "Measure the positions of the pupils",
        "pnp-points": config.openseeface.pnp_points, of(Setting::OpenSeeFace) =>
            "Points of the 3-D face model whose projections into the picture are reported",
        "calibration-time": config.openseeface.calibration_time, range(0.0, 1_000_000.0, "s"),
            of(Setting::OpenSeeFace) =>
            "Time, counted from the first frame of a face, during which its range of expression is learned; 0 = no limit",
        "calibration-file": calibration_file, of(Setting::Calibration) =>
            "File that stores the learned range of expression of each face; unset = no file",
        "identity": config.eos.identity, of(Setting::Eos) =>
            "Frames that the shape of a face is fitted to; running-mode=image always uses per-frame",
        "mesh": config.eos.mesh, of(Setting::Eos) =>
            "Attach every vertex of the fitted mesh to the metadata",
        "jaw-open-scale": config.jaw_open_scale, range(0.0, 1000.0, ""), of(Setting::JawOpen) =>
            "Factor for the blendshape jawOpen, which is derived from landmarks",
        "smoothing": smoothing, playing, of(Setting::Landmarks) => "Smoothing of landmarks over time",
        "smoothing-min-cutoff": one_euro.min_cutoff, playing, range(0.0001, 1000.0, "Hz"),
            of(Setting::Landmarks) =>
            "Minimum cutoff frequency of the One-Euro filter; a lower value smooths a still face more",
        "smoothing-beta": one_euro.beta, playing, range(0.0, 100_000.0, ""),
            of(Setting::Landmarks) =>
            "Speed coefficient of the One-Euro filter; a higher value follows motion faster",
        "smoothing-derivate-cutoff": one_euro.derivative_cutoff, playing,
            range(0.0001, 1000.0, "Hz"), of(Setting::Landmarks) =>
            "Cutoff frequency of the speed in the One-Euro filter",
        "blendshape-interval": tuning.blendshape_interval, playing, range(0.0, 1000.0, "frames"),
            of(Setting::Landmarks) =>
            "Interval at which the blendshapes of a face are measured; 1 = every frame; 0 = never",
        "neutral-time": tuning.neutral.time, playing, range(0.0, 60.0, "s"),
            of(Setting::Landmarks) =>
            "Time from the first frame of a face during which its rest values are learned; 0 = none are learned",
        "neutral-keep": tuning.neutral.keep, playing, of(Setting::Landmarks) =>
            "Keep the rest values of a face while it is away",
        "neutral-file": neutral_file, of(Setting::Landmarks) =>
            "JSON file with the blendshapes of a face at rest; unset = no file",
        "blendshape-gain": gains, playing, of(Setting::Landmarks),
            checked(|list| list.parse::<Gains>().map(|_| ())) =>
            "Factors for blendshapes, from 0 to 10, such as jawOpen=1.5,browInnerUp=0.8; unset = 1 for each",
        "inference-interval": schedule.inference_interval, playing, range(1.0, 1000.0, "frames") =>
            "Interval at which frames are analysed; faces are held in between; 1 = every frame",
        "max-fps": schedule.max_fps, playing, range(0.0, 1000.0, "Hz") =>
            "Maximum number of frames to analyse per second of stream time; faces are held in between; 0 = no limit",
        "predict": tuning.predict, playing =>
            "Move faces in frames that are not analysed; false = hold them in place",
        "late-frames": schedule.late_frames, playing =>
            "Handling of frames that arrive after the next frame is due, or that a sink cannot show in time",
        "workers": workers, range(0.0, 256.0, "frames"), cosmetic =>
            "Number of frames to analyse at once; 0 = one per CPU core. The results are the same",
        "threads": config.threads, range(1.0, 256.0, "threads"), of(Setting::Networks), cosmetic =>
            "Number of threads that analyse a frame",
        "model": config.model, of(Setting::Model), cosmetic =>
            "Model file, for insightface a pack; unset = the published model of the engine",
        "detector-model": config.detector_model, of(Setting::ModelParts), cosmetic =>
            "Model file of the face detector; unset = the published model",
        "landmark-model": config.landmark_model, of(Setting::ModelParts), cosmetic =>
            "Model file of the landmarks, or a number of openseeface's models; unset = the published model",
        "gaze-model": config.gaze_model, of(Setting::GazeModel), cosmetic =>
            "Model file of the gaze; unset = the published model",
        "models-dir": config.paths.models_dir, of(Setting::Models), cosmetic =>
            "Folder to search for models before FACETRACK_MODELS_DIR and the default folders",
        "runtime": config.runtime, of(Setting::Networks) =>
            "Runtime of the networks on the CPU; ONNX Runtime is loaded only when a network needs it",
        "onnxruntime": config.paths.runtime, of(Setting::Networks), cosmetic =>
            "Path of libonnxruntime.so; unset = FACETRACK_ONNXRUNTIME, ORT_DYLIB_PATH and the default folders",
        "script": config.script, of(Setting::Script) =>
            "Faces of the engine scripted, such as `face x=0.3 dx=0.01 from=10 to=50; landmarks`; unset = one moving face",
        "tracker": tracker.kind => "Method that assigns ids to faces from frame to frame",
        "max-distance": tracker.max_distance, range(0.0, 100_000.0, "px") =>
            "Maximum distance of a face centre from its expected position; 0 = the size of the face",
        "max-age": tracker.max_age, range(0.0, 100_000.0, "frames") =>
            "Number of analysed frames, without repeated ones, for which an id is kept without its face",
        "on-cut": tuning.on_cut, playing =>
            "Handling of hard cuts between shots",
        "select": tuning.selection.select, playing =>
            "Faces that are measured in full and reported",
        "select-id": tuning.selection.id, playing, range(1.0, i32::MAX as f64, "") =>
            "Id of the face that select=id reports",
        "device": device, checked(|text| device(text).map(|_| ())) =>
            "Device for the networks: auto, cpu, cuda or cuda:0, …; only insightface can use a GPU; unset = auto",
        "gpu-id": gpu_id, range(-1.0, 63.0, ""), of(Setting::Gpu), cosmetic =>
            "CUDA device; -1 = the device with the most free memory",
        "gpu-fallback": request.fallback, of(Setting::Gpu), cosmetic =>
            "Fall back to the CPU if no usable GPU is found",
        "gpu-max-vram": gpu_max_vram, range(1.0, 1_048_576.0, "MiB"), of(Setting::Gpu), cosmetic =>
            "Maximum GPU memory that ONNX Runtime may use",
        "gpu-min-free-vram": gpu_min_free_vram, range(0.0, 1_048_576.0, "MiB"), of(Setting::Gpu),
            cosmetic =>
            "Minimum free memory of a usable GPU",
        "cuda-lib-path": cuda_lib_path, of(Setting::Gpu), cosmetic =>
            "Folder with the CUDA libraries, or with a Python environment that has NVIDIA's packages",
        "warm-up-runs": request.tuning.warm_up_runs, range(0.0, 1000.0, "runs"), of(Setting::Gpu),
            cosmetic =>
            "Number of runs on the GPU before the first frame, so that the first frame is not delayed by the setup",
        "cudnn-conv-algo-search": request.tuning.conv_algorithm_search, of(Setting::Gpu) =>
            "Choice of cuDNN's convolution algorithms",
        "tf32": request.tuning.tf32, of(Setting::Gpu) =>
            "Use TF32, a 10-bit mantissa, for multiplications on Ampere and newer GPUs: less exact landmarks; no effect with tensorrt",
        "deterministic": request.tuning.deterministic, of(Setting::Gpu) =>
            "Give the same result in every run on the GPU; slower; an error together with tensorrt",
        "arena-shrinkage": request.tuning.arena_shrinkage, of(Setting::Gpu), cosmetic =>
            "Release GPU memory after each run, slower; no effect with cuda-graph",
        "pinned-io": request.tuning.pinned_io, of(Setting::Gpu), cosmetic =>
            "Copy to and from the GPU through page-locked memory that is bound once",
        "cuda-graph": request.tuning.cuda_graph, of(Setting::Gpu) =>
            "Record the runs of the networks as CUDA graphs and replay them; no effect with tensorrt",
        "tensorrt": request.tuning.tensorrt, of(Setting::Gpu) =>
            "Run networks with TensorRT on the same GPU. Its engines are built at each start, which takes long",
        "fp16": request.tuning.fp16, of(Setting::Gpu) =>
            "Run networks in half precision on the GPU if the pack has them in half precision; with tensorrt, wherever it is faster",
        "post-messages": post_messages, playing, cosmetic => "Element messages on the bus",
        "profile-interval": profile_interval, playing, range(0.0, i32::MAX as f64, "frames"),
            cosmetic =>
            "Interval at which the time of each stage is logged; 0 = never",
    ];

    fn of_engine(kind: EngineKind) -> Self {
        let entry = kind.entry();
        Self {
            engine: entry.name.to_owned(),
            nms_threshold: entry.nms_threshold,
            detect_max_width: entry.detect_max_width as u32,
            tuning: Tuning {
                thresholds: entry.thresholds,
                ..Tuning::default()
            },
            ..Self::default()
        }
    }

    fn engine(&self) -> EngineKind {
        self.engine.parse().unwrap_or_default()
    }
}

/// The device that `text` names, and its number.
///
/// # Errors
/// Returns the expected words.
pub(crate) fn device(text: &str) -> Result<(DeviceChoice, Option<u32>), String> {
    let expected = || format!("expected auto, cpu, cuda or cuda:<number>, not {text:?}");
    DeviceChoice::parse(text).ok_or_else(expected)
}

impl FaceTrackSettings {
    /// The factors for blendshapes.
    ///
    /// # Errors
    /// Returns a description of an invalid list.
    pub(crate) fn gains(&self) -> Result<Gains, String> {
        self.gains.as_deref().unwrap_or_default().parse()
    }
}

fn check_engine(name: &str) -> Result<(), String> {
    let kind = name.parse::<EngineKind>();
    kind.map(|_| ()).map_err(|error| error.to_string())
}

impl Options<FaceTrackSettings> {
    /// The options of the engine that results depend on, by name: as set, from the environment, or
    /// the default.
    pub(crate) fn effective(
        &self,
        engine: EngineKind,
        environment: &Environment,
    ) -> Map<String, Value> {
        let (settings, _) = self.resolve(Some(engine), environment);
        let is_used = |row: &&Row<_>| {
            // The engine may have been set by an alias, and is known.
            row.name != "engine" && row.setting.is_none_or(|setting| engine.uses(setting))
        };
        named_values(FaceTrackSettings::ROWS.iter().filter(is_used), &settings)
    }

    /// The engine, if it was set explicitly.
    pub(crate) fn explicit_engine(&self) -> Option<&str> {
        let is_set = self.explicit_rows().any(|row| row.name == "engine");
        is_set.then_some(&self.settings.engine)
    }

    /// The options that were set explicitly and that results of `engine` depend on. Another engine
    /// may have been set in the meantime.
    pub(crate) fn explicit_with(&self, engine: EngineKind) -> Map<String, Value> {
        let mut options = self.explicit();
        if let Some(name) = options.get_mut("engine") {
            *name = engine.name().into();
        }
        options
    }

    /// Sets the engine explicitly.
    pub(crate) fn set_engine(&mut self, engine: EngineKind) {
        let is_engine = |row: &Row<_>| row.name == "engine";
        let index = FaceTrackSettings::ROWS.iter().position(is_engine);
        self.explicit.extend(index);
        engine.name().clone_into(&mut self.settings.engine);
    }

    /// A warning of the options that were set and that `engine` does not use; `None` if there are
    /// none.
    pub(crate) fn unused(&self, engine: EngineKind) -> Option<String> {
        let options = self.explicit_rows().filter_map(|row| {
            let setting = row.setting.filter(|setting| !engine.uses(*setting))?;
            let engines = names(&engines_with(setting));
            Some(format!("{} (for {engines})", row.name))
        });
        let options: Vec<_> = options.collect();
        (!options.is_empty()).then(|| {
            format!(
                "no effect with engine={}: {}. Set an engine that has these properties, or leave them unset",
                engine.name(),
                options.join("; ")
            )
        })
    }
}
