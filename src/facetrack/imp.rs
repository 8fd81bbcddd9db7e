// SPDX-License-Identifier: MPL-2.0

/**
 * SECTION:element-facetrack
 *
 * facetrack finds and tracks faces in video, and attaches its measurements to each frame: a
 * `FaceTrackMeta` with everything, and a #GstVideoRegionOfInterestMeta of type `face` for each
 * face. It reads raw frames in system memory in any format, and never changes or copies them.
 *
 * #GstFaceTrack:engine selects the engine, and #GstFaceTrack:capabilities shows what it measures.
 * Models and ONNX Runtime are loaded from NULL to READY; nothing is downloaded. The engine may be
 * set while frames flow: the new one is loaded in the background, takes over between two frames,
 * and a `facetrack-ready` message is posted. If it cannot be loaded, a warning is posted and the
 * current engine stays in use.
 *
 * Every frame passes: frames that are late in a live pipeline or at a sink are not analysed, and
 * their faces are held, or predicted with #GstFaceTrack:predict. See #GstFaceTrack:late-frames. The
 * analysis time is measured and added to the answer to LATENCY queries. With `qos=true`, QoS events
 * of sinks are also sent upstream, where decoders drop frames because of them.
 *
 * With #GstFaceTrack:select, one face is reported and others are ignored. With
 * #GstFaceTrack:neutral-time, #GstFaceTrack:neutral-file or the action signal
 * #GstFaceTrack::set-neutral, blendshapes are 0 in a face at rest.
 *
 * With #GstFaceTrack:post-messages, element messages named `facetrack` are posted when a face
 * enters or leaves.
 *
 * Engines find upright faces only. The examples rotate video with the tag `image-orientation`. A
 * stream whose orientation is not applied causes a warning.
 *
 * Flushes, new streams and caps, and the action signal #GstFaceTrack::reset make the element forget
 * the previous frames. Hard cuts between shots do so too, unless
 * #GstFaceTrack:on-cut is `ignore`. After a discontinuity or a new segment, faces keep their ids if no more than
 * #GstFaceTrack:max-age frames are missing. Empty buffers pass without analysis. Buffers with the flag
 * GST_BUFFER_FLAG_GAP are analysed, because videorate sets it on the frames that it repeats.
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! trackjsonsink location=video.json
 * ]|
 * Writes the measurements to a file.
 *
 * |[
 * gst-launch-1.0 -q filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=opencv-yunet detect-max-width=0 ! trackjsonsink verbose=true
 * ]|
 * Prints boxes and key points of all faces that YuNet finds in frames of full size.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=opencv-yunet-pyfeat blendshape-interval=2 ! trackjsonsink location=video.json
 * ]|
 * Measures the blendshapes of each face in every second frame.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=openseeface calibration-file=faces.json ! trackjsonsink location=video.json verbose=true
 * ]|
 * Writes landmarks, gaze, pose and features, and keeps the calibration of the face for the next
 * video.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=eos ! trackjsonsink location=video.json verbose=true
 * ]|
 * Writes shape and expression of each face as coefficients of the Surrey Face Model.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=insightface allowed-modules=landmark_2d_106,genderage ! trackjsonsink location=video.json verbose=true
 * ]|
 * Writes landmarks, age and gender, measured on a GPU if there is one.
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=opencv-haar min-size=60 ! trackjsonsink location=video.json format=reduced
 * ]|
 * Writes the positions of faces that OpenCV's cascade finds.
 *
 * |[
 * gst-launch-1.0 -m videotestsrc num-buffers=50 ! facetrack engine=scripted script="face from=10 to=30" max-age=5 post-messages=on-change ! fakesink
 * ]|
 * Prints the messages for a face that enters and leaves. No model is needed.
 */
use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use gst::glib;
use gst::glib::subclass::Signal;
use gst_base::prelude::*;
use gst_base::subclass::base_transform::{BaseTransformMode, GenerateOutputSuccess};
use gst_base::subclass::prelude::*;

