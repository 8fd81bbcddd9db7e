// SPDX-License-Identifier: MPL-2.0
//! Plays a video from its file to its record.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use facetrack::printable::Line;
use facetrack::record::container::Movie;
use facetrack::record::joining::Stated;
use facetrack_jobs::{Answer, Cause, Outcome, Progress, Segment, Status, TrackRequest, send};
use gst::glib;
use gst_base::prelude::*;
use gstfacetrack::facetrack::FaceTrack;
use gstfacetrack::shown;
use gstfacetrack::trackjsonsink::TrackJsonSink;
use gstfacetrack::video;
use rustix::time::{ClockId, clock_gettime};

use crate::engine::Engine;
use crate::liveness::{Parts, Watch};
use crate::overlap::{Edges, Overlap};
use crate::requests::Requests;
use crate::{branch, damage, ending, faults, measure, pictures, streams};

/// Maximum time to wait for a message before requests are checked.
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(50);

/// Interval of progress messages. Our choice: a bar that moves twice a second.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Time between the target of a seek and the part. Decoders shorten the frame that is shown at the
/// target of a seek, so this frame begins before the part, and is left out. Our choice: any time
/// would do.
const BEFORE_PART: gst::ClockTime = gst::ClockTime::from_mseconds(1);

/// Message of the pipeline: the decoder has announced all streams.
const STREAMS_KNOWN: &str = "facetrack-worker-streams";

/// Tracks a video. The engine stays loaded.
pub(crate) fn track(engine: &Engine, job: &TrackRequest, requests: &Requests) -> Outcome {
    let before = cpu_time();
    let outcome = play(engine, job, requests);
    engine.restore_device();
    let failed = |message| Outcome::without_record(Status::Failed, message);
    Outcome {
        cpu_seconds: (cpu_time() - before).as_secs_f64(),
        ..outcome.unwrap_or_else(failed)
    }
}

/// Plays a video, and once more if no video was found in it.
fn play(engine: &Engine, job: &TrackRequest, requests: &Requests) -> Result<Outcome, String> {
    let outcome = Playback::new(engine, job)?.run(requests);
    if outcome.status != Status::NoVideo {
        return Ok(outcome);
    }
    let mut again = Playback::new(engine, job)?;
    again.show_short_tracks();
    Ok(again.run(requests))
}

/// CPU time of the process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// A pipeline that plays a video.
struct Playback {
    pipeline: gst::Pipeline,
    video: PathBuf,
    decoder: gst::Element,
    facetrack: FaceTrack,
    sink: TrackJsonSink,
    segment: Segment,
    warm_up: Option<gst::ClockTime>,
    /// Statements of the container about the whole video.
    stated: Stated,
    overlap: Option<Overlap>,
    missing: Option<String>,
    record: Option<Outcome>,
    watch: Watch,
}

impl Playback {
    fn new(engine: &Engine, job: &TrackRequest) -> Result<Self, String> {
        let pipeline = gst::Pipeline::new();
        let file = make("filesrc")?;
        file.set_property("location", &job.video);
        let decoder = make("decodebin")?;
        let (facetrack, sink) = (engine.facetrack.clone(), engine.sink());
        sink.set_property("location", job.record.display().to_string());
        sink.set_property("overwrite", true);
        sink.set_property("video-path", &job.name);
        let elements: [&gst::Element; 4] =
            [&file, &decoder, facetrack.upcast_ref(), sink.upcast_ref()];
        let added = pipeline.add_many(elements);
        let linked = added.and_then(|()| file.link(&decoder));
        let linked = linked.and_then(|()| facetrack.link(&sink));
        linked.map_err(|error| error.to_string())?;
        // Every video starts in the same state.
        facetrack.emit_by_name::<()>("reset-calibration", &[]);
        branch::restrict(&decoder, engine.decoder_threads);
        damage::report_to(&sink, job.segment);
        let parts = Parts {
            file: &file,
            decoder: &decoder,
            facetrack: &facetrack,
            sink: &sink,
        };
        let watch = Watch::over(&parts, &job.video);
        let movie = shown::movie(&job.video);
        expect_streams(
            &pipeline,
            &decoder,
            facetrack.sink_pad().clone(),
            &sink,
            job,
            &movie,
        );
        let stated = Stated {
            frames: movie.frames,
            period: movie.period,
            ..Stated::default()
        };
        Ok(Self {
            overlap: first_part(job, facetrack.src_pad(), movie),
            pipeline,
            video: job.video.clone(),
            decoder,
            facetrack,
            sink,
            segment: job.segment,
            warm_up: job.warm_up.map(clock_time),
            stated,
            missing: None,
            record: None,
            watch,
        })
    }

