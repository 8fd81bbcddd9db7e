// SPDX-License-Identifier: MPL-2.0

/**
 * SECTION:element-facetrack
 *
 * facetrack finds faces in video, follows them, and attaches what it measures to each frame: a `FaceTrackMeta` with
 * everything, and a #GstVideoRegionOfInterestMeta of type `face` for each face. Pixels are read in the format that they
 * have and never changed or copied.
 *
 * Every raw format in system memory is read without a converter. HDR video is analysed without tone mapping, and alpha is
 * ignored. Frames with non-square pixels are analysed as they are displayed; coordinates are pixels of the frame in memory.
 *
 * Engines, by #GstFaceTrack:engine:
 *
 * * `mediapipe`: what Google's Face Landmarker measures: 478 landmarks, 52 blendshapes, head pose.
 * * `opencv-yunet`: boxes, scores and 5 key points of OpenCV's YuNet, of faces near and far.
 * * `opencv-yunet-pyfeat`: YuNet's faces, measured with MediaPipe's landmark and blendshape networks.
 * * `openseeface`: what OpenSeeFace measures: 66 landmarks, gaze, head pose and 14 features, and the blendshapes that follow
 *   from them.
 * * `eos`: a 3-D morphable model fitted to every face as eos does it: shape, expression, pose, 68 landmarks of the fitted
 *   mesh and, with #GstFaceTrack:mesh, all of its vertices. The model, which is the Surrey Face Model, is not for commercial
 *   use.
 * * `insightface`: what the networks of an InsightFace pack measure: boxes, 5 key points, 106 landmarks, 68 landmarks in
 *   space and pose, age and gender, and with #GstFaceTrack:embedding what identifies people. It is the one engine that may
 *   use an NVIDIA GPU. InsightFace's packs are for non-commercial research.
 * * `opencv-haar`: boxes of OpenCV's cascade classifier; needs no ONNX Runtime.
 * * `scripted`: faces by script, without a model.
 *
 * None of them needs OpenCV, MediaPipe, eos or Python. #GstFaceTrack:capabilities tells what is measured before the
 * element runs. Models and ONNX Runtime are opened when the element goes from NULL to READY, and nothing is downloaded:
 * what is missing is an error that names the path and the remedy. Options without a value of their own take their
 * default from the environment, read at the same time.
 *
 * In a live pipeline every frame passes, however slow the engine is: with #GstFaceTrack:late-frames a frame that comes when
 * the next one is due already, or of which a sink told with a QoS event that it can't be shown in time, is not analysed, and
 * its faces are those of the frame before, with the origin `held`; without any it has the status `skipped`. A frame that
 * follows none is analysed however late it is, and so is one without a timestamp, of which nobody knows. Of a stream that
 * is always late one frame in four is analysed, or a quarter of the time is spent on it. With #GstFaceTrack:predict faces of
 * frames that are not analysed move on as they did, with the origin `predicted`.
 * #GstFaceTrack:max-fps limits the load of a stream that is not late. What the analysis
 * takes is measured and added to the answer of the LATENCY query; when it changes, a latency message asks the pipeline to
 * query again. In other pipelines every frame is analysed. The property `qos` of the base class has no effect: it
 * would drop frames.
 *
 * #GstFaceTrack:engine may be set while frames flow. The new engine is loaded beside the stream, with the options as they
 * are then, and takes over between two frames; every face leaves, and ids go on. `facetrack-ready` tells when that is. An
 * engine that can't be loaded is a warning, and the one at work goes on.
 *
 * With #GstFaceTrack:post-messages the element posts element messages named `facetrack` with the fields `event`
 * (`face-entered`, `face-left`, `frame`), `pts`, `running-time`, and `id` of the face, or `status`, `faces` and `ids` of
 * the frame. A face leaves when its id ends: #GstFaceTrack:max-age analysed frames after it was last seen. When the engine is
 * loaded a message named `facetrack-ready` tells `engine`, `device`, `execution-provider`, `reason`, `load-time` in
 * milliseconds and the SHA-256 of each of the `models`.
 *
 * `openseeface` learns each face's range of expression. With #GstFaceTrack:calibration-file that is kept from stream to stream:
 * the file is read from NULL to READY, where there is one, and written at the end of the stream, from PAUSED to READY and
 * when the stream fails. A file that is damaged or can't be written is an error before the first frame; one that can't be
 * written any more is a warning. The action signal #GstFaceTrack::reset-calibration starts anew with the next frame.
 *
 * `eos` finds faces as `opencv-yunet-pyfeat` does. A face's shape is shared over its frames unless #GstFaceTrack:identity is
 * `per-frame`. A face that no model could be fitted to is reported with the reason, and with its landmarks as they were
 * measured.
 *
 * `insightface` wants a GPU. Where there is none that can be used it runs on the processor, with a warning that says what is
 * missing; without #GstFaceTrack:gpu-fallback that is an error. #GstFaceTrack:active-device and
 * #GstFaceTrack:device-reason tell where it runs and why. A GPU that fails while it is used is left in the same way, and no
 * frame is lost.
 *
 * Engines look for upright faces. Phones store video as the sensor yields it, with the tag `image-orientation`: put
 * `videoconvert ! videoflip video-direction=auto` before facetrack, which turns such video upright and leaves other video as
 * it is, in a copy. A stream with an orientation that has not been applied is a warning. The videoconvert is for raw formats
 * that videoflip does not accept, and passes the others through. Up to GStreamer 1.22, decodebin does not read the EXIF orientation of JPEG
 * pictures; put jpegparse before it.
 *
 * Properties that are set and have no effect with the engine are a warning, and so is `device=cuda` with an engine that uses
 * no GPU.
 *
 * A discontinuity, a flush, another segment, other caps and the action signal #GstFaceTrack::reset make it forget the frames
 * before. Buffers with the flag GST_BUFFER_FLAG_GAP and empty ones pass without analysis.
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! trackjsonsink location=video.json
 * ]|
 * Writes what is known of the faces in a file.
 *
 * |[
 * gst-launch-1.0 -q filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=opencv-yunet detect-max-width=0 ! trackjsonsink verbose=true
 * ]|
 * Prints boxes and key points of all faces, as small as YuNet finds them in frames of full size.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=opencv-yunet-pyfeat blendshape-interval=2 ! trackjsonsink location=video.json
 * ]|
 * Measures the expression of every face, the blendshapes in every second of its frames.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=openseeface calibration-file=faces.json ! trackjsonsink location=video.json verbose=true
 * ]|
 * Writes landmarks, gaze, pose and features, and keeps what was learned of the face for the next video.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=eos ! trackjsonsink location=video.json verbose=true
 * ]|
 * Writes shape and expression of every face as coefficients of the Surrey Face Model.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=insightface allowed-modules=landmark_2d_106,genderage ! trackjsonsink location=video.json verbose=true
 * ]|
 * Writes landmarks, age and gender, measured on a GPU where there is one.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=opencv-haar min-size=60 ! trackjsonsink location=video.json format=reduced
 * ]|
 * Writes who is where, by OpenCV's cascade.
 *
 * |[
 * gst-launch-1.0 -m videotestsrc num-buffers=50 ! facetrack engine=scripted script="face from=10 to=30" max-age=5 post-messages=on-change ! fakesink
 * ]|
 * Shows the messages about a face that comes and goes, without any model.
 */
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use gst::glib;
use gst::glib::subclass::Signal;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_transform::BaseTransformMode;
use gst_base::subclass::prelude::*;

