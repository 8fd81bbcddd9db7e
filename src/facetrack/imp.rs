// SPDX-License-Identifier: MPL-2.0

/**
 * SECTION:element-facetrack
 *
 * facetrack finds faces in video, follows them, and attaches what it measures to each frame: a `FaceTrackMeta` with
 * everything, and a #GstVideoRegionOfInterestMeta of type `face` for each face. Pixels are read in the format that they
 * have and never changed or copied.
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
 * With #GstFaceTrack:post-messages the element posts element messages named `facetrack` with the fields `event`
 * (`face-entered`, `face-left`, `frame`), `pts`, `running-time`, and `id` of the face, or `status`, `faces` and `ids` of
 * the frame. A face leaves when its id ends: #GstFaceTrack:max-age frames after it was last seen. When the engine is
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
 * A discontinuity, a flush, another segment and other caps make it forget the frames before. Buffers with the flag
 * GST_BUFFER_FLAG_GAP and empty ones pass without analysis.
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! facetrack ! trackjsonsink location=video.json
 * ]|
 * Writes what is known of the faces in a file.
 *
 * |[
 * gst-launch-1.0 -q filesrc location=video.mp4 ! decodebin ! facetrack engine=opencv-yunet detect-max-width=0 ! trackjsonsink verbose=true
 * ]|
 * Prints boxes and key points of all faces, as small as YuNet finds them in frames of full size.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! facetrack engine=opencv-yunet-pyfeat blendshape-interval=2 ! trackjsonsink location=video.json
 * ]|
 * Measures the expression of every face, the blendshapes in every second of its frames.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! facetrack engine=openseeface calibration-file=faces.json ! trackjsonsink location=video.json verbose=true
 * ]|
 * Writes landmarks, gaze, pose and features, and keeps what was learned of the face for the next video.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! facetrack engine=eos ! trackjsonsink location=video.json verbose=true
 * ]|
 * Writes shape and expression of every face as coefficients of the Surrey Face Model.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! facetrack engine=insightface allowed-modules=landmark_2d_106,genderage ! trackjsonsink location=video.json verbose=true
 * ]|
 * Writes landmarks, age and gender, measured on a GPU where there is one.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! facetrack engine=opencv-haar min-size=60 ! trackjsonsink location=video.json format=reduced
 * ]|
 * Writes who is where, by OpenCV's cascade.
 *
 * |[
 * gst-launch-1.0 -m videotestsrc num-buffers=50 ! facetrack engine=scripted script="face from=10 to=30" max-age=5 post-messages=on-change ! fakesink
 * ]|
 * Shows the messages about a face that comes and goes, without any model.
 */
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use gst::glib;
use gst::glib::subclass::Signal;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_transform::BaseTransformMode;
use gst_base::subclass::prelude::*;

use super::calibration::{CalibrationError, CalibrationFile};
use super::failure::{calibration_message, contained, error_message, panic_message};
use super::messages;
use super::plan::{Environment, Plan, Setup};
use super::state::{Outcome, State};
use crate::face::analyzer::Analyzer;
use crate::face::device::{Decision, OwnMemory, Severity};
use crate::face::engine::{EngineInfo, EngineKind, Notice};
use crate::face::options::facetrack::FACETRACK;
use crate::face::options::{OptionSpec, Settings, Value};
use crate::face::profile::Profile;
use crate::face::report::ReportSource;
use crate::meta::FaceTrackMeta;
use crate::{properties, video};

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
/// Lock order: `state`, then `settings` or `active`, never both of these. `settings` and `active` are held for a copy
/// alone; `state` belongs to the streaming thread, which holds it while a frame is analysed. Who wants the calibration
/// reset leaves word in `reset_wanted` and waits for nobody.
pub struct FaceTrack {
    settings: Mutex<Settings>,
    state: Mutex<Option<State>>,
    active: Mutex<Option<Active>>,
    reset_wanted: AtomicBool,
}

impl Default for FaceTrack {
    fn default() -> Self {
        Self {
            settings: Mutex::new(Settings::new(FACETRACK)),
            state: Mutex::default(),
            active: Mutex::default(),
            reset_wanted: AtomicBool::default(),
        }
    }
}