    /// Plays tracks that are much shorter than the file, too.
    fn show_short_tracks(&self) {
        let input = self.decoder.static_pad("sink");
        let source = input.and_then(|input| input.peer());
        source.iter().for_each(faults::hide_movie_duration);
    }

    fn run(&mut self, requests: &Requests) -> Outcome {
        // An error message has the reason why the pipeline does not start.
        let _ = self.pipeline.set_state(gst::State::Playing);
        let mut outcome = self.wait(requests);
        outcome.video_seconds = self.tracked_seconds();
        if let Some(overlap) = &self.overlap {
            let seen = overlap.take();
            (outcome.before, outcome.last) = (seen.before, seen.last);
            outcome.decode_errors += u64::from(seen.starts_interrupted);
        }
        if self.warm_up.is_some() {
            outcome.stated = Some(Stated {
                rate: self.nominal_rate(),
                ..self.stated
            });
        }
        if !outcome.status.has_record() {
            outcome.frames = self.frames();
        }
        self.watch.conclude(&outcome);
        outcome
    }

    /// Frames per second that the stream states.
    fn nominal_rate(&self) -> Option<f64> {
        let caps = self.sink.sink_pad().current_caps()?;
        let (frames, seconds) = video::rate(&caps).filter(|(frames, _)| *frames > 0)?;
        Some(f64::from(frames) / f64::from(seconds))
    }

    /// Waits until the video ends.
    fn wait(&mut self, requests: &Requests) -> Outcome {
        let bus = self.pipeline.bus();
        let mut told = Instant::now();
        loop {
            let message = bus.as_ref().and_then(|bus| bus.timed_pop(POLL));
            if let Some(outcome) = message.and_then(|message| self.on_message(&message)) {
                return outcome;
            }
            if requests.is_stopping() {
                return stopped();
            }
            if let Some(stalled) = self.watch.outcome() {
                return stalled;
            }
            if told.elapsed() >= PROGRESS_INTERVAL {
                told = Instant::now();
                // Without a reader, standard input ends too.
                let _ = send(io::stdout().lock(), &Answer::Progress(self.progress()));
            }
        }
    }

    /// Duration of the tracked part, s.
    fn tracked_seconds(&self) -> Option<f64> {
        let end = self.progress().duration?;
        let stop = self.segment.stop.map_or(end, |stop| stop.min(end));
        Some(stop - self.segment.start.unwrap_or(0.0))
    }

    /// The outcome, if the message ends the video.
    fn on_message(&mut self, message: &gst::Message) -> Option<Outcome> {
        match message.view() {
            gst::MessageView::Eos(_) => self.record.take(),
            gst::MessageView::Error(error) if self.is_empty_part(error) => Some(Outcome {
                status: Status::Truncated,
                ..Outcome::default()
            }),
            gst::MessageView::Error(error) => Some(self.failure(error)),
            gst::MessageView::Element(element) => {
                self.on_structure(element.structure()?);
                None
            }
            gst::MessageView::Application(application) => self.on_streams(application.structure()?),
            gst::MessageView::Warning(warning)
                if message.src() == Some(self.facetrack.upcast_ref()) =>
            {
                eprintln!("{}", Line(warning.error().message()));
                None
            }
            _ => None,
        }
    }

    fn failure(&mut self, error: &gst::message::Error) -> Outcome {
        let bin = self.decoder.downcast_ref();
        match bin.and_then(pictures::kind) {
            Some(kind) if pictures::is_animated(&self.video) => {
                let reason = pictures::reason(&self.video, &kind);
                Outcome::without_record(Status::Unsupported, reason)
            }
            _ => ending::of_error(error, self.missing.take()),
        }
    }

    /// Returns true if the part has no frame of the video, which may begin late or end early.
    fn is_empty_part(&self, error: &gst::message::Error) -> bool {
        let is_of_record = error.src() == Some(self.sink.upcast_ref());
        let is_empty = error.error().matches(gst::StreamError::Failed) && self.frames() == 0;
        self.warm_up.is_some() && !self.segment.is_whole() && is_of_record && is_empty
    }

    fn on_structure(&mut self, structure: &gst::StructureRef) {
        if structure.has_name("trackjsonsink-done") {
            self.record = Some(ending::of_record(structure));
        }
        let missing = ending::missing_plugin(structure);
        self.missing = missing.or(self.missing.take());
    }