use super::calibration::CalibrationError;
use super::failure::{contained, error_message, panic_message};
use super::loading::{Change, Loaded, Successor, load};
use super::messages;
use super::pacing::{Pace, Pacing, Upstream};
use super::plan::{Plan, Setup};
use super::state::{Outcome, State};
use crate::lock::lock;
use crate::meta::{self, FaceTrackMeta};
use crate::options::{
    self, Description, EnvWarning, Environment, FaceTrackSettings, Options, Reading, Unused,
};
use crate::orientation::Turn;
use crate::{element, video};
use facetrack::analyzer::Analyzer;
use facetrack::device::{Decision, OwnMemory, Severity};
use facetrack::engine::{EngineInfo, Notice};
use facetrack::profile::Profile;
use facetrack::report::ReportSource;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "facetrack",
        gst::DebugColorFlags::empty(),
        Some("Face tracker"),
    )
});

/// What is loaded, for the read-only properties, and for what is loaded next before NULL.
struct Active {
    /// The environment when the element left NULL.
    env: Environment,
    setup: Setup,
    info: EngineInfo,
    source: Arc<ReportSource>,
    /// `None` on the processor.
    vram: Option<Arc<OwnMemory>>,
    profile: Arc<Profile>,
}

impl Active {
    /// `analyzer` was loaded by `plan`, where `decision` says if it did not fall back since.
    fn of(env: &Environment, plan: &Plan, decision: &Decision, analyzer: &Analyzer) -> Self {
        let source = analyzer.source().clone();
        let stayed = source.device == decision.placement.device();
        let vram = OwnMemory::of(&decision.placement).filter(|_| stayed);
        Self {
            env: env.clone(),
            setup: plan.setup.clone(),
            info: analyzer.info().clone(),
            source,
            vram: vram.map(Arc::new),
            profile: analyzer.profile().clone(),
        }
    }