use super::failure::{Failure, contained};
use super::gpu_memory::GpuMemory;
use super::loading::{self, Loaded};
use super::messages;
use super::plan::{Plan, Setup};
use super::state::{Outcome, State};
use crate::meta::{self, Cost, FaceTrackMeta};
use crate::options::{self, Description, Environment, FaceTrackSettings, Options};
use crate::orientation::{Orientation, Turn};
use crate::{element, video};
use facetrack::device::{Decision, Severity};
use facetrack::engine::{self, EngineInfo, Notice, Setting};
use facetrack::instructions;
use facetrack::profile::Profile;
use facetrack::report::{FrameStatus, ReportSource};
use facetrack::schedule::{Schedule, Upstream};
use facetrack_assets::lock::lock;
use serde_json::{Map, Value};

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| element::category("facetrack", "Face tracker"));

/// The loaded engine, for the read-only properties and for the next load before NULL.
struct Active {
    /// Environment when the element left NULL.
    env: Environment,
    setup: Setup,
    info: EngineInfo,
    source: Arc<ReportSource>,
    /// The device that the engine was loaded for. It may have fallen back to the CPU.
    device: String,
    /// Memory on this device; `None` on the CPU.
    vram: Option<Arc<GpuMemory>>,
    profile: Arc<Profile>,
}

impl Active {
    fn of(env: &Environment, loaded: &Loaded) -> Self {
        let (analyzer, placement) = (&loaded.analyzer, &loaded.decision.placement);
        Self {
            env: env.clone(),
            setup: loaded.plan.setup.clone(),
            info: analyzer.engine.info.clone(),
            source: analyzer.source().clone(),
            device: placement.device(),
            vram: GpuMemory::of(placement).map(Arc::new),
            profile: analyzer.profile().clone(),
        }
    }
}

/// The element.
///
/// Lock order: `state`, then one of the others, which are held only briefly. `state` belongs to the
/// streaming thread, which holds it while a frame is analysed. Other threads do not wait for it:
/// they request a reset with `forget_frames` or `forget_calibration`, and rest values with
/// `learn_neutral`.
#[derive(Default)]
pub struct FaceTrack {
    options: Mutex<Options<FaceTrackSettings>>,
    state: Mutex<Option<State>>,
    active: Mutex<Option<Active>>,
    schedule: Mutex<Schedule>,
    forget_frames: AtomicBool,
    forget_calibration: AtomicBool,
    learn_neutral: AtomicBool,
}

type Reading = options::Reading<FaceTrack>;

/// The properties that can only be read.
const READINGS: &[Reading] = &[
    Reading::new("stats", Description::structure, |it| it.stats().to_value())
        .blurb("Time of each stage, added latency and GPU memory"),
    Reading::text("active-device", |it| it.of_source(|source| &source.device))
        .blurb("Device in use: cpu, or cuda:<index>; unset before READY"),
    Reading::text("active-execution-provider", |it| {
        it.of_source(|source| &source.execution_provider)
    })
    .blurb("Runtime of the networks: built-in, or ONNX Runtime's name of its execution provider; unset before READY"),
    Reading::text("device-reason", |it| it.of_source(|source| &source.device_reason))
        .blurb("Reason for the device in use; unset before READY"),
    Reading::new("capabilities", Description::structure, |it| it.capabilities().to_value())
        .blurb("Measurements of the selected engine"),
];

impl FaceTrack {
    /// Loads the engine for the settings, unless it is loaded.
    fn prepare(&self, env: Environment) -> Result<(), Failure> {
        let options = lock(&self.options).clone();
        let mut plan = Plan::new(&options, &env)?;
        let is_for_plan = |state: &State| state.engine.plan.setup == plan.setup;
        if lock(&self.state).as_ref().is_some_and(is_for_plan) {
            return Ok(());
        }
        self.save_reset_calibration();
        // The old engine releases its GPU memory before the new one is loaded.
        *lock(&self.state) = None;
        self.warn_of_settings(instructions::set_from_vars(std::env::var_os).err());
        self.warn_of_settings(mem::take(&mut plan.warnings));
        for line in env.without_effect(plan.setup.kind) {
            gst::warning!(CAT, imp = self, "{line}");
        }
        let mut loaded = loading::load(plan)?;
        let ready = self.on_loaded(&env, &mut loaded);
        *lock(&self.state) = Some(State::new(options, env, loaded));
        element::post(self.obj().upcast_ref(), ready);
        Ok(())
    }