    /// The outcome of a file without video; a part begins at its start.
    fn on_streams(&mut self, streams: &gst::StructureRef) -> Option<Outcome> {
        for status in [Status::Unsupported, Status::Failed] {
            if let Ok(reason) = streams.get::<String>(status.word()) {
                return Some(Outcome::without_record(status, reason));
            }
        }
        if streams.get("video") == Ok(false) {
            return Some(self.without_video());
        }
        let first = streams.get::<u64>("held").ok()?;
        (!self.play_part(first)).then(|| {
            let reason = "the file cannot be played from within: copy it to a container with an index, such as MP4";
            Outcome::without_record(Status::Failed, reason)
        })
    }

    fn without_video(&self) -> Outcome {
        match &self.missing {
            Some(missing) => {
                let message = format!("{missing} is not installed");
                Outcome::without_record(Status::Failed, message)
            }
            None => Outcome::without_record(Status::NoVideo, "the file has no video"),
        }
    }

    /// Leaves out frames that are not between two stream times, ns, after a seek.
    fn cut_out(&mut self, start: u64, stop: Option<gst::ClockTime>) {
        let is_divided = self.warm_up.is_some();
        if let Some(warm_up) = self.warm_up {
            let last = stop.map(|stop| stop.saturating_sub(warm_up).nseconds());
            let start = Some(start);
            let pad = self.facetrack.src_pad().clone();
            self.overlap = Some(Overlap::of(
                Edges { start, last },
                pad,
                branch::stream_clock(),
            ));
        }
        let Some(pad) = streams::video(&self.decoder) else {
            return;
        };
        if !is_divided {
            branch::begin_at(&pad, start, branch::stream_clock(), |_| ());
        }
        if let Some(stop) = stop.map(gst::ClockTime::nseconds) {
            // The stop of a part that is joined is not the expected end of the video.
            branch::set_stop(&pad, Some(stop).filter(|_| !is_divided));
            branch::end_at(&pad, stop, branch::stream_clock(), || ());
        }
    }

    /// Seeks to the part of a video that begins at the stream time `first`, ns.
    fn play_part(&mut self, first: u64) -> bool {
        self.sink.begin_video_at(first);
        let first = gst::ClockTime::from_nseconds(first);
        let time = |seconds| clock_time(seconds) + first;
        let start = self.segment.start.map_or(first, time);
        self.cut_out(start.nseconds(), self.segment.stop.map(time));
        let start = start.saturating_sub(self.warm_up.unwrap_or(BEFORE_PART));
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
        // `branch::end_at` applies the stop: qtdemux would use it as a time of the track, and leave
        // out the last frames of a part if the movie begins within the track.
        let (set, none) = (gst::SeekType::Set, gst::SeekType::None);
        let stop = gst::ClockTime::NONE;
        let sought = self.pipeline.seek(1.0, flags, set, Some(start), none, stop);
        sought.is_ok()
    }

    fn frames(&self) -> u64 {
        self.sink.property::<u32>("frames").into()
    }

    fn progress(&self) -> Progress {
        let duration = self.sink.sink_pad().peer_query_duration();
        Progress {
            frames: self.frames(),
            position: self.sink.query_position().map(gst::ClockTime::seconds_f64),
            duration: duration.map(gst::ClockTime::seconds_f64),
        }
    }
}

impl Drop for Playback {
    /// Stops the pipeline. The engine stays loaded in READY, for the next video.
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Ready);
        let _ = self.pipeline.remove(&self.facetrack);
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// The end of the first part of a video that is tracked in parts, which is played without a seek.
fn first_part(job: &TrackRequest, pad: &gst::Pad, movie: Movie) -> Option<Overlap> {
    let (warm_up, stop) = job.warm_up.zip(job.segment.stop)?;
    let edges = Edges {
        start: None,
        last: Some(
            clock_time(stop)
                .saturating_sub(clock_time(warm_up))
                .nseconds(),
        ),
    };
    let is_first = job.segment.start.is_none();
    is_first.then(|| Overlap::of(edges, pad.clone(), branch::video_clock(movie)))
}

pub(crate) fn stopped() -> Outcome {
    Outcome {
        cause: Some(Cause::Stopped),
        ..Outcome::without_record(Status::Failed, "stopped")
    }
}

fn clock_time(seconds: f64) -> gst::ClockTime {
    gst::ClockTime::try_from_seconds_f64(seconds).unwrap_or(gst::ClockTime::ZERO)
}

