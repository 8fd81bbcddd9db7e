// SPDX-License-Identifier: MPL-2.0
/**
 * SECTION:element-trackjsonsink
 *
 * trackjsonsink writes the faces found by `facetrack` as JSON: one object with a header and one
 * line per frame (`dense`), the same as separate lines for pipes and live use (`jsonl`), or ids and
 * positions only (`reduced`).
 *
 * Every decoded frame has a line, including frames without a face and frames that were not
 * analysed. Frames are numbered from 1 without gaps. Frame N is the Nth frame that ffmpeg and OpenCV
 * read from the file. Decoders deliver a few frames more, which are not counted: the frame before
 * the start of an MP4 edit list, and damaged frames before the first key frame. An empty frame is filled in for each frame that is
 * known to be lost: after an interruption (a buffer with the flag GST_BUFFER_FLAG_DISCONT, if time
 * has passed), in a GAP event with the flag GST_GAP_FLAG_MISSING_DATA, and where late frames may be
 * dropped (properties `qos` and `max-lateness`). Uneven timestamps do not count as a loss;
 * #GstTrackJsonSink:fill-by can fill by time instead. Gaps of more than 60 s are not filled. `pts`
 * is the stream time. It is 0 for the first frame of a file, even if its timestamps begin later.
 *
 * While a dense or reduced file is written, it is named `<name>.partial`. It is renamed at
 * end-of-stream. If the stream breaks off, the partial file stays; it is valid JSON, and a warning
 * names it. The next run to the same location moves it to `<name>.partial.old`, and removes it when
 * its own record is finished. A file with its final name may still lack frames, if the video was
 * cut off or damaged, or if frames were dropped because a sink was late. In this case `complete` in
 * its metadata is false, and `incomplete_reason` and a warning report what is missing. The element
 * compares the received frames with the duration and the size that the container states, and counts
 * the flags of decoders and their reports of dropped frames. A stream without a single frame is an
 * error.
 *
 * When the file has its final name, the element posts an element message named `trackjsonsink-done`
 * with the fields `location` (string), `frames`, `faces`, `gap-frames`, `decode-errors`,
 * `corrupted-frames` and `dropped-frames` (uint64), `complete` (boolean), and where they apply
 * `incomplete-reason` (string) and `expected-frames` (uint64).
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! trackjsonsink location=clip.json
 * ]|
 * Writes the faces of a video to a file.
 *
 * |[
 * gst-launch-1.0 -m filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! trackjsonsink location=clip.json fields=pose+landmarks
 * ]|
 * Adds pose and landmarks, and prints the message at the end.
 *
 * |[
 * gst-launch-1.0 -q filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! trackjsonsink | head -n 3
 * ]|
 * Prints the header and the first two frames.
 */
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gst::{LibraryError, ResourceError, StreamError, error_msg, glib};
use gst_base::prelude::*;
use gst_base::subclass::prelude::*;

use super::config::Config;
use super::error::OutputError;
use super::recording::Recording;
use super::{CAT, DECODE_ERRORS, upstream};
use crate::options::{self, EnvWarning, Environment, JsonSinkSettings, Options};
use crate::{element, shown};
use facetrack::record::{Completeness, Metadata, Totals};
use facetrack_assets::file;
use facetrack_assets::lock::lock;
use serde_json::{Map, Value};

/// State of the element, which decides how buffers are handled.
#[derive(Default)]
enum State {
    /// The element is not started.
    #[default]
    Stopped,
    /// Buffers are recorded.
    Recording(Box<Recording>),
    /// The record is complete: buffers after end-of-stream are dropped.
    Finished,
    /// Writing failed: buffers are refused.
    Failed,
}

/// The element. No two of these locks are held at once.
#[derive(Default)]
pub struct TrackJsonSink {
    options: Mutex<Options<JsonSinkSettings>>,
    /// Environment at the change from NULL to READY.
    environment: Mutex<Environment>,
    state: Mutex<State>,
    /// True while the pipeline requests the streaming thread, which may hold `state`.
    unlocked: Arc<AtomicBool>,
    /// True from the beginning of a stop to the next start, since the base class requests the
    /// thread only for a moment.
    stopping: AtomicBool,
    frames: AtomicU64,
    faces: AtomicU64,
}

type Reading = options::Reading<TrackJsonSink>;

/// The properties that can only be read.
const READINGS: &[Reading] = &[
    Reading::count("frames", |it| options::count(&it.frames)).blurb("Number of recorded frames"),
    Reading::count("faces", |it| options::count(&it.faces))
        .blurb("Number of recorded faces, summed over all frames"),
];

