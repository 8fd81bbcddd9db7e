// SPDX-License-Identifier: MPL-2.0
//! A video from its file to its record.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use facetrack_jobs::{Answer, Cause, Job, Outcome, Part, Progress, Status, send};
use gst_base::prelude::*;
use gstfacetrack::facetrack::FaceTrack;
use gstfacetrack::trackjsonsink::TrackJsonSink;
use gstfacetrack::video;
use rustix::time::{ClockId, clock_gettime};

use crate::branch;
use crate::damage;
use crate::ending;
use crate::engine::Engine;
use crate::overlap::Overlap;
use crate::requests::Requests;

/// How long a message is waited for before requests are checked.
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(50);

/// Interval of progress messages. Our choice: a bar that moves twice a second.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Time without a message and a running thread after which a pipeline counts as stalled. Our
/// choice: threads end and start within milliseconds.
const STALL: Duration = Duration::from_secs(5);

/// The message about such a video.
const STALLED: &str = "the file cannot be read: it is damaged, or lacks its beginning or end";

/// Message of the pipeline: the decoder has announced all streams.
const STREAMS_KNOWN: &str = "facetrack-worker-streams";

/// Tracks a video. The engine stays loaded.
pub fn track(engine: &Engine, job: &Job, requests: &Requests) -> Outcome {
    let before = cpu_time();
    let outcome = Playback::new(engine, job).map(|mut playback| playback.run(requests));
    engine.restore_device();
    let failed = |message| Outcome::without_record(Status::Failed, message);
    Outcome {
        cpu_seconds: (cpu_time() - before).as_secs_f64(),
        ..outcome.unwrap_or_else(failed)
    }
}

/// CPU time of the process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// A pipeline that plays a video.
struct Playback {
    pipeline: gst::Pipeline,
    facetrack: FaceTrack,
    sink: TrackJsonSink,
    part: Part,
    warm_up: Option<gst::ClockTime>,
    overlap: Option<Overlap>,
    missing: Option<String>,
    record: Option<Outcome>,
}

impl Playback {
    fn new(engine: &Engine, job: &Job) -> Result<Self, String> {
        let pipeline = gst::Pipeline::new();
        let file = make("filesrc")?;
        file.set_property("location", &job.video);
        let decoder = make("decodebin")?;
        let (facetrack, sink) = (engine.facetrack.clone(), engine.sink());
        sink.set_property("location", job.record.display().to_string());
        sink.set_property("overwrite", job.replace);
        sink.set_property("video-path", &job.name);
        let elements: [&gst::Element; 4] =
            [&file, &decoder, facetrack.upcast_ref(), sink.upcast_ref()];
        let added = pipeline.add_many(elements);
        let linked = added.and_then(|()| file.link(&decoder));
        let linked = linked.and_then(|()| facetrack.link(&sink));
        linked.map_err(|error| error.to_string())?;
        // Each video starts as the first one did.
        facetrack.emit_by_name::<()>("reset-calibration", &[]);
        branch::restrict(&decoder, engine.decoder_threads);
        damage::report_to(&sink, job.part);
        expect_streams(&pipeline, &decoder, facetrack.sink_pad().clone(), job);
        let start = job.part.start.filter(|_| job.warm_up.is_some());
        let start = start.map(|start| clock_time(start).nseconds());
        Ok(Self {
            overlap: start.map(|start| Overlap::before(start, facetrack.src_pad().clone())),
            pipeline,
            facetrack,
            sink,
            part: job.part,
            warm_up: job.warm_up.map(clock_time),
            missing: None,
            record: None,
        })
    }