/// Creates an element.
///
/// # Errors
/// Returns an error if it is not installed.
pub(crate) fn make(name: &str) -> Result<gst::Element, String> {
    let made = gst::ElementFactory::make(name).build();
    made.map_err(|_| format!("the element {name} is missing. `facetrack doctor` names its package"))
}

/// Links the stream of video when all streams are known. Posts a message about them.
fn expect_streams(
    pipeline: &gst::Pipeline,
    decoder: &gst::Element,
    input: gst::Pad,
    sink: &TrackJsonSink,
    job: &TrackRequest,
    movie: &Movie,
) {
    let (segment, is_divided) = (job.segment, job.warm_up.is_some());
    if segment.stop.is_none() {
        branch::keep_last_frames(decoder, segment, movie);
    }
    let (bin, path, sink) = (pipeline.downgrade(), job.video.clone(), sink.downgrade());
    let movie = movie.clone();
    let has_video = AtomicBool::new(false);
    decoder.connect_no_more_pads(move |decoder| {
        let Some(pipeline) = bin.upgrade() else {
            return;
        };
        if let Some(pad) = streams::video(decoder)
            && !has_video.swap(true, Ordering::SeqCst)
        {
            on_video(&pipeline, decoder, &pad, &input, &path);
            if is_divided || measure::is_exact(decoder) {
                select(&pipeline, &pad, segment, is_divided, &movie);
            } else {
                leave_out(&pad, segment, &movie, &sink);
            }
        }
        post(&pipeline, "video", has_video.load(Ordering::SeqCst));
    });
}

/// Prepares the stream of video.
fn on_video(
    pipeline: &gst::Pipeline,
    decoder: &gst::Element,
    pad: &gst::Pad,
    sink: &gst::Pad,
    path: &Path,
) {
    let connect = branch::connector(pipeline, sink.clone(), |pipeline, reason| {
        post(pipeline, Status::Failed.word(), reason);
    });
    let Some(kind) = decoder.downcast_ref().and_then(pictures::kind) else {
        return branch::with_first_frame(pad, connect);
    };
    let (bin, reason) = (pipeline.downgrade(), pictures::reason(path, &kind));
    pictures::wait_for_second(pad, connect, move || {
        let bin = bin.upgrade();
        bin.iter()
            .for_each(|it| post(it, Status::Unsupported.word(), reason.clone()));
    });
}

/// Plays only a part of the stream at `pad`. The first part of a video that is tracked in parts
/// plays without a seek, since a seek may cut off the beginning of the first frame.
fn select(
    pipeline: &gst::Pipeline,
    pad: &gst::Pad,
    segment: Segment,
    is_divided: bool,
    movie: &Movie,
) {
    let (start, stop) = (segment.start, segment.stop);
    if start.is_some() || !is_divided && stop.is_some() {
        let bin = pipeline.downgrade();
        return branch::hold_until_sought(pad, movie.clone(), move |first| {
            bin.upgrade().iter().for_each(|it| post(it, "held", first));
        });
    }
    if let Some(stop) = stop {
        branch::set_stop(pad, None);
        let clock = branch::video_clock(movie.clone());
        branch::end_at(pad, clock_time(stop).nseconds(), clock, || ());
    }
}

/// Plays the whole stream at `pad` and drops the frames outside the segment. Demuxers of other
/// containers guess the position of a time in the file, or start at frames that cannot be decoded
/// by themselves.
fn leave_out(pad: &gst::Pad, segment: Segment, movie: &Movie, sink: &glib::WeakRef<TrackJsonSink>) {
    let ns = |seconds| clock_time(seconds).nseconds();
    if let Some(stop) = segment.stop.map(ns) {
        let sink = sink.clone();
        branch::end_at(pad, stop, branch::video_clock(movie.clone()), move || {
            sink.upgrade().iter().for_each(TrackJsonSink::end_early);
        });
    }
    if let Some(start) = segment.start.map(ns) {
        let sink = sink.clone();
        branch::begin_at(
            pad,
            start,
            branch::video_clock(movie.clone()),
            move |first| {
                sink.upgrade()
                    .iter()
                    .for_each(|it| it.begin_video_at(first));
            },
        );
    }
}

fn post(pipeline: &gst::Pipeline, name: &str, value: impl ToSendValue + Sync) {
    let streams = gst::Structure::builder(STREAMS_KNOWN);
    let streams = streams.field(name, value.to_send_value()).build();
    let message = gst::message::Application::builder(streams).src(pipeline);
    // The bus is flushed when the pipeline stops.
    let _ = pipeline.post_message(message.build());
}