    /// Reports come from `source` now.
    fn follow(&mut self, source: &Arc<ReportSource>) {
        let stayed = self.source.device == source.device;
        self.vram = self.vram.take().filter(|_| stayed);
        self.source = source.clone();
    }
}

/// The element.
///
/// Lock order: `state`, then one of the others, which are held for a copy, a comparison or a sum alone;
/// `state` belongs to the streaming thread, which holds it while a frame is analysed. Who wants the frames forgotten or the
/// calibration reset leaves word in `forget_wanted` or `reset_wanted` and waits for nobody.
#[derive(Default)]
pub struct FaceTrack {
    options: Mutex<Options<FaceTrackSettings>>,
    state: Mutex<Option<State>>,
    active: Mutex<Option<Active>>,
    pacing: Mutex<Pacing>,
    forget_wanted: AtomicBool,
    reset_wanted: AtomicBool,
}

/// The properties that can only be read.
const READINGS: &[Reading<FaceTrack>] = &[
    Reading {
        name: "stats",
        blurb: "Time of each stage: count, and mean, p50, p95 in ms; latency that the element adds in a live pipeline in ms; on a GPU also vram, the GPU memory of the process in MiB",
        param_spec: Description::structure,
        value: |element| element.stats().to_value(),
    },
    Reading {
        name: "active-device",
        blurb: "Device in use: cpu, or cuda:<index>; unset before READY",
        param_spec: |description| description.string(None),
        value: |element| element.of_source(|source| &source.device),
    },
    Reading {
        name: "active-execution-provider",
        blurb: "Execution provider in use; unset before READY",
        param_spec: |description| description.string(None),
        value: |element| element.of_source(|source| &source.execution_provider),
    },
    Reading {
        name: "device-reason",
        blurb: "Reason for the device in use; unset before READY",
        param_spec: |description| description.string(None),
        value: |element| element.of_source(|source| &source.device_reason),
    },
    Reading {
        name: "capabilities",
        blurb: "Measurements of the selected engine: landmark scheme and number of landmarks, key points, blendshape channels and whether they are measured or derived, pose, gaze, features, attributes, length of the embedding, and whether frames depend on one another; of the published models until models are loaded",
        param_spec: Description::structure,
        value: |element| {
            element
                .info()
                .as_ref()
                .map(messages::capabilities)
                .to_value()
        },
    },
];

fn clock_time(time: Duration) -> gst::ClockTime {
    gst::ClockTime::try_from(time).unwrap_or(gst::ClockTime::MAX)
}

impl FaceTrack {
    /// Loads what the settings ask for, unless it is loaded.
    fn prepare(&self, env: Environment) -> Result<(), gst::ErrorMessage> {
        let options = lock(&self.options).clone();
        let (plan, warnings) = Plan::new(&options, &env).map_err(|e| error_message(&e))?;
        if let Some(state) = lock(&self.state).as_mut()
            && state.fits(&plan)
        {
            return Ok(());
        }
        self.settle_reset();
        // What is loaded gives the GPU's memory back before something else asks for it.
        *lock(&self.state) = None;
        self.warn_of_environment(&warnings);
        let mut loaded = load(&plan).map_err(|error| error.message())?;
        let ready = self.introduce(&env, &plan, &mut loaded);
        *lock(&self.state) = Some(State::new(options, env, plan, loaded));
        self.post(ready);
        Ok(())
    }