/// A panic elsewhere is no reason to panic here: what these locks guard is whole between statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a plan yields.
struct Loaded {
    analyzer: Analyzer,
    decision: Decision,
    calibration: Option<CalibrationFile>,
}

/// The engine of `plan`, with what it learned in earlier streams where a file keeps that.
fn load(plan: &Plan) -> Result<Loaded, gst::ErrorMessage> {
    let (mut analyzer, decision) = plan.load().map_err(|e| error_message(&e))?;
    let calibration = match &plan.setup.calibration_file {
        None => None,
        Some(path) => {
            Some(CalibrationFile::open(path, &mut analyzer).map_err(|e| calibration_message(&e))?)
        }
    };
    Ok(Loaded {
        analyzer,
        decision,
        calibration,
    })
}

/// Caps outside the template are refused before the element sees them, and "not negotiated" upstream helps nobody.
fn tell_of_unreadable_caps(pad: &gst::Pad, event: Option<&gst::Event>) {
    let Some(gst::EventView::Caps(event)) = event.map(|event| event.view()) else {
        return;
    };
    let caps = event.caps();
    if pad.pad_template_caps().can_intersect(caps) {
        return;
    }
    if let Some(element) = pad.parent_element() {
        gst::element_error!(
            element,
            gst::StreamError::Format,
            ("{caps} can't be read: put videoconvert before the element")
        );
    }
}

impl FaceTrack {
    /// Loads what the settings ask for, unless it is loaded.
    fn prepare(&self, env: Environment) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.settings).clone();
        let (plan, warnings) = Plan::new(&settings, &env).map_err(|e| error_message(&e))?;
        if let Some(state) = lock(&self.state).as_mut()
            && state.fits(&plan)
        {
            return Ok(());
        }
        self.settle_reset();
        // What is loaded gives the GPU's memory back before something else asks for it.
        *lock(&self.state) = None;
        for warning in warnings {
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{warning}"));
        }
        let Loaded {
            mut analyzer,
            decision,
            calibration,
        } = contained(|| load(&plan)).map_err(|panic| panic_message(&panic))??;
        self.log_device(&decision);
        for notice in analyzer.take_notices() {
            self.warn_of(&notice);
        }
        let ready = messages::ready(analyzer.source());
        *lock(&self.active) = Some(Active::of(&env, &plan, &decision, &analyzer));
        *lock(&self.state) = Some(State::new(settings, env, plan, analyzer, calibration));
        self.post(ready);
        Ok(())
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
        state.follow(&lock(&self.settings));
        self.follow_reset(state);
        let result = contained(|| state.analyze(buffer));
        let failure = match result {
            Ok(Ok(outcome)) => {
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
        *guard = None;
        drop(guard);
        self.warn_of_loss(saved);
        self.tell(std::mem::take(&mut outcome.notices), &outcome.report.source);
        self.post_error_message(failure);
        Ok(outcome)
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
        let settings = lock(&self.settings).clone();
        let (plan, _) = Plan::new(&settings, &env).ok()?;
        let active = lock(&self.active);
        match active.as_ref() {
            Some(active) if active.setup == plan.setup => Some(active.info.clone()),
            _ => plan.describe().ok(),
        }
    }

    fn stats(&self) -> Option<gst::Structure> {
        let profile = lock(&self.active).as_ref()?.profile.clone();
        Some(messages::stats(&profile, self.vram()))
    }

    fn report_value(&self, name: &str) -> Option<glib::Value> {
        match name {
            "capabilities" => Some(messages::capabilities(&self.info()?).to_value()),
            "stats" => Some(self.stats()?.to_value()),
            _ => self.device_value(name),
        }
    }

    fn device_value(&self, name: &str) -> Option<glib::Value> {
        let source = lock(&self.active).as_ref()?.source.clone();
        match name {
            "active-device" => Some(source.device.to_value()),
            "active-execution-provider" => Some(source.execution_provider.to_value()),
            "device-reason" => Some(source.device_reason.to_value()),
            _ => None,
        }
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
            LazyLock::new(|| properties::param_specs(FACETRACK, enum_spec));
        &PROPERTIES
    }

    fn signals() -> &'static [Signal] {
        static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
            let reset = Signal::builder("reset-calibration").action();
            let reset = reset.class_handler(|arguments| {
                let element = arguments[0].get::<super::FaceTrack>();
                element.expect("the emitter").imp().want_reset();
                None
            });
            vec![reset.build()]
        });
        &SIGNALS
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        lock(&self.settings).set(pspec.name(), properties::from_glib(value));
    }

    fn constructed(&self) {
        self.parent_constructed();
        // Or the base class takes the flag away from buffers that pass.
        self.obj().set_gap_aware(true);
        let events = gst::PadProbeType::EVENT_DOWNSTREAM;
        self.obj().sink_pad().add_probe(events, |pad, info| {
            tell_of_unreadable_caps(pad, info.event());
            gst::PadProbeReturn::Ok
        });
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        if let Some(value) = self.report_value(pspec.name()) {
            return value;
        }
        let settings = lock(&self.settings);
        let engine = chosen_engine(&settings);
        properties::to_glib(settings.get(pspec.name(), engine), pspec)
    }
}