    /// Updates the read-only properties and posts warnings. Returns the message `facetrack-ready`,
    /// to post when the engine is in use.
    fn on_loaded(&self, env: &Environment, loaded: &mut Loaded) -> gst::Structure {
        self.log_device(&loaded.decision);
        let (kind, source) = (loaded.plan.setup.kind, loaded.analyzer.source());
        if kind.uses(Setting::Gpu) {
            // These are the words of the older pipeline, for which its operators search the logs.
            let provider = &source.execution_provider;
            gst::info!(
                CAT,
                imp = self,
                "[InsightFace] Detection session using provider: {provider}"
            );
        }
        for fallback in &loaded.analyzer.engine.info.runtimes.fallbacks {
            gst::info!(CAT, imp = self, "ONNX Runtime runs {fallback}");
        }
        self.warn_of_settings(loaded.warnings());
        for notice in loaded.analyzer.take_notices() {
            self.warn_of_notice(&notice);
        }
        *lock(&self.active) = Some(Active::of(env, loaded));
        messages::ready(loaded.analyzer.source())
    }

    /// Applies changed settings between two frames. Another engine is loaded in a thread of its
    /// own. The current one stays in use until the other one is ready, or if it cannot be loaded.
    fn apply_settings(&self) {
        let options = lock(&self.options).clone();
        let applied = lock(&self.state)
            .as_mut()
            .map(|state| (state.apply_options(options), state.take_successor()));
        let (unused, successor) = applied.unwrap_or_default();
        self.warn_of_settings(unused);
        match successor {
            None => (),
            Some(Ok(successor)) => self.take_over(successor),
            Some(Err(error)) => {
                self.warn_of_settings([format!("the engine was not changed: {error}")]);
                self.restore_engine();
            }
        }
    }

    /// Sets the property back to the engine in use, unless yet another engine was set.
    fn restore_engine(&self) {
        let restored = lock(&self.state).as_ref().is_some_and(|state| {
            let mut options = lock(&self.options);
            let is_refused = options.explicit_engine() == state.options.explicit_engine();
            if is_refused {
                options.set_engine(state.engine.plan.setup.kind);
            }
            is_refused
        });
        if restored {
            self.obj().notify("engine");
        }
    }

    fn take_over(&self, mut loaded: Loaded) {
        self.warn_of_settings(mem::take(&mut loaded.plan.warnings));
        self.save_learned();
        let ready = self.on_loaded(&self.env(), &mut loaded);
        if let Some(state) = lock(&self.state).as_mut() {
            state.take_over(loaded);
        }
        lock(&self.schedule).forget_cost();
        element::post(self.obj().upcast_ref(), ready);
    }

    fn warn_of_settings(&self, warnings: impl IntoIterator<Item: fmt::Display>) {
        for warning in warnings {
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{warning}"));
        }
    }