    /// Shows what was loaded by `plan`. Returns the message that it is ready, to post when it is at work.
    fn introduce(&self, env: &Environment, plan: &Plan, loaded: &mut Loaded) -> gst::Structure {
        self.log_device(&loaded.decision);
        self.warn_of_unused(plan.unused.as_ref());
        for notice in loaded.analyzer.take_notices() {
            self.warn_of(&notice);
        }
        let active = Active::of(env, plan, &loaded.decision, &loaded.analyzer);
        *lock(&self.active) = Some(active);
        messages::ready(loaded.analyzer.source())
    }

    /// Takes over other settings between two frames. Another engine is loaded beside the stream; until it can take over,
    /// and where it can't, the one at work goes on.
    fn follow_settings(&self) {
        let mut unused = None;
        let successor = lock(&self.state).as_mut().and_then(|state| {
            let news = state.news_of(&lock(&self.options));
            unused = news.and_then(|options| state.follow(options));
            state.take_successor()
        });
        self.warn_of_unused(unused.as_ref());
        match successor {
            None => (),
            Some(Ok(successor)) => self.succeed(successor),
            Some(Err(error)) => {
                gst::element_imp_warning!(
                    self,
                    gst::LibraryError::Settings,
                    ("the engine stays as it is: {error}")
                );
            }
        }
    }

    fn succeed(&self, successor: Successor) {
        let Successor {
            plan,
            warnings,
            mut loaded,
        } = successor;
        self.warn_of_environment(&warnings);
        self.save_calibration();
        let ready = self.introduce(&self.env(), &plan, &mut loaded);
        if let Some(state) = lock(&self.state).as_mut() {
            state.succeed(plan, loaded);
        }
        lock(&self.pacing).forget_cost();
        self.post(ready);
    }

    fn warn_of_environment(&self, warnings: &[EnvWarning]) {
        for warning in warnings {
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{warning}"));
        }
    }

    fn warn_of_unused(&self, unused: Option<&Unused>) {
        if let Some(unused) = unused {
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{unused}"));
        }
    }

