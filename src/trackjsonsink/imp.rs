// SPDX-License-Identifier: MPL-2.0
/**
 * SECTION:element-trackjsonsink
 *
 * Writes the faces that `facetrack` found as JSON: one object with a head and a line for each frame (`dense`), the same as
 * lines for pipes and live use (`jsonl`), or ids and positions alone (`reduced`).
 *
 * Every frame has its line, numbered from 1 without a hole: also frames without a face, frames that were not analysed, and
 * frames that are missing in the stream, which are filled in from timestamps and GAP events.
 *
 * A dense or reduced file is written under its name and `.partial` and renamed at end-of-stream, so a file with the name
 * itself is whole. When the stream breaks off, the partial file stays, is valid JSON, and a warning names it.
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! trackjsonsink location=clip.json
 * ]|
 * Writes what is known of the faces into a file.
 *
 * |[
 * gst-launch-1.0 -q filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! trackjsonsink | head -n 3
 * ]|
 * Prints the head and the first two frames.
 */
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::prelude::*;

use super::TrackJsonSinkFormat;
use super::config::{Config, ConfigError};
use super::output::OutputError;
use super::recording::{Abandoned, Recording};
use crate::face::options::trackjsonsink::TRACKJSONSINK;
use crate::face::options::{EnvWarning, Settings};
use crate::lock::lock;
use crate::{element, properties};

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "trackjsonsink",
        gst::DebugColorFlags::empty(),
        Some("Tracking JSON sink"),
    )
});

/// The environment's say, as it was at NULL→READY.
type Environment = HashMap<&'static str, String>;

/// What becomes of buffers.
#[derive(Default)]
enum State {
    /// The element is not started.
    #[default]
    Stopped,
    /// They are recorded.
    Recording(Box<Recording>),
    /// The record is whole: what comes after end-of-stream is dropped.
    Finished,
    /// The record is broken: they are refused.
    Failed,
}

/// No two of these locks are held at once.
pub struct TrackJsonSink {
    settings: Mutex<Settings>,
    environment: Mutex<Environment>,
    state: Mutex<State>,
    frames: AtomicU64,
    faces: AtomicU64,
}

impl Default for TrackJsonSink {
    fn default() -> Self {
        Self {
            settings: Mutex::new(Settings::new(TRACKJSONSINK)),
            environment: Mutex::default(),
            state: Mutex::default(),
            frames: AtomicU64::new(0),
            faces: AtomicU64::new(0),
        }
    }
}

impl TrackJsonSink {
    /// What the settings and the remembered environment make.
    fn config(&self) -> (Result<Config, ConfigError>, Vec<EnvWarning>) {
        let environment = lock(&self.environment).clone();
        let settings = lock(&self.settings).clone();
        let (options, warnings) = settings.resolve(None, &|name| environment.get(name).cloned());
        (Config::new(&options), warnings)
    }

    /// Finds what is wrong before anything starts.
    fn prepare(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.environment) = read_environment();
        let (config, warnings) = self.config();
        for warning in warnings {
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ["{warning}"]);
        }
        let config = config.map_err(|error| config_error(&error))?;
        config
            .destination
            .check(config.existing)
            .map_err(|error| output_error(&error))
    }

    fn open(&self) -> Result<(), gst::ErrorMessage> {
        let config = self.config().0.map_err(|error| config_error(&error))?;
        gst::info!(
            CAT,
            imp = self,
            "recording to {}",
            config.destination.partial().display()
        );
        let recording = Recording::open(config).map_err(|error| output_error(&error))?;
        *lock(&self.state) = State::Recording(Box::new(recording));
        self.count(0, 0);
        Ok(())
    }

    /// Lets `work` have the record, where there is one. An error ends it and is posted.
    fn record(
        &self,
        work: impl FnOnce(&mut Recording) -> Result<(), OutputError>,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut state = lock(&self.state);
        let recording = match &mut *state {
            State::Recording(recording) => recording,
            State::Finished => {
                gst::debug!(
                    CAT,
                    imp = self,
                    "dropped: the record ended with end-of-stream"
                );
                return Ok(gst::FlowSuccess::Ok);
            }
            State::Stopped | State::Failed => return Err(gst::FlowError::Error),
        };
        let result = work(recording);
        let totals = recording.totals();
        self.count(totals.frames, totals.faces);
        let Err(error) = result else {
            return Ok(gst::FlowSuccess::Ok);
        };
        let broken = std::mem::replace(&mut *state, State::Failed);
        drop(state);
        self.post_error_message(output_error(&error));
        self.abandon(broken);
        Err(gst::FlowError::Error)
    }

    /// Ends the record. `false` when that fails: an error is posted, and the end goes no further.
    fn finish(&self) -> bool {
        let state = std::mem::replace(&mut *lock(&self.state), State::Finished);
        let State::Recording(recording) = state else {
            let failed = matches!(state, State::Failed);
            *lock(&self.state) = state;
            return !failed;
        };
        let has_video = self.obj().sink_pad().current_caps().is_some();
        if !has_video {
            self.post_error_message(gst::error_msg!(
                gst::StreamError::Failed,
                ["the stream ended and no video had come: nothing is recorded. The elements before this one tell why"]
            ));
        }
        if !has_video || recording.is_broken() {
            *lock(&self.state) = State::Failed;
            self.abandon(State::Recording(recording));
            // Who waits for the end of a record that broke off waits for this one.
            return has_video;
        }
        let Err(error) = recording.finish() else {
            return true;
        };
        *lock(&self.state) = State::Failed;
        self.post_error_message(output_error(&error));
        false
    }

    /// Makes a record that is not finished readable, and tells where it is.
    fn abandon(&self, state: State) {
        let State::Recording(recording) = state else {
            return;
        };
        match recording.abandon() {
            Ok(Abandoned::Nothing) => (),
            Ok(Abandoned::Kept(path, frames)) => {
                let path = path.display();
                gst::element_imp_warning!(
                    self,
                    gst::ResourceError::Close,
                    ["the record is not complete: its {frames} frames are kept in {path}"]
                );
            }
            Err(error) => {
                gst::element_imp_warning!(self, gst::ResourceError::Close, ["{error}"]);
            }
        }
    }

    fn count(&self, frames: u64, faces: u64) {
        self.frames.store(frames, Ordering::Relaxed);
        self.faces.store(faces, Ordering::Relaxed);
    }

    /// The video's path, or its URI, where an element upstream knows it.
    fn video_path(&self) -> Option<String> {
        let mut query = gst::query::Uri::new();
        if !self.obj().sink_pad().peer_query(&mut query) {
            return None;
        }
        let uri = query.uri()?;
        let path = glib::filename_from_uri(&uri).ok();
        Some(path.map_or_else(|| uri.to_string(), |(path, _)| path.display().to_string()))
    }
}