impl TrackJsonSink {
    /// The configuration from the settings and the remembered environment.
    fn config(&self) -> (Result<Config, OutputError>, Vec<EnvWarning>) {
        let environment = lock(&self.environment).clone();
        let options = lock(&self.options).clone();
        let (settings, warnings) = options.resolve(None, &environment);
        (Config::new(settings), warnings)
    }

    /// The options that shape the record.
    pub(super) fn effective_options(&self) -> Map<String, Value> {
        let options = lock(&self.options).clone();
        let (settings, _) = options.resolve(None, &Environment::of_process());
        options::shaping(&settings)
    }

    /// Sets the stream time at which the video begins that is recorded, ns, before a part of it
    /// comes.
    pub(super) fn begin_video_at(&self, start: u64) {
        if let State::Recording(recording) = &mut *lock(&self.state) {
            recording.following.times.start_at(start);
        }
    }

    /// Returns true while a frame is recorded, because the state is locked then.
    pub(super) fn is_recording(&self) -> bool {
        self.state.try_lock().is_err()
    }

    /// Notes that the stream ends before the video.
    pub(super) fn end_early(&self) {
        if let State::Recording(recording) = &mut *lock(&self.state) {
            recording.following.ends_early = true;
        }
    }

    /// Checks the settings before anything starts.
    fn prepare(&self) -> Result<(), OutputError> {
        *lock(&self.environment) = Environment::of_process();
        let (config, warnings) = self.config();
        for warning in warnings {
            gst::element_imp_warning!(self, LibraryError::Settings, ("{warning}"));
        }
        let config = config?;
        config.destination.check(&config.settings)
    }

    fn open(&self) -> Result<(), OutputError> {
        self.stopping.store(false, Ordering::Relaxed);
        self.unlocked.store(false, Ordering::Relaxed);
        let config = self.config().0?;
        let path = config.destination.partial();
        gst::info!(CAT, imp = self, "recording to {}", path.display());
        let recording = Recording::open(config, self.unlocked.clone(), &self.obj())?;
        *lock(&self.state) = State::Recording(Box::new(recording));
        self.count(Totals::default());
        Ok(())
    }

    /// Calls `work` with the record, if there is one. An error ends the record and is posted.
    fn record<T: Default>(
        &self,
        work: impl FnOnce(&mut Recording) -> Result<T, OutputError>,
    ) -> Result<T, gst::FlowError> {
        let mut state = lock(&self.state);
        let recording = match &mut *state {
            State::Recording(recording) => recording,
            State::Finished => {
                gst::debug!(
                    CAT,
                    imp = self,
                    "buffer dropped, because the record ended with end-of-stream"
                );
                return Ok(T::default());
            }
            State::Stopped | State::Failed => return Err(gst::FlowError::Error),
        };
        let result = work(recording);
        self.count(recording.record.totals());
        result.map_err(|error| {
            if matches!(error, OutputError::Interrupted) {
                return gst::FlowError::Flushing;
            }
            let broken = std::mem::replace(&mut *state, State::Failed);
            drop(state);
            self.post_error_message(output_error(&error));
            self.abandon(broken);
            gst::FlowError::Error
        })
    }

    /// Ends the record. Returns false if that fails: an error is posted, and the end-of-stream is
    /// not passed on.
    fn finish(&self) -> bool {
        let state = std::mem::replace(&mut *lock(&self.state), State::Finished);
        let State::Recording(mut recording) = state else {
            let failed = matches!(state, State::Failed);
            *lock(&self.state) = state;
            return !failed;
        };
        let element = self.obj();
        let pad = element.sink_pad();
        let is_empty = recording.record.totals().frames == 0;
        if is_empty || recording.is_broken() {
            *lock(&self.state) = State::Failed;
            if is_empty {
                self.post_error_message(no_frames(pad));
            }
            self.abandon(State::Recording(recording));
            // Programs wait for this message if a record was interrupted.
            return !is_empty;
        }
        if recording.missing_meta.end() {
            self.warn_missing_meta();
        }
        let promise = upstream::promise(pad, &recording.following);
        let location = recording.config.destination.name();
        match recording.finish(&promise, upstream::ending(pad)) {
            Ok((metadata, totals)) => {
                self.announce(&location, &metadata, totals);
                true
            }
            Err(error) => {
                *lock(&self.state) = State::Failed;
                self.post_error_message(output_error(&error));
                false
            }
        }
    }