    /// Engines look for upright faces, in frames as they are.
    fn warn_of_turn(&self, turn: &Turn) {
        if turn.is_due_at(self.obj().sink_pad()) {
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                (
                    "the video has the orientation {} and is not turned upright: faces are missed, or reported lying. \
                     Put `videoconvert ! videoflip video-direction=auto` before facetrack",
                    turn.tag
                )
            );
        }
    }

    fn release(&self) {
        self.settle_reset();
        *lock(&self.state) = None;
        *lock(&self.active) = None;
    }

    fn log_device(&self, decision: &Decision) {
        for (severity, line) in &decision.log {
            match severity {
                Severity::Info => gst::info!(CAT, imp = self, "{line}"),
                Severity::Warning => gst::warning!(CAT, imp = self, "{line}"),
            }
        }
        if let Some(warning) = &decision.warning {
            gst::element_imp_warning!(self, gst::ResourceError::NotFound, ("{warning}"));
        }
    }

    /// Tells what happened to the engine while it ran, and shows where it runs now: as `source` of the report says.
    fn tell(&self, notices: Vec<Notice>, source: &Arc<ReportSource>) {
        if notices.is_empty() {
            return;
        }
        if let Some(active) = lock(&self.active).as_mut() {
            active.follow(source);
        }
        for notice in notices {
            self.warn_of(&notice);
        }
    }

    fn warn_of(&self, notice: &Notice) {
        gst::warning!(CAT, imp = self, "{notice}");
        match notice {
            Notice::DetectionSizeReduced { .. } => {
                gst::element_imp_warning!(self, gst::ResourceError::NoSpaceLeft, ("{notice}"));
            }
            Notice::FellBackToCpu { .. } => {
                gst::element_imp_warning!(self, gst::ResourceError::Failed, ("{notice}"));
            }
        }
    }

    /// The process's memory of the GPU, MiB.
    fn vram(&self) -> Option<u64> {
        let vram = lock(&self.active).as_ref()?.vram.clone();
        vram?.mebibytes()
    }

    fn post(&self, structure: gst::Structure) {
        let message = gst::message::Element::builder(structure)
            .src(&*self.obj())
            .build();
        // Without a bus nobody listens.
        let _ = self.obj().post_message(message);
    }

    /// The action signal: the next frame does not continue those before.
    fn want_forgetting(&self) {
        self.forget_wanted.store(true, Ordering::Release);
    }

    fn follow_forgetting(&self, state: &mut State) {
        if self.forget_wanted.swap(false, Ordering::AcqRel) {
            state.reset();
        }
    }

    /// The action signal: the calibration is reset before anything else is made of it.
    fn want_reset(&self) {
        if lock(&self.active).is_some() {
            self.reset_wanted.store(true, Ordering::Release);
        }
    }

    fn follow_reset(&self, state: &mut State) {
        if self.reset_wanted.swap(false, Ordering::AcqRel) {
            state.reset_calibration();
        }
    }

    /// A reset that no frame has followed is kept as well, and is none of what is loaded next.
    fn settle_reset(&self) {
        if self.reset_wanted.load(Ordering::Acquire) {
            self.save_calibration();
            // After a failure there was nothing to reset.
            self.reset_wanted.store(false, Ordering::Release);
        }
    }

    /// Keeps what the engine learned, where a file is set for that.
    fn save_calibration(&self) {
        let saved = lock(&self.state)
            .as_mut()
            .map_or(Ok(()), |state| self.save_calibration_of(state));
        self.warn_of_loss(saved);
    }

    fn save_calibration_of(&self, state: &mut State) -> Result<(), CalibrationError> {
        self.follow_reset(state);
        state.save_calibration()
    }

    fn warn_of_loss(&self, saved: Result<(), CalibrationError>) {
        if let Err(error) = saved {
            gst::element_imp_warning!(self, gst::ResourceError::Write, ("{error}"));
        }
    }

    /// What becomes of `buffer`. The state is gone after a failure: frames that come nevertheless are refused.
    fn analyze(&self, buffer: &gst::BufferRef) -> Result<Outcome, gst::FlowError> {
        let mut guard = lock(&self.state);
        let state = guard.as_mut().ok_or(gst::FlowError::Error)?;
        self.follow_forgetting(state);
        self.follow_reset(state);
        let arrival = state.arrival(buffer, self.obj().current_running_time());
        let pace = arrival.map_or(Pace::Analyze, |arrival| {
            lock(&self.pacing).pace(state.late_frames(), arrival)
        });
        let start = Instant::now();
        let result = contained(|| state.analyze(buffer, pace));
        let failure = match result {
            Ok(Ok(outcome)) => {
                if outcome.looked {
                    lock(&self.pacing).count(arrival, start.elapsed());
                }
                if let Some(line) = state.profile_line(|| self.vram()) {
                    gst::info!(CAT, imp = self, "{line}");
                }
                return Ok(outcome);
            }
            Ok(Err(error)) => error_message(&error),
            Err(panic) => panic_message(&panic),
        };
        let mut outcome = state.failed();
        // Of an engine that panics again there is nothing to be had.
        let saved = contained(|| self.save_calibration_of(state)).unwrap_or(Ok(()));
        let change = state.take_change();
        *guard = None;
        drop(guard);
        drop(change.map(Change::finish));
        self.warn_of_loss(saved);
        self.tell(std::mem::take(&mut outcome.notices), &outcome.report.source);
        self.post_error_message(failure);
        Ok(outcome)
    }

    /// A sink could not show a frame in time, or could. Returns whether faces are held for that.
    fn heed_sink(&self, time: Option<gst::ClockTime>, lateness: i64) -> bool {
        let mut pacing = lock(&self.pacing);
        if let Some(time) = time {
            pacing.heed_sink(time.into(), lateness);
        }
        pacing.holds()
    }

    /// Asks what comes before for its latency, where that may be another one. No lock is held: others answer.
    fn ask_upstream(&self) {
        if !lock(&self.pacing).take_doubt() {
            return;
        }
        let mut query = gst::query::Latency::new();
        let answered = self.obj().sink_pad().peer_query(&mut query);
        let (live, latency, _) = query.result();
        lock(&self.pacing).set_upstream(Upstream {
            live: answered && live,
            latency: latency.into(),
        });
    }

    /// As decoders do it: what the analysis takes comes on top of what upstream answered. Nobody waits for files.
    fn add_latency(&self, answer: &mut gst::query::Latency) {
        let (live, min, max) = answer.result();
        if !live {
            return;
        }
        let own = clock_time(lock(&self.pacing).latency());
        let later = |time: gst::ClockTime| time.saturating_add(own);
        answer.set(live, later(min), max.map(later));
    }

    /// The pipeline asks for latencies again.
    fn post_latency(&self) {
        let message = gst::message::Latency::builder().src(&*self.obj()).build();
        // Without a bus nobody listens.
        let _ = self.obj().post_message(message);
    }

    /// What is read once, on the way from NULL to READY.
    fn env(&self) -> Environment {
        let active = lock(&self.active);
        let env = active.as_ref().map(|active| active.env.clone());
        env.unwrap_or_else(Environment::of_process)
    }

    /// What the engine that is set measures: what was loaded tells by itself.
    fn info(&self) -> Option<EngineInfo> {
        let env = self.env();
        let options = lock(&self.options).clone();
        let (plan, _) = Plan::new(&options, &env).ok()?;
        let active = lock(&self.active);
        match active.as_ref() {
            Some(active) if active.setup == plan.setup => Some(active.info.clone()),
            _ => plan.describe().ok(),
        }
    }

    fn stats(&self) -> Option<gst::Structure> {
        let profile = lock(&self.active).as_ref()?.profile.clone();
        let latency = lock(&self.pacing).latency();
        Some(messages::stats(&profile, latency, self.vram()))
    }

    /// A text about the source of the reports; unset before READY.
    fn of_source(&self, text: fn(&ReportSource) -> &String) -> glib::Value {
        let active = lock(&self.active);
        active
            .as_ref()
            .map(|active| text(&active.source))
            .to_value()
    }
}

