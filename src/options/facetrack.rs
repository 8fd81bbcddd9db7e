// SPDX-License-Identifier: MPL-2.0
//! Options of the element `facetrack`.

use std::path::PathBuf;

use serde_json::{Map, Value};
use smart_default::SmartDefault;

use super::field::*;
use super::row::{engines_with, names};
use super::{Defaults, Environment, Options, named_values};
use facetrack::analyzer::Tuning;
use facetrack::device::{ConvAlgorithmSearch, DeviceChoice, MAX_VRAM, MIN_FREE_VRAM, Request};
use facetrack::engine::{
    self, EngineConfig, EngineKind, Identity, PnpPoints, RunningMode, Setting,
};
use facetrack::schedule::{LateFrames, ScheduleSettings};
use facetrack::selection::Select;
use facetrack::smoothing::OneEuro;
use facetrack::tracker::{TrackerConfig, TrackerKind};

choice_field! {
    /// Smoothing of landmarks over time.
    pub(crate) enum Smoothing, "GstFaceTrackSmoothing" {
        Native = "native": "as the original of the engine: mediapipe smooths only in video mode with max-faces=1",
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

facetrack::late_frames_words!(enum_field, "GstFaceTrackLateFrames");
facetrack::running_mode_words!(enum_field, "GstFaceTrackRunningMode");
facetrack::pnp_points_words!(enum_field, "GstFaceTrackPnpPoints");
facetrack::identity_words!(enum_field, "GstFaceTrackIdentity");
facetrack::tracker_words!(enum_field, "GstFaceTrackTracker");
facetrack::select_words!(enum_field, "GstFaceTrackSelect");
facetrack::device_words!(enum_field, "GstFaceTrackDevice");
facetrack::conv_algorithm_search_words!(enum_field, "GstFaceTrackConvAlgorithmSearch");

/// A device that is set differs from the default: it overrides the environment.
impl Field for Option<DeviceChoice> {
    fn value(&self) -> glib::Value {
        self.unwrap_or_default().value()
    }

    fn set_value(&mut self, value: &glib::Value) {
        self.insert(DeviceChoice::default()).set_value(value);
    }

    fn param_spec(&self, description: &Description) -> glib::ParamSpec {
        self.unwrap_or_default().param_spec(description)
    }
}

/// Settings of the element. Those that the domain has another form for are converted when an
/// engine is loaded.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub(crate) struct FaceTrackSettings {
    #[default(EngineKind::default().name().to_owned())]
    pub engine: String,
    pub config: EngineConfig,
    /// 0 for no limit, unlike in `config`.
    pub detect_max_width: u32,
    /// A list.
    pub allowed_modules: Option<String>,
    pub calibration_file: Option<PathBuf>,
    pub neutral_file: Option<PathBuf>,
    /// Without `smoothing`.
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
    /// Without the fields that are below.
    pub request: Request,
    /// CUDA device; -1 for any, `None` if it is not set.
    pub gpu_id: Option<i32>,
    /// MiB.
    #[default(mebibytes(MAX_VRAM))]
    pub gpu_max_vram: u32,
    /// MiB.
    #[default(mebibytes(MIN_FREE_VRAM))]
    pub gpu_min_free_vram: u32,
    pub cuda_lib_path: Option<PathBuf>,
}

fn mebibytes(bytes: u64) -> u32 {
    (bytes >> 20) as u32
}

impl Defaults for FaceTrackSettings {
    const ROWS: &'static [Row] = ROWS;
    const ELEMENT: &'static str = "facetrack";

    fn of_engine(kind: EngineKind) -> Self {
        let entry = kind.entry();
        Self {
            engine: entry.name.to_owned(),
            config: EngineConfig::of(kind),
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

type Row = super::Row<FaceTrackSettings>;

/// All options, in the order of the documentation.
const ROWS: &[Row] = &[
    Row::playing("engine", |s| &mut s.engine)
        .blurb("Engine that finds faces: mediapipe, opencv-haar, opencv-yunet, opencv-yunet-pyfeat, openseeface, eos, insightface or scripted. A new engine is loaded in the background while frames flow")
        .checked(|name| {
            let kind = name.parse::<EngineKind>();
            kind.map(|_| ()).map_err(|error| error.to_string())
        }),
    Row::new("running-mode", |s| &mut s.config.running_mode)
        .blurb("Whether frames follow one another or are independent")
        .of(Setting::RunningMode),
    Row::new("max-faces", |s| &mut s.config.max_faces)
        .blurb("Maximum number of faces; 0 = default of the engine: 5 (mediapipe), 1 (openseeface), no limit (others)")
        .range(0.0, 100.0, "faces"),
    Row::playing("detection-confidence", |s| {
        &mut s.tuning.thresholds.detection
    })
    .blurb("Minimum confidence of a detected face")
    .range(0.0, 1.0, "")
    .of(Setting::Detection),
    Row::playing("presence-confidence", |s| &mut s.tuning.thresholds.presence)
        .blurb("Minimum confidence of the landmark network that a face is present; below it, opencv-yunet-pyfeat and eos report the face without landmarks; use 0.87 for models -1, -2 and -3 of openseeface")
        .range(0.0, 1.0, "")
        .of(Setting::Presence),
    Row::playing("tracking-confidence", |s| &mut s.tuning.thresholds.tracking)
        .blurb("Minimum overlap (IoU) of a detection with a tracked face to count as the same face, in video mode")
        .range(0.0, 1.0, "")
        .of(Setting::Overlap),
    Row::new("nms-threshold", |s| &mut s.config.nms_threshold)
        .blurb("Maximum overlap (IoU) of two detected faces")
        .range(0.0, 1.0, "")
        .of(Setting::Suppression),
    Row::new("detect-max-width", |s| &mut s.detect_max_width)
        .blurb("Maximum width of the detector's input: wider frames are scaled down for the detector; 0 = no limit")
        .range(0.0, 16384.0, "px")
        .of(Setting::Suppression),
    Row::new("det-size", |s| &mut s.config.pack.det_size)
        .blurb("Side of the square input of the detector, a multiple of 32. A larger side finds smaller faces and takes longer. It is reduced if GPU memory is low")
        .range(engine::DET_SIZE_STEP as f64, engine::MAX_DET_SIZE as f64, "px")
        .of(Setting::Pack),
    Row::new("allowed-modules", |s| &mut s.allowed_modules)
        .blurb("Networks of the pack to run, separated by commas or spaces: detection, which always runs, landmark_2d_106, landmark_3d_68, genderage, and recognition, which also needs embedding=true; unset = all")
        .checked(|list| engine::modules(list).map(|_| ()))
        .of(Setting::Pack),
    Row::new("embedding", |s| &mut s.config.pack.embedding)
        .blurb("Measure the embedding of each face, which identifies people. Storing or sending it may be subject to laws on biometric data")
        .of(Setting::Pack),
    Row::new("scale-factor", |s| &mut s.config.cascade.scale_factor)
        .blurb("Ratio of two successive face sizes in the search")
        .range(1.001, 100.0, "")
        .of(Setting::Cascade),
    Row::new("min-neighbors", |s| &mut s.config.cascade.min_neighbors)
        .blurb("Minimum number of overlapping detections that make a face; 0 = every detection is a face")
        .range(0.0, 1000.0, "")
        .of(Setting::Cascade),
    Row::new("min-size", |s| &mut s.config.cascade.min_size)
        .blurb("Minimum width and height of a face")
        .range(0.0, 16384.0, "px")
        .of(Setting::Cascade),
    Row::new("max-size", |s| &mut s.config.cascade.max_size)
        .blurb("Maximum width and height of a face; 0 = no limit")
        .range(0.0, 16384.0, "px")
        .of(Setting::Cascade),
    Row::new("scan-every", |s| &mut s.config.tracking.scan_every)
        .blurb("Interval between searches for more faces while fewer than max-faces are tracked")
        .range(1.0, 1000.0, "frames")
        .of(Setting::Tracking),
    Row::new("discard-after", |s| &mut s.config.tracking.discard_after)
        .blurb("Number of frames to search for a lost face at its last position; 0 = none")
        .range(0.0, 1000.0, "frames")
        .of(Setting::Tracking),
    Row::new("gaze", |s| &mut s.config.tracking.gaze)
        .blurb("Measure the positions of the pupils")
        .of(Setting::Tracking),
    Row::new("pnp-points", |s| &mut s.config.tracking.pnp_points)
        .blurb("Points of the 3-D face model whose projections into the picture are reported")
        .of(Setting::Tracking),
    Row::new("calibration-time", |s| {
        &mut s.config.tracking.calibration_time
    })
    .blurb("Time, counted from the first frame of a face, during which its range of expression is learned; 0 = no limit")
    .range(0.0, 1_000_000.0, "s")
    .of(Setting::Tracking),
    Row::new("calibration-file", |s| &mut s.calibration_file)
        .blurb("File that stores the learned range of expression of each face. It is read at the start if it exists, and written at the end of the stream. The action signal reset-calibration discards what was learned; unset = no file")
        .of(Setting::Calibration),
    Row::new("identity", |s| &mut s.config.morphable.identity)
        .blurb("Frames that the shape of a face is fitted to; running-mode=image always uses per-frame")
        .of(Setting::Morphable),
    Row::new("mesh", |s| &mut s.config.morphable.mesh)
        .blurb("Attach every vertex of the fitted mesh to the metadata")
        .of(Setting::Morphable),
    Row::new("jaw-open-scale", |s| &mut s.config.jaw_open_scale)
        .blurb("Factor for the blendshape jawOpen, which is derived from landmarks")
        .range(0.0, 1000.0, "")
        .of(Setting::JawOpen),
    Row::playing("smoothing", |s| &mut s.smoothing)
        .blurb("Smoothing of landmarks over time")
        .of(Setting::Landmarks),
    Row::playing("smoothing-min-cutoff", |s| &mut s.one_euro.min_cutoff)
        .blurb("Minimum cutoff frequency of the One-Euro filter; a lower value smooths a still face more")
        .range(0.0001, 1000.0, "Hz")
        .of(Setting::Landmarks),
    Row::playing("smoothing-beta", |s| &mut s.one_euro.beta)
        .blurb("Speed coefficient of the One-Euro filter: increase of the cutoff frequency in Hz at a speed of one face size per second; a higher value follows motion faster")
        .range(0.0, 100_000.0, "")
        .of(Setting::Landmarks),
    Row::playing("smoothing-derivate-cutoff", |s| {
        &mut s.one_euro.derivative_cutoff
    })
    .blurb("Cutoff frequency of the speed in the One-Euro filter")
    .range(0.0001, 1000.0, "Hz")
    .of(Setting::Landmarks),
    Row::playing("blendshape-interval", |s| &mut s.tuning.blendshape_interval)
        .blurb("Interval at which the blendshapes of a face are measured; they are repeated in between; 1 = every frame; 0 = never, which saves the time")
        .range(0.0, 1000.0, "frames")
        .of(Setting::Landmarks),
    Row::playing("neutral-time", |s| &mut s.tuning.neutral_time)
        .blurb("Time for which each new face is at rest. Afterwards, the medians of its blendshapes are subtracted. The remaining range is scaled to 0…1. 0 = learn nothing from new faces")
        .range(0.0, 60.0, "s")
        .of(Setting::Landmarks),
    Row::new("neutral-file", |s| &mut s.neutral_file)
        .blurb("JSON file with the blendshapes of a face at rest, by name, which are subtracted as with neutral-time. It is read at the start if it exists, and used for faces without rest values of their own. If rest values are learned, the last ones are used instead, and written at the end of the stream; unset = no file")
        .of(Setting::Landmarks),
    Row::playing("inference-interval", |s| &mut s.schedule.inference_interval)
        .blurb("Interval at which frames are analysed; faces are held in between; 1 = every frame")
        .range(1.0, 1000.0, "frames"),
    Row::playing("max-fps", |s| &mut s.schedule.max_fps)
        .blurb("Maximum number of frames to analyse per second of stream time; faces are held in between; 0 = no limit")
        .range(0.0, 1000.0, "Hz"),
    Row::playing("predict", |s| &mut s.tuning.predict)
        .blurb("Move faces in frames that are not analysed, with the velocity between the last two analysed frames, and for at most the time between these two; false = hold them in place"),
    Row::playing("late-frames", |s| &mut s.schedule.late_frames)
        .blurb("Handling of frames that arrive after the next frame is due, or that a sink cannot show in time. No frame is dropped. If a stream is always late, one frame in four is analysed, or a quarter of the time is used for analysis"),
    Row::new("workers", |s| &mut s.workers)
        .blurb("Number of frames to analyse at once, for opencv-haar, opencv-yunet, opencv-yunet-pyfeat, eos, insightface on the CPU, and the others with running-mode=image; 1 = one after the other; 0 = one per CPU core. The results are the same. Frames leave in order, but are delayed, so use 1 for live video")
        .range(0.0, 256.0, "frames")
        .neutral(),
    Row::new("threads", |s| &mut s.config.threads)
        .blurb("Number of threads that analyse a frame: each measures a face; in opencv-yunet, opencv-yunet-pyfeat, eos and insightface all of them run the detector. Use workers for more frames at once")
        .range(1.0, 256.0, "threads")
        .of(Setting::Networks)
        .neutral(),
    Row::new("model", |s| &mut s.config.model)
        .blurb("Model file; unset = the published model of the engine in models-dir or the default folders; eos: its sfm_shape_3448.bin, whose folder is searched for the other files first; insightface: folder or name of a pack, such as buffalo_l")
        .of(Setting::Model)
        .neutral(),
    Row::new("detector-model", |s| &mut s.config.detector_model)
        .blurb("Model file of the face detector, for engines with several models; unset = the published model, as with model")
        .of(Setting::ModelParts)
        .neutral(),
    Row::new("landmark-model", |s| &mut s.config.landmark_model)
        .blurb("Model file of the landmarks, for engines with several models: a face_landmarker.task; openseeface: a lm_model*_opt.onnx or its number from -3 to 4; unset = the published model, as with model, and the best available one of openseeface")
        .of(Setting::ModelParts)
        .neutral(),
    Row::new("gaze-model", |s| &mut s.config.gaze_model)
        .blurb("Model file of the gaze, for engines with several models; unset = the published model, as with model")
        .of(Setting::GazeModel)
        .neutral(),
    Row::new("models-dir", |s| &mut s.config.paths.models_dir)
        .blurb("Folder to search for models; unset = FACETRACK_MODELS_DIR, ~/.local/share/facetrack/models, then /usr/local/share and /usr/share; insightface: also INSIGHTFACE_HOME/models and ~/.insightface/models")
        .of(Setting::Models)
        .neutral(),
    Row::new("onnxruntime", |s| &mut s.config.paths.runtime)
        .blurb("Path of libonnxruntime.so, whose code is loaded into the process: a library that every user can replace is refused; unset = FACETRACK_ONNXRUNTIME, ORT_DYLIB_PATH, ~/.local/share/facetrack/runtime, then /usr/local/share and /usr/share, then the system's loader")
        .of(Setting::Networks)
        .neutral(),
    Row::new("script", |s| &mut s.config.script)
        .blurb("Faces of the engine scripted, such as `face x=0.3 dx=0.01 from=10 to=50; landmarks`; unset = one moving face")
        .of(Setting::Script),
    Row::new("tracker", |s| &mut s.tracker.kind)
        .blurb("Method that assigns ids to faces from frame to frame"),
    Row::new("max-distance", |s| &mut s.tracker.max_distance)
        .blurb("Maximum distance that a face centre may move between two frames and keep its id")
        .range(0.0, 100_000.0, "px"),
    Row::new("max-age", |s| &mut s.tracker.max_age)
        .blurb("Number of analysed frames for which an id is kept without its face")
        .range(0.0, 100_000.0, "frames"),
    Row::playing("select", |s| &mut s.tuning.selection.select)
        .blurb("Faces to complete and report. One face is followed until its id ends; with largest and center, another one replaces it if it is clearly better for 2 s. With max-faces=1, which is the default of openseeface, the engine sees one face only, and there is nothing to select: set max-faces=2 or more"),
    Row::playing("select-id", |s| &mut s.tuning.selection.id)
        .blurb("Id of the face that select=id reports")
        .range(1.0, i32::MAX as f64, ""),
    Row::new("device", |s| &mut s.request.device)
        .blurb("Device for the networks, for engines that can use a GPU; other engines always run on the CPU. An engine that can use a GPU runs on the CPU only if gpu-fallback is true and no usable GPU is found"),
    Row::new("gpu-id", |s| &mut s.gpu_id)
        .blurb("CUDA device; -1 = the device with the most free memory")
        .range(-1.0, 63.0, "")
        .of(Setting::Gpu)
        .neutral(),
    Row::new("gpu-fallback", |s| &mut s.request.fallback)
        .blurb("Fall back to the CPU if no usable GPU is found")
        .of(Setting::Gpu)
        .neutral(),
    Row::new("gpu-max-vram", |s| &mut s.gpu_max_vram)
        .blurb("Maximum GPU memory that ONNX Runtime may use")
        .range(1.0, 1_048_576.0, "MiB")
        .of(Setting::Gpu)
        .neutral(),
    Row::new("gpu-min-free-vram", |s| &mut s.gpu_min_free_vram)
        .blurb("Minimum free memory of a usable GPU")
        .range(0.0, 1_048_576.0, "MiB")
        .of(Setting::Gpu)
        .neutral(),
    Row::new("cuda-lib-path", |s| &mut s.cuda_lib_path)
        .blurb("Folder with the CUDA libraries, whose code is loaded into the process, or with a Python environment that has NVIDIA's packages. A library that every user can replace is refused. The folder is searched first, before CUDA_HOME, the loader's path and /usr/local/cuda*")
        .of(Setting::Gpu)
        .neutral(),
    Row::new("warm-up-runs", |s| &mut s.request.tuning.warm_up_runs)
        .blurb("Number of runs on the GPU before the first frame, so that the first frame is not delayed by the setup")
        .range(0.0, 1000.0, "runs")
        .of(Setting::Gpu)
        .neutral(),
    Row::new("cudnn-conv-algo-search", |s| {
        &mut s.request.tuning.conv_algorithm_search
    })
    .blurb("Choice of cuDNN's convolution algorithms")
    .of(Setting::Gpu),
    Row::new("tf32", |s| &mut s.request.tuning.tf32)
        .blurb("Use TF32, a 10-bit mantissa, for multiplications on Ampere and newer GPUs: less exact landmarks; no effect with tensorrt")
        .of(Setting::Gpu),
    Row::new("deterministic", |s| &mut s.request.tuning.deterministic)
        .blurb("Give the same result in every run on the GPU, with fixed convolution algorithms and without TF32; slower; not with tensorrt")
        .of(Setting::Gpu),
    Row::new("arena-shrinkage", |s| &mut s.request.tuning.arena_shrinkage)
        .blurb("Release GPU memory after each run, slower; no effect with cuda-graph")
        .of(Setting::Gpu)
        .neutral(),
    Row::new("pinned-io", |s| &mut s.request.tuning.pinned_io)
        .blurb("Copy to and from the GPU through page-locked memory that is bound once")
        .of(Setting::Gpu)
        .neutral(),
    Row::new("cuda-graph", |s| &mut s.request.tuning.cuda_graph)
        .blurb("Record a run of the detector as a CUDA graph and replay it; not with tensorrt")
        .of(Setting::Gpu),
    Row::new("tensorrt", |s| &mut s.request.tuning.tensorrt)
        .blurb("Run networks with TensorRT on the same GPU. Its engines are built at each start, which takes long")
        .of(Setting::Gpu),
    Row::new("fp16", |s| &mut s.request.tuning.fp16)
        .blurb("Run networks in half precision on the GPU if the pack has them in half precision; with tensorrt, wherever it is faster")
        .of(Setting::Gpu),
    Row::playing("post-messages", |s| &mut s.post_messages).blurb("Element messages on the bus").neutral(),
    Row::playing("profile-interval", |s| &mut s.profile_interval)
        .blurb("Interval at which the time of each stage is logged; 0 = never")
        .range(0.0, i32::MAX as f64, "frames")
        .neutral(),
];

impl Options<FaceTrackSettings> {
    /// The options of the engine that results depend on, by name: as set, from the environment, or
    /// the default.
    pub fn effective(&self, engine: EngineKind, environment: &Environment) -> Map<String, Value> {
        let (settings, _) = self.resolve(Some(engine), environment);
        let is_used = |row: &&Row| {
            // The engine may have been set by an alias, and is known.
            row.name != "engine" && row.setting.is_none_or(|setting| engine.uses(setting))
        };
        named_values(ROWS.iter().filter(is_used), &settings)
    }

    /// The engine, if it was set explicitly.
    pub fn explicit_engine(&self) -> Option<&str> {
        let is_set = self.explicit_rows().any(|row| row.name == "engine");
        is_set.then_some(&self.settings.engine)
    }

    /// A warning of the options that were set and that `engine` does not use; `None` if there are
    /// none.
    pub fn unused(&self, engine: EngineKind) -> Option<String> {
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