    /// Posts that the record is finished, and what it lacks.
    fn announce(&self, location: &Path, metadata: &Metadata, totals: Totals) {
        let location = location.display().to_string();
        let (frames, faces) = (totals.frames, totals.faces);
        let completeness = &metadata.completeness;
        let complete = completeness.is_complete();
        let reason = completeness.reason.as_ref();
        if let Some(reason) = reason.filter(|_| !completeness.is_ended_early) {
            let video = Some(metadata.video_path.as_str()).filter(|video| !video.is_empty());
            let video = video.unwrap_or("the video");
            gst::element_imp_warning!(
                self,
                StreamError::Decode,
                (
                    "{video} is incomplete: {reason}. {location} has the {frames} frames that could be read, and \"complete\":false. {}",
                    remedy(completeness)
                )
            );
        }
        gst::info!(
            CAT,
            imp = self,
            "{location} is finished: {frames} frames, {faces} faces, complete: {complete}"
        );
        let done = gst::Structure::builder("trackjsonsink-done")
            .field("location", location)
            .field("frames", frames)
            .field("faces", faces)
            .field("complete", complete)
            .field_if_some("incomplete-reason", completeness.reason.as_deref())
            .field_if_some("expected-frames", completeness.expected_frames)
            .field("gap-frames", totals.padded)
            .field("decode-errors", completeness.decode_errors)
            .field("corrupted-frames", completeness.corrupted)
            .field("dropped-frames", completeness.dropped)
            .build();
        element::post(self.obj().upcast_ref(), done);
    }

    fn warn_missing_meta(&self) {
        gst::element_imp_warning!(
            self,
            StreamError::Failed,
            ("no frame has metadata of facetrack, so the record has no faces. Put facetrack or trackjsonload before trackjsonsink")
        );
    }

    /// Makes an unfinished record readable, and reports its path.
    fn abandon(&self, state: State) {
        let State::Recording(recording) = state else {
            return;
        };
        let warning = match recording.abandon() {
            Ok(None) => return,
            Ok(Some((path, frames))) => format!(
                "the record is incomplete. Its {frames} frames are kept in {}",
                path.display()
            ),
            Err(error) => error.to_string(),
        };
        gst::element_imp_warning!(self, ResourceError::Close, ("{warning}"));
    }

    fn count(&self, totals: Totals) {
        self.frames.store(totals.frames, Ordering::Relaxed);
        self.faces.store(totals.faces, Ordering::Relaxed);
    }

    /// The video's path, or its URI, where an element upstream knows it.
    fn video_path(&self) -> Option<String> {
        let uri = shown::uri(self.obj().sink_pad())?;
        let path = shown::path(&uri).map(|path| path.display().to_string());
        Some(path.unwrap_or_else(|| shown::without_password(&uri)))
    }
}

/// Returns the way to record all of the video.
fn remedy(completeness: &Completeness) -> &'static str {
    if completeness.lacks_only_dropped_frames {
        "Record it without a sink that waits for the clock (sync=false), or let sinks branch off behind facetrack, without qos=true"
    } else {
        "Record an undamaged copy if there is one"
    }
}

/// Decoding errors that an application reports.
fn reported_errors(event: &gst::event::CustomDownstreamOob) -> u64 {
    let report = event.structure().filter(|it| it.has_name(DECODE_ERRORS));
    report.and_then(|it| it.get("count").ok()).unwrap_or(0)
}

/// Returns the reason why nothing is recorded.
fn no_frames(pad: &gst::Pad) -> gst::ErrorMessage {
    let what = match pad.current_caps() {
        Some(_) => "no frame had come",
        None => "no video had come",
    };
    error_msg!(
        StreamError::Failed,
        ("the stream ended and {what}, so nothing is recorded. Check the video and the messages of the elements before this one")
    )
}