#[glib::object_subclass]
impl ObjectSubclass for FaceTrack {
    const NAME: &'static str = "GstFaceTrack";
    type Type = super::FaceTrack;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for FaceTrack {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> =
            LazyLock::new(|| options::properties::<FaceTrackSettings, _>(READINGS));
        &PROPERTIES
    }

    fn signals() -> &'static [Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            vec![
                action("reset", FaceTrack::want_forgetting),
                action("reset-calibration", FaceTrack::want_reset),
            ]
        });
        &SIGNALS
    }

    fn set_property(&self, id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
        lock(&self.options).set_property(id, value);
    }

    fn constructed(&self) {
        self.parent_constructed();
        // Or the base class takes the flag away from buffers that pass.
        self.obj().set_gap_aware(true);
        element::report_refused_caps(self.obj().sink_pad());
    }

    fn property(&self, id: usize, _spec: &glib::ParamSpec) -> glib::Value {
        match options::reading::<FaceTrackSettings, _>(READINGS, id) {
            Some(reading) => (reading.value)(self),
            None => lock(&self.options).property(id),
        }
    }
}

/// A signal that has the element do something.
fn action(name: &str, act: fn(&FaceTrack)) -> Signal {
    let signal = Signal::builder(name).action();
    let signal = signal.class_handler(move |arguments| {
        let element = arguments[0].get::<super::FaceTrack>();
        act(element.expect("the emitter").imp());
        None
    });
    signal.build()
}

impl GstObjectImpl for FaceTrack {}

impl ElementImpl for FaceTrack {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Face tracker",
                "Filter/Analyzer/Video",
                "Finds and follows faces: boxes, landmarks, blendshapes, gaze and head pose as metadata",
                element::AUTHOR,
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
            LazyLock::new(|| element::filter_templates(&video::caps()));
        &TEMPLATES
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if transition == gst::StateChange::NullToReady
            && let Err(error) = self.prepare(Environment::of_process())
        {
            self.post_error_message(error);
            return Err(gst::StateChangeError);
        }
        let success = self.parent_change_state(transition)?;
        if transition == gst::StateChange::ReadyToNull {
            self.release();
        }
        Ok(success)
    }
}