    /// Warns about a rotated stream: engines find only upright faces.
    fn warn_of_turn(&self, turn: &Turn) {
        let tag = &turn.tag;
        if turn.is_due_at(self.obj().sink_pad()) {
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                ("the video has the orientation {tag} and is not rotated upright, so faces are missed or reported as rotated. Put `videoconvert ! videoflip video-direction=auto` before facetrack")
            );
        }
    }

    fn unload(&self) {
        self.save_reset_calibration();
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
        if let Some(unmet) = &decision.unmet {
            let remedy = facetrack_remedies::for_unmet(unmet);
            let reason = decision.reason.trim_end_matches('.');
            gst::element_imp_warning!(self, gst::ResourceError::NotFound, ("{reason}. {remedy}"));
        }
    }

    /// Posts the notices of the engine as warnings, and updates the read-only properties from the
    /// source of the report.
    fn on_notices(&self, notices: Vec<Notice>, source: &Arc<ReportSource>) {
        if notices.is_empty() {
            return;
        }
        if let Some(active) = lock(&self.active).as_mut() {
            active.source = source.clone();
        }
        for notice in notices {
            self.warn_of_notice(&notice);
        }
    }

    fn warn_of_notice(&self, notice: &Notice) {
        gst::warning!(CAT, imp = self, "{notice}");
        let code = match notice {
            Notice::DetectionSizeReduced { .. } => gst::ResourceError::NoSpaceLeft,
            Notice::FellBackToCpu { .. } => gst::ResourceError::Failed,
        };
        gst::element_imp_warning!(self, code, ("{notice}"));
    }

    /// GPU memory that the process uses, MiB.
    fn vram(&self) -> Option<u64> {
        let vram = match lock(&self.active).as_ref()? {
            active if active.source.device == active.device => active.vram.clone()?,
            _ => return None,
        };
        vram.mebibytes()
    }

    fn post_all(&self, structures: Vec<gst::Structure>) {
        for structure in structures {
            element::post(self.obj().upcast_ref(), structure);
        }
    }

    /// The action signal `reset-calibration`.
    fn request_calibration_reset(&self) {
        if lock(&self.active).is_some() {
            self.forget_calibration.store(true, Ordering::Release);
        }
    }

    /// Resets the calibration before it is used, if that was requested.
    fn apply_calibration_reset(&self, state: &mut State) {
        if self.forget_calibration.swap(false, Ordering::AcqRel) {
            state.engine.analyzer.engine.completer.reset_calibration();
        }
    }

    /// Saves a calibration that was reset after the last frame. The request does not apply to the
    /// next engine.
    fn save_reset_calibration(&self) {
        if self.forget_calibration.load(Ordering::Acquire) {
            self.save_learned();
            // After a failure there is no calibration to reset.
            self.forget_calibration.store(false, Ordering::Release);
        }
    }

    /// Saves the learned state in its files.
    fn save_learned(&self) {
        let saved = lock(&self.state)
            .as_mut()
            .map_or(Ok(()), |state| self.save_learned_of(state));
        self.warn_of_loss(saved);
    }

    fn save_learned_of(&self, state: &mut State) -> Result<(), Failure> {
        self.apply_calibration_reset(state);
        state.save_learned()
    }

    fn warn_of_loss(&self, saved: Result<(), Failure>) {
        if let Err(error) = saved {
            gst::element_imp_warning!(self, gst::ResourceError::Write, ("{error}"));
        }
    }

    /// Begins the analysis of `buffer`. Changed settings apply from this frame on, so the frames
    /// before it leave first.
    fn admit(&self, buffer: gst::Buffer) -> Result<(), gst::FlowError> {
        let is_forgetting = self.forget_frames.swap(false, Ordering::AcqRel);
        let is_interrupted = buffer.flags().contains(gst::BufferFlags::DISCONT);
        let is_outdated = self.is_outdated();
        if is_forgetting || is_interrupted || is_outdated {
            self.drain()?;
        }
        if is_outdated {
            self.apply_settings();
        }
        self.update_upstream_latency();
        let now = self.obj().current_running_time();
        let mut state = lock(&self.state);
        // After a failure the state is gone, and further frames are refused.
        let state = state.as_mut().ok_or(gst::FlowError::Error)?;
        let is_interrupted = state.take_interruption() || is_interrupted;
        if is_forgetting {
            state.reset();
        } else if is_interrupted {
            state.resume(buffer.pts());
        }
        self.apply_calibration_reset(state);
        if self.learn_neutral.swap(false, Ordering::AcqRel) {
            state.engine.analyzer.neutral.request();
        }
        state.admit(buffer, now, &self.schedule);
        Ok(())
    }

    /// Returns true if settings have changed, or another engine is set or ready.
    fn is_outdated(&self) -> bool {
        let state = lock(&self.state);
        let options = lock(&self.options);
        state
            .as_ref()
            .is_some_and(|state| state.is_outdated(&options))
    }

    /// Returns true while a frame is analysed, because the state is locked then.
    pub(super) fn is_analyzing(&self) -> bool {
        self.state.try_lock().is_err()
    }

    /// Pushes all frames under way.
    fn drain(&self) -> Result<(), gst::FlowError> {
        while let Some(buffer) = self.take_analyzed(true)? {
            self.obj().src_pad().push(buffer)?;
        }
        Ok(())
    }

    /// Pushes all frames under way before an event or a query. If downstream refuses one, it also
    /// refuses the frame that follows.
    fn drain_before(&self, name: &str) {
        if let Err(flow) = self.drain() {
            gst::debug!(CAT, imp = self, "a frame before {name} was refused: {flow}");
        }
    }

    /// The next frame that is analysed, with its metadata. If it `drains`, it waits for the frames
    /// under way.
    fn take_analyzed(&self, drains: bool) -> Result<Option<gst::Buffer>, gst::FlowError> {
        let Some((mut buffer, outcome)) = self.complete_next(drains) else {
            return Ok(None);
        };
        self.on_notices(outcome.notices, &outcome.report.source);
        let (report, frame) = (&outcome.report, outcome.frame);
        FaceTrackMeta::attach_seen(buffer.make_mut(), report, frame, &outcome.track_times)
            .inspect_err(|e| gst::element_imp_error!(self, gst::LibraryError::Failed, ("{e}")))
            .map_err(|_| gst::FlowError::Error)?;
        let cost = Cost {
            time: outcome.analysis_time,
            gpu_memory: self.vram(),
        };
        FaceTrackMeta::set_cost(buffer.make_mut(), cost);
        self.post_all(outcome.messages);
        if lock(&self.schedule).take_latency_change() {
            // The pipeline queries latencies again. Posting fails only if the element has no bus.
            let message = gst::message::Latency::builder().src(&*self.obj()).build();
            let _ = self.obj().post_message(message);
        }
        Ok(Some(buffer))
    }

    /// Completes the next frame. After a failure the state is gone.
    fn complete_next(&self, drains: bool) -> Option<(gst::Buffer, Outcome)> {
        let mut guard = lock(&self.state);
        let state = guard.as_mut()?;
        let (buffer, outcome) = state.complete_next(drains, &self.schedule)?;
        let failure = match outcome {
            Ok(outcome) => {
                if let Some(line) = state.profile_line(|| self.vram()) {
                    gst::info!(CAT, imp = self, "{line}");
                }
                return Some((buffer, outcome));
            }
            Err(failure) => failure,
        };
        let mut outcome = state.without_analysis(FrameStatus::Error);
        // An engine that panics again has no learned state to save.
        let saved = match contained(|| self.save_learned_of(state)) {
            Err(Failure::Panic(_)) => Ok(()),
            saved => saved,
        };
        let change = state.take_change();
        *guard = None;
        drop(guard);
        drop(change.map(loading::finish));
        self.warn_of_loss(saved);
        self.on_notices(mem::take(&mut outcome.notices), &outcome.report.source);
        self.post_error_message(failure.message());
        Some((buffer, outcome))
    }

    /// Handles the QoS event of a sink.
    fn on_qos(&self, qos: &gst::event::Qos) {
        let (_, _, lateness, time) = qos.get();
        if let Some(time) = time {
            lock(&self.schedule).on_qos(time.into(), lateness);
        }
    }

    /// Queries the latency upstream if it may have changed. No lock is held, because other elements
    /// answer.
    fn update_upstream_latency(&self) {
        if !lock(&self.schedule).take_invalid() {
            return;
        }
        let mut query = gst::query::Latency::new();
        let is_answered = self.obj().sink_pad().peer_query(&mut query);
        let (live, latency, _) = query.result();
        lock(&self.schedule).set_upstream(Upstream {
            live: is_answered && live,
            latency: latency.into(),
        });
    }

    /// Adds the latency of the analysis to the answer of upstream, as decoders do, if the source is
    /// live.
    fn add_latency(&self, answer: &mut gst::query::Latency) {
        let (live, min, max) = answer.result();
        if !live {
            return;
        }
        let own = gst::ClockTime::try_from(lock(&self.schedule).latency());
        let own = own.unwrap_or(gst::ClockTime::MAX);
        let later = |time: gst::ClockTime| time.saturating_add(own);
        answer.set(live, later(min), max.map(later));
    }

    /// The environment, which is read in the change from NULL to READY.
    fn env(&self) -> Environment {
        let active = lock(&self.active);
        let env = active.as_ref().map(|active| active.env.clone());
        env.unwrap_or_else(Environment::of_process)
    }

    /// The measurements of the engine that is set, as loaded or else as described.
    fn capabilities(&self) -> Option<gst::Structure> {
        let env = self.env();
        let options = lock(&self.options).clone();
        let Plan { setup, .. } = Plan::new(&options, &env).ok()?;
        let active = lock(&self.active);
        if let Some(active) = active.as_ref().filter(|active| active.setup == setup) {
            return Some(messages::capabilities(&active.info));
        }
        let info = engine::describe(setup.kind, &setup.config).ok()?;
        Some(messages::capabilities(&info))
    }

    fn stats(&self) -> Option<gst::Structure> {
        let profile = lock(&self.active).as_ref()?.profile.clone();
        let latency = lock(&self.schedule).latency();
        Some(messages::stats(&profile, latency, self.vram()))
    }

    /// The options that results depend on; empty before READY.
    pub(super) fn effective_options(&self) -> Map<String, Value> {
        let kind = lock(&self.active).as_ref().map(|active| active.setup.kind);
        let (options, env) = (lock(&self.options).clone(), self.env());
        kind.map_or_else(Map::new, |kind| options.effective(kind, &env))
    }

    /// A text about the source of the reports; unset before READY.
    fn of_source(&self, text: fn(&ReportSource) -> &String) -> glib::Value {
        let source = lock(&self.active)
            .as_ref()
            .map(|active| active.source.clone());
        source.as_deref().map(text).to_value()
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
        options::properties::<FaceTrackSettings, _>(READINGS)
    }

    fn signals() -> &'static [Signal] {
        Vec::leak(vec![
            // The next frame does not continue those before.
            action("reset", |it| {
                it.forget_frames.store(true, Ordering::Release)
            }),
            action("reset-calibration", FaceTrack::request_calibration_reset),
            // The faces in the next frame are at rest.
            action("set-neutral", |it| {
                it.learn_neutral.store(true, Ordering::Release)
            }),
        ])
    }

    fn set_property(&self, id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
        // Changes that are late are found between two frames, because an engine that is set with
        // them uses them.
        options::set_checked(&*self.obj(), &self.options, id, value);
    }

    fn constructed(&self) {
        self.parent_constructed();
        // Otherwise the base class removes the flag from buffers.
        self.obj().set_gap_aware(true);
        element::report_refused_caps(self.obj().sink_pad());
    }

    fn property(&self, id: usize, _spec: &glib::ParamSpec) -> glib::Value {
        options::property(self, &self.options, READINGS, id)
    }
}