    fn run(&mut self, requests: &Requests) -> Outcome {
        // An error message says why it does not start.
        let _ = self.pipeline.set_state(gst::State::Playing);
        let mut outcome = self.wait(requests);
        outcome.video_seconds = self.tracked_seconds();
        outcome.before = self.overlap.iter().flat_map(Overlap::take).collect();
        outcome.nominal_rate = self.warm_up.and_then(|_| self.nominal_rate());
        if !outcome.status.has_record() {
            outcome.frames = self.frames();
        }
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
        let (mut told, mut alive) = (Instant::now(), Instant::now());
        loop {
            let message = bus.as_ref().and_then(|bus| bus.timed_pop(POLL));
            if message.is_some() || self.has_running_task() {
                alive = Instant::now();
            }
            if let Some(outcome) = message.and_then(|message| self.on_message(&message)) {
                return outcome;
            }
            if requests.is_stopping() {
                return stopped();
            }
            if alive.elapsed() >= STALL {
                return Outcome::without_record(Status::Failed, STALLED);
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
        let stop = self.part.stop.map_or(end, |stop| stop.min(end));
        Some(stop - self.part.start.unwrap_or(0.0))
    }

    /// The outcome, if the message ends the video.
    fn on_message(&mut self, message: &gst::Message) -> Option<Outcome> {
        match message.view() {
            gst::MessageView::Eos(_) => self.record.take(),
            gst::MessageView::Error(error) if self.is_after_the_end(error) => Some(Outcome {
                status: Status::Truncated,
                ..Outcome::default()
            }),
            gst::MessageView::Error(error) => Some(ending::of_error(error, self.missing.take())),
            gst::MessageView::Element(element) => {
                self.on_structure(element.structure()?);
                None
            }
            gst::MessageView::Application(application) => self.on_streams(application.structure()?),
            gst::MessageView::Warning(warning)
                if message.src() == Some(self.facetrack.upcast_ref()) =>
            {
                eprintln!("{}", warning.error().message());
                None
            }
            _ => None,
        }
    }

    /// Whether the part begins after the last frame of the video.
    fn is_after_the_end(&self, error: &gst::message::Error) -> bool {
        let is_of_record = error.src() == Some(self.sink.upcast_ref());
        let is_empty = error.error().matches(gst::StreamError::Failed) && self.frames() == 0;
        self.overlap.is_some() && is_of_record && is_empty
    }

    fn on_structure(&mut self, structure: &gst::StructureRef) {
        if structure.has_name("trackjsonsink-done") {
            self.record = Some(ending::of_record(structure));
        }
        let missing = ending::missing_plugin(structure);
        self.missing = missing.or(self.missing.take());
    }

    /// The outcome of a file without video; a part begins at its start.
    fn on_streams(&self, streams: &gst::StructureRef) -> Option<Outcome> {
        for status in [Status::Unsupported, Status::Failed] {
            if let Ok(reason) = streams.get::<String>(status.word()) {
                return Some(Outcome::without_record(status, reason));
            }
        }
        if streams.get("video") == Ok(false) {
            return Some(self.without_video());
        }
        (streams.has_field("held") && !self.seek()).then(|| {
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

    fn seek(&self) -> bool {
        let start = self.part.start.map_or(gst::ClockTime::ZERO, clock_time);
        let start = start.saturating_sub(self.warm_up.unwrap_or_default());
        let stop = self.part.stop.map(clock_time);
        let stop_type = stop.map_or(gst::SeekType::None, |_| gst::SeekType::Set);
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
        let set = gst::SeekType::Set;
        let sought = self
            .pipeline
            .seek(1.0, flags, set, Some(start), stop_type, stop);
        sought.is_ok()
    }

    /// Whether any thread of the pipeline runs. decodebin drops an error that a demuxer posts
    /// while it is being started, and then waits forever.
    fn has_running_task(&self) -> bool {
        let elements = self.pipeline.iterate_recurse().into_iter().flatten();
        let mut pads = elements.flat_map(|element| element.pads());
        pads.any(|pad| pad.task_state() == gst::TaskState::Started)
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

fn stopped() -> Outcome {
    Outcome {
        cause: Some(Cause::Stopped),
        ..Outcome::without_record(Status::Failed, "stopped")
    }
}

fn clock_time(seconds: f64) -> gst::ClockTime {
    gst::ClockTime::try_from_seconds_f64(seconds).unwrap_or(gst::ClockTime::ZERO)
}

fn make(name: &str) -> Result<gst::Element, String> {
    let made = gst::ElementFactory::make(name).build();
    made.map_err(|_| format!("the element {name} is missing. `facetrack doctor` names its package"))
}

/// Links the first stream of video with its first frame, when its tags are known. Posts a message
/// when all streams are known.
fn expect_streams(pipeline: &gst::Pipeline, decoder: &gst::Element, sink: gst::Pad, job: &Job) {
    let (part, is_divided) = (job.part, job.warm_up.is_some());
    if part.start.is_some() && part.stop.is_none() {
        branch::keep_last_frame(decoder);
    }
    let has_video = Arc::new(AtomicBool::new(false));
    let is_first = has_video.clone();
    let bin = pipeline.downgrade();
    decoder.connect_pad_added(move |decoder, pad| {
        if branch::has_video(pad)
            && !is_first.swap(true, Ordering::SeqCst)
            && let Some(pipeline) = bin.upgrade()
        {
            on_video(&pipeline, decoder, pad, &sink);
            select(&pipeline, pad, part, is_divided);
        }
    });
    let bin = pipeline.downgrade();
    decoder.connect_no_more_pads(move |_| {
        if let Some(pipeline) = bin.upgrade() {
            post(&pipeline, "video", has_video.load(Ordering::SeqCst));
        }
    });
}

/// Prepares the first stream of video.
fn on_video(pipeline: &gst::Pipeline, decoder: &gst::Element, pad: &gst::Pad, sink: &gst::Pad) {
    if let Some(kind) = decoder.downcast_ref().and_then(branch::still) {
        let reason = format!("the file is a still picture ({kind}), not a video");
        return post(pipeline, Status::Unsupported.word(), reason);
    }
    branch::connect_with_first_frame(pipeline, pad, sink.clone(), |pipeline, reason| {
        post(pipeline, Status::Failed.word(), reason);
    });
}

/// Plays only a part of the stream at `pad`. The first part of a video that is tracked in parts
/// plays without a seek, since a seek may cut off the beginning of the first frame.
fn select(pipeline: &gst::Pipeline, pad: &gst::Pad, part: Part, is_divided: bool) {
    match part.stop.map(clock_time) {
        Some(stop) if is_divided && part.start.is_none() => {
            return branch::end_at(pad, stop.nseconds());
        }
        Some(_) if is_divided => branch::hide_stop(pad),
        None if part.is_whole() => return,
        _ => (),
    }
    let bin = pipeline.downgrade();
    branch::hold_until_sought(pad, move || {
        bin.upgrade().iter().for_each(|it| post(it, "held", true));
    });
}

fn post(pipeline: &gst::Pipeline, name: &str, value: impl ToSendValue + Sync) {
    let streams = gst::Structure::builder(STREAMS_KNOWN);
    let streams = streams.field(name, value.to_send_value()).build();
    let message = gst::message::Application::builder(streams).src(pipeline);
    // The bus is flushed when the pipeline stops.
    let _ = pipeline.post_message(message.build());
}