/// Variables of the table that are set.
fn read_environment() -> Environment {
    TRACKJSONSINK
        .iter()
        .flat_map(|option| option.env)
        .filter_map(|default| Some((default.variable, std::env::var(default.variable).ok()?)))
        .collect()
}

fn config_error(error: &ConfigError) -> gst::ErrorMessage {
    match error {
        ConfigError::Profile(error) => {
            gst::error_msg!(gst::LibraryError::Settings, ["{error}"])
        }
        ConfigError::Output(error) => output_error(error),
    }
}

fn output_error(error: &OutputError) -> gst::ErrorMessage {
    let code = match error {
        OutputError::NeedsFile(_) | OutputError::NotRegular { .. } => gst::ResourceError::Settings,
        OutputError::Exists(_)
        | OutputError::Folder(_)
        | OutputError::Busy(_)
        | OutputError::Create { .. } => gst::ResourceError::OpenWrite,
        OutputError::Write { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            gst::ResourceError::NoSpaceLeft
        }
        OutputError::Write { .. } => gst::ResourceError::Write,
        OutputError::Rename { .. } | OutputError::Vanished { .. } => gst::ResourceError::Close,
    };
    gst::error_msg!(code, ["{error}"])
}

#[glib::object_subclass]
impl ObjectSubclass for TrackJsonSink {
    const NAME: &'static str = "GstTrackJsonSink";
    type Type = super::TrackJsonSink;
    type ParentType = gst_base::BaseSink;
}

impl ObjectImpl for TrackJsonSink {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            properties::param_specs(
                TRACKJSONSINK,
                properties::choice_spec::<TrackJsonSinkFormat>,
            )
        });
        &PROPERTIES
    }

    fn set_property(&self, _id: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        lock(&self.settings).set(spec.name(), properties::from_glib(value));
    }

    fn property(&self, _id: usize, spec: &glib::ParamSpec) -> glib::Value {
        let value = match spec.name() {
            "frames" => properties::count(&self.frames),
            "faces" => properties::count(&self.faces),
            name => lock(&self.settings).get(name, None),
        };
        properties::to_glib(value, spec)
    }

    fn constructed(&self) {
        self.parent_constructed();
        // As other sinks that write files: as fast as the data comes.
        self.obj().set_sync(false);
    }
}

impl GstObjectImpl for TrackJsonSink {}

impl ElementImpl for TrackJsonSink {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Tracking JSON sink",
                "Sink/Video/Metadata",
                "Writes the faces that facetrack found as JSON, a line for each frame",
                element::AUTHOR,
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
            LazyLock::new(|| element::sink_templates(&element::any_video()));
        &TEMPLATES
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        let prepared = match transition {
            gst::StateChange::NullToReady => self.prepare(),
            gst::StateChange::ReadyToPaused => self.open(),
            _ => Ok(()),
        };
        if let Err(error) = prepared {
            self.post_error_message(error);
            return Err(gst::StateChangeError);
        }
        let result = self.parent_change_state(transition);
        let stopped = transition == gst::StateChange::PausedToReady;
        let not_started = transition == gst::StateChange::ReadyToPaused && result.is_err();
        if stopped || not_started {
            let state = std::mem::take(&mut *lock(&self.state));
            self.abandon(state);
        }
        result
    }
}

impl BaseSinkImpl for TrackJsonSink {
    fn set_caps(&self, caps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let path = self.video_path();
        if let State::Recording(recording) = &mut *lock(&self.state) {
            recording.set_caps(caps);
            if let Some(path) = path {
                recording.set_video_path(path);
            }
        }
        Ok(())
    }

    /// Frames of any layout are welcome, as none is read; without this, decoders copy them into packed ones.
    fn propose_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        query.add_allocation_meta::<gst_video::VideoMeta>(None);
        Ok(())
    }

    fn render(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.record(|recording| recording.buffer(buffer))
    }

    fn event(&self, event: gst::Event) -> bool {
        let done = match event.view() {
            gst::EventView::Segment(_) | gst::EventView::FlushStop(_) => self.record(|recording| {
                recording.reset_time();
                Ok(())
            }),
            gst::EventView::Gap(gap) => {
                let (start, duration) = gap.get();
                self.record(|recording| recording.gap(start, duration))
            }
            gst::EventView::Eos(_) if !self.finish() => Err(gst::FlowError::Error),
            _ => Ok(gst::FlowSuccess::Ok),
        };
        done.is_ok() && self.parent_event(event)
    }
}