fn output_error(error: &OutputError) -> gst::ErrorMessage {
    use OutputError::*;
    match error {
        Profile(_) => error_msg!(LibraryError::Settings, ("{error}")),
        NeedsFile(_) | NotRegular(..) => error_msg!(ResourceError::Settings, ("{error}")),
        Exists(_) | Folder(_) | Special(_) | Create(..) => {
            error_msg!(ResourceError::OpenWrite, ("{error}"))
        }
        Busy(_) => error_msg!(ResourceError::Busy, ("{error}")),
        Write(_, source) if file::is_full(source) => {
            error_msg!(ResourceError::NoSpaceLeft, ("{error}"))
        }
        Write(..) | Interrupted => error_msg!(ResourceError::Write, ("{error}")),
        Rename(..) | Vanished(..) | Lost(..) | Sync(..) => {
            error_msg!(ResourceError::Close, ("{error}"))
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for TrackJsonSink {
    const NAME: &'static str = "GstTrackJsonSink";
    type Type = super::TrackJsonSink;
    type ParentType = gst_base::BaseSink;
}

impl ObjectImpl for TrackJsonSink {
    fn properties() -> &'static [glib::ParamSpec] {
        options::properties::<JsonSinkSettings, _>(READINGS)
    }

    fn set_property(&self, id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
        options::set_property(&*self.obj(), &self.options, id, value);
    }

    fn property(&self, id: usize, _spec: &glib::ParamSpec) -> glib::Value {
        options::property(self, &self.options, READINGS, id)
    }

    fn constructed(&self) {
        self.parent_constructed();
        // Like other sinks that write files, this one takes data as fast as it comes.
        self.obj().set_sync(false);
    }
}

impl GstObjectImpl for TrackJsonSink {}

impl ElementImpl for TrackJsonSink {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        element::metadata(
            "Tracking JSON sink",
            "Sink/Video/Metadata",
            "Writes the faces found by facetrack as JSON, one line per frame",
        )
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        element::sink_templates(&element::any_video())
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
            self.post_error_message(output_error(&error));
            return Err(gst::StateChangeError);
        }
        let is_stopping = transition == gst::StateChange::PausedToReady;
        if is_stopping {
            self.stopping.store(true, Ordering::Relaxed);
            self.unlocked.store(true, Ordering::Relaxed);
        }
        let result = self.parent_change_state(transition);
        let not_started = transition == gst::StateChange::ReadyToPaused && result.is_err();
        if is_stopping || not_started {
            let state = std::mem::take(&mut *lock(&self.state));
            self.abandon(state);
        }
        result
    }
}

impl BaseSinkImpl for TrackJsonSink {
    fn set_caps(&self, caps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let path = self.video_path();
        let is_live = upstream::is_live(self.obj().sink_pad());
        let movie = shown::movie_at(self.obj().sink_pad());
        let fingerprint = shown::fingerprint_at(self.obj().sink_pad());
        if let State::Recording(recording) = &mut *lock(&self.state) {
            recording.following.shown.set_movie(movie);
            recording.set_caps(caps, is_live, path, fingerprint);
        }
        Ok(())
    }

    /// Accepts frames of any memory layout, because their pixels are not read. Without this,
    /// decoders would copy them into packed frames.
    fn propose_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        query.add_allocation_meta::<gst_video::VideoMeta>(None);
        Ok(())
    }

    fn render(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let sink = self.obj();
        let may_drop = sink.is_qos() || sink.max_lateness() >= 0;
        let should_warn = self.record(|recording| recording.buffer(buffer, may_drop))?;
        if should_warn {
            self.warn_missing_meta();
        }
        Ok(gst::FlowSuccess::Ok)
    }

    fn unlock(&self) -> Result<(), gst::ErrorMessage> {
        self.unlocked.store(true, Ordering::Relaxed);
        self.parent_unlock()
    }

    fn unlock_stop(&self) -> Result<(), gst::ErrorMessage> {
        let stopping = self.stopping.load(Ordering::Relaxed);
        self.unlocked.store(stopping, Ordering::Relaxed);
        self.parent_unlock_stop()
    }

    fn event(&self, event: gst::Event) -> bool {
        let note = |work: &dyn Fn(&mut Recording)| {
            self.record(|recording| {
                work(recording);
                Ok(())
            })
        };
        let done = match event.view() {
            gst::EventView::Segment(event) => note(&|record| record.begin(event.segment())),
            gst::EventView::FlushStop(_) => note(&Recording::flush),
            gst::EventView::Tag(event) => {
                note(&|record| record.read_tags(event.tag(), self.obj().sink_pad()))
            }
            gst::EventView::CustomDownstreamOob(event) => {
                note(&|record| record.following.decode_errors += reported_errors(event))
            }
            gst::EventView::Gap(gap) => self.record(|recording| recording.gap(gap)),
            gst::EventView::Eos(_) if !self.finish() => Err(gst::FlowError::Error),
            _ => Ok(()),
        };
        done.is_ok() && self.parent_event(event)
    }
}