impl BaseTransformImpl for FaceTrack {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        self.prepare(self.env())?;
        self.forget_wanted.store(false, Ordering::Release);
        *lock(&self.pacing) = Pacing::default();
        if let Some(state) = lock(&self.state).as_mut() {
            state.restart();
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.save_calibration();
        let change = lock(&self.state).as_mut().and_then(State::take_change);
        // What is still being loaded is not left to itself.
        drop(change.map(Change::finish));
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(incaps)
            .map_err(|_| gst::loggable_error!(CAT, "{incaps} are no caps of raw video"))?;
        if video::ignores_pixel_aspect_ratio(&info) {
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                (
                    "the pixel aspect ratio {} is implausible: frames are analysed as if their \
                     pixels were square. Put `capssetter caps=video/x-raw,pixel-aspect-ratio=1/1` \
                     before facetrack, or the ratio that the video has",
                    info.par()
                )
            );
        }
        if let Some(state) = lock(&self.state).as_mut() {
            state.set_info(info);
        }
        Ok(())
    }

    fn propose_allocation(
        &self,
        decide_query: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        self.parent_propose_allocation(decide_query, query)?;
        video::refuse_crops(query);
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if event.type_() == gst::EventType::FlushStart {
            // It comes beside the stream, and does not wait for a frame's analysis.
            return self.parent_sink_event(event);
        }
        let (mut left, mut turn) = (Vec::new(), None);
        if let Some(state) = lock(&self.state).as_mut() {
            match event.view() {
                gst::EventView::StreamStart(_) => state.forget_tags(),
                gst::EventView::Tag(event) => turn = state.follow_tags(event.tag()),
                gst::EventView::FlushStop(_) => state.reset(),
                gst::EventView::Segment(event) => state.set_segment(event.segment()),
                gst::EventView::Eos(_) => left = state.end(),
                _ => (),
            }
        }
        if let gst::EventType::FlushStop | gst::EventType::Segment = event.type_() {
            lock(&self.pacing).reset();
        }
        left.into_iter().for_each(|structure| self.post(structure));
        turn.iter().for_each(|turn| self.warn_of_turn(turn));
        if event.type_() == gst::EventType::Eos {
            self.save_calibration();
        }
        self.parent_sink_event(event)
    }

    fn src_event(&self, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::Qos(qos) => {
                let (_, _, lateness, time) = qos.get();
                let holds = self.heed_sink(time, lateness);
                // A decoder would drop frames, where it is enough not to analyse them; and so would the base class.
                return holds || self.obj().sink_pad().push_event(event);
            }
            gst::EventView::Latency(_) => lock(&self.pacing).doubt_upstream(),
            _ => (),
        }
        self.parent_src_event(event)
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        let from_upstream = direction == gst::PadDirection::Sink;
        if from_upstream
            && (meta::asks_for_source(query)
                || element::answer_before_late_link(self.obj().sink_pad(), query))
        {
            return true;
        }
        if !BaseTransformImplExt::parent_query(self, direction, query) {
            return false;
        }
        if direction == gst::PadDirection::Src
            && let gst::QueryViewMut::Latency(answer) = query.view_mut()
        {
            self.add_latency(answer);
        }
        true
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.follow_settings();
        self.ask_upstream();
        let outcome = self.analyze(buffer)?;
        self.tell(outcome.notices, &outcome.report.source);
        let (report, frame) = (&outcome.report, outcome.frame);
        FaceTrackMeta::attach_seen(buffer, report, frame, &outcome.sightings).map_err(|error| {
            gst::element_imp_error!(self, gst::LibraryError::Failed, ("{error}"));
            gst::FlowError::Error
        })?;
        outcome
            .messages
            .into_iter()
            .for_each(|structure| self.post(structure));
        if lock(&self.pacing).take_news() {
            self.post_latency();
        }
        Ok(gst::FlowSuccess::Ok)
    }
}