/// The engine that is set, whose defaults the properties show.
fn chosen_engine(settings: &Settings) -> Option<&'static str> {
    let Some(Value::Text(name)) = settings.get("engine", None) else {
        return None;
    };
    name.parse().map(EngineKind::name).ok()
}

/// The GObject enum of a choice.
fn enum_spec(option: &OptionSpec) -> glib::ParamSpec {
    match option.name {
        "running-mode" => properties::choice_spec::<super::RunningMode>(option),
        "pnp-points" => properties::choice_spec::<super::PnpPoints>(option),
        "identity" => properties::choice_spec::<super::Identity>(option),
        "smoothing" => properties::choice_spec::<super::Smoothing>(option),
        "tracker" => properties::choice_spec::<super::Tracker>(option),
        "device" => properties::choice_spec::<super::Device>(option),
        "cudnn-conv-algo-search" => properties::choice_spec::<super::ConvAlgorithmSearch>(option),
        "post-messages" => properties::choice_spec::<super::PostMessages>(option),
        name => unreachable!("no enum for the option `{name}`"),
    }
}

impl GstObjectImpl for FaceTrack {}

impl ElementImpl for FaceTrack {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Face tracker",
                "Filter/Analyzer/Video",
                "Finds and follows faces: boxes, landmarks, blendshapes, gaze and head pose as metadata",
                "The gst-plugin-facetrack contributors",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            [
                ("sink", gst::PadDirection::Sink),
                ("src", gst::PadDirection::Src),
            ]
            .map(|(name, direction)| {
                gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &video::caps())
                    .expect("fixed names and caps make a template")
            })
            .into()
        });
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
        if let Some(state) = lock(&self.state).as_mut() {
            state.restart();
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.save_calibration();
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(incaps)
            .map_err(|_| gst::loggable_error!(CAT, "{incaps} are no caps of raw video"))?;
        if let Some(state) = lock(&self.state).as_mut() {
            state.set_info(info);
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        let mut left = Vec::new();
        if let Some(state) = lock(&self.state).as_mut() {
            match event.view() {
                gst::EventView::FlushStop(_) => state.reset(),
                gst::EventView::Segment(event) => state.set_segment(event.segment()),
                gst::EventView::Eos(_) => left = state.end(),
                _ => (),
            }
        }
        left.into_iter().for_each(|structure| self.post(structure));
        if event.type_() == gst::EventType::Eos {
            self.save_calibration();
        }
        self.parent_sink_event(event)
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let outcome = self.analyze(buffer)?;
        self.tell(outcome.notices, &outcome.report.source);
        FaceTrackMeta::attach(buffer, &outcome.report).map_err(|error| {
            gst::element_imp_error!(self, gst::LibraryError::Failed, ("{error}"));
            gst::FlowError::Error
        })?;
        outcome
            .messages
            .into_iter()
            .for_each(|structure| self.post(structure));
        Ok(gst::FlowSuccess::Ok)
    }
}