/// An action signal.
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
        element::metadata(
            "Face tracker",
            "Filter/Analyzer/Video",
            "Tracks faces and attaches boxes, landmarks, blendshapes, gaze and head pose as metadata",
        )
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        element::filter_templates(&video::caps())
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if transition == gst::StateChange::NullToReady
            && let Err(failure) = self.prepare(Environment::of_process())
        {
            self.post_error_message(failure.message());
            return Err(gst::StateChangeError);
        }
        let success = self.parent_change_state(transition)?;
        if transition == gst::StateChange::ReadyToNull {
            self.unload();
        }
        Ok(success)
    }
}

impl BaseTransformImpl for FaceTrack {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        self.prepare(self.env())
            .map_err(|failure| failure.message())?;
        self.forget_frames.store(false, Ordering::Release);
        self.learn_neutral.store(false, Ordering::Release);
        *lock(&self.schedule) = Schedule::default();
        if let Some(state) = lock(&self.state).as_mut() {
            state.restart();
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        self.save_learned();
        let change = lock(&self.state).as_mut().and_then(|state| {
            state.reset();
            state.take_change()
        });
        // The thread of an engine that is loading ends before the stream.
        drop(change.map(loading::finish));
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(incaps)
            .map_err(|_| gst::loggable_error!(CAT, "{incaps} are not caps of raw video"))?;
        if video::ignores_pixel_aspect_ratio(&info) {
            let ratio = info.par();
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                ("the pixel aspect ratio {ratio} is implausible: frames are analysed as if their pixels were square. Put `capssetter caps=video/x-raw,pixel-aspect-ratio=1/1` before facetrack, or the ratio that the video has")
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
        let held = lock(&self.state).as_ref().map_or(0, State::max_in_flight);
        if held > 0 {
            // A pool upstream needs this number of additional buffers.
            let size = query
                .get_owned()
                .0
                .and_then(|caps| gst_video::VideoInfo::from_caps(&caps).ok());
            let size = size.map_or(0, |info| info.size() as u32);
            query.add_allocation_pool(None::<&gst::BufferPool>, size, held as u32, 0);
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if event.type_() == gst::EventType::FlushStart {
            // The event is not serialized, and does not wait for the analysis of a frame.
            return self.parent_sink_event(event);
        }
        if event.is_serialized() && event.type_() != gst::EventType::FlushStop {
            self.drain_before(event.type_().name());
        }
        let (mut left, mut turn) = (Vec::new(), None);
        if let Some(state) = lock(&self.state).as_mut() {
            match event.view() {
                gst::EventView::StreamStart(_) => {
                    state.orientation = Orientation::default();
                    state.reset();
                }
                gst::EventView::Tag(event) => turn = state.orientation.update(event.tag()),
                gst::EventView::FlushStop(_) => state.reset(),
                gst::EventView::Segment(event) => state.set_segment(event.segment()),
                gst::EventView::Eos(_) => left = state.end(),
                _ => (),
            }
        }
        if let gst::EventType::FlushStop | gst::EventType::Segment = event.type_() {
            lock(&self.schedule).reset();
        }
        self.post_all(left);
        turn.iter().for_each(|turn| self.warn_of_turn(turn));
        if event.type_() == gst::EventType::Eos {
            self.save_learned();
        }
        self.parent_sink_event(event)
    }

    fn src_event(&self, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::Qos(qos) => {
                self.on_qos(qos);
                // The event makes decoders and the base class drop frames.
                let obj = self.obj();
                return !obj.is_qos() || obj.sink_pad().push_event(event);
            }
            gst::EventView::Latency(_) => lock(&self.schedule).invalidate_latency(),
            _ => (),
        }
        self.parent_src_event(event)
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        let from_upstream = direction == gst::PadDirection::Sink;
        if from_upstream && query.is_serialized() {
            self.drain_before(query.type_().name());
        }
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

    fn submit_input_buffer(
        &self,
        is_discont: bool,
        inbuf: gst::Buffer,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let success = self.parent_submit_input_buffer(is_discont, inbuf)?;
        if let Some(buffer) = self.take_queued_buffer() {
            self.admit(buffer)?;
        }
        Ok(success)
    }

    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        let analyzed = self.take_analyzed(false)?;
        Ok(analyzed.map_or(
            GenerateOutputSuccess::NoOutput,
            GenerateOutputSuccess::Buffer,
        ))
    }
}
