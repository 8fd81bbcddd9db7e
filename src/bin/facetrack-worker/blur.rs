// SPDX-License-Identifier: MPL-2.0
//! Copies videos for `facetrack blur`: the faces of a record are covered, and the other streams stay as
//! they are.

mod covers;
mod headers;
mod other_streams;

use std::collections::VecDeque;
use std::error::Error;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use facetrack::printable::Line;
use facetrack_assets::file::is_full;
use facetrack_assets::lock::lock;
use facetrack_jobs::{
    Answer, BlurRequest, BlurSetup, Cause, Container, Outcome, Progress, SetupError, Status, send,
};
use gst::glib;
use gst::prelude::*;
use gstfacetrack::facetrackblur::FaceTrackBlur;
use gstfacetrack::shown;
use gstfacetrack::trackjsonload::TrackJsonLoad;

use self::covers::Covers;
use crate::playback::{make, stopped};
use crate::requests::Requests;
use crate::{branch, ending, engine, faults, streams};

/// Encoders of H.264 with constant quality, the best first, and what follows them. Without B-frames,
/// every muxer states the times of all frames right. A parser would drop times that are not at the
/// nominal rate, so only the encoder that needs one has it.
const ENCODERS: [(&str, &str, &str); 2] = [
    (
        "x264enc",
        "pass=qual quantizer=20 speed-preset=fast bframes=0",
        "capsfilter caps=video/x-h264,stream-format=avc",
    ),
    (
        "openh264enc",
        "rate-control=quality bitrate=12000000 complexity=high",
        "h264parse",
    ),
];

/// The remedy if there is none.
const NO_ENCODER: &str = "no encoder for H.264 is installed. Install gstreamer1.0-plugins-ugly, which has x264enc, or gstreamer1.0-plugins-bad, which has openh264enc";

/// The message if the second pass decodes other frames than the first pass.
const CHANGES: &str = "the frames are not those that were tracked: their size or times change, as in files that were joined. Convert the video first: ffmpeg -i IN CONVERTED.mkv";

/// Frames that players decode: two by two pixels share a colour, so sizes are even.
const PLAYABLE: &str = "videoconvert ! videoscale \
    ! video/x-raw,format={I420,NV12},width=[2,16384,2],height=[2,16384,2]";

/// Maximum time to wait for a message before requests are checked.
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(50);

/// Interval of progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// A face is covered from this time before it is found, s.
const LOOK_AHEAD: f64 = 1.0;

/// The program in the containers that have a field for it.
const APPLICATION: &str = "facetrack blur";

/// The settings of all videos.
pub(crate) struct Blur {
    properties: Vec<(String, glib::Value)>,
    /// Description of the encoder.
    encoder: String,
}

/// A pipeline that copies a video.
struct Copy {
    pipeline: gst::Pipeline,
    decoder: gst::Element,
    blur: FaceTrackBlur,
    /// Frames written.
    frames: Arc<AtomicU64>,
    covers: Arc<Mutex<Covers>>,
    /// Streams that cannot be copied.
    left_out: Arc<Mutex<Vec<String>>>,
}

impl Blur {
    /// Checks the settings.
    ///
    /// # Errors
    /// Returns an error if a property is invalid, or no encoder is installed.
    pub(crate) fn new(setup: &BlurSetup) -> Result<Self, SetupError> {
        let blur: FaceTrackBlur = glib::Object::new();
        let mut properties = Vec::new();
        for (name, text) in &setup.properties {
            let Some(value) = engine::value(blur.upcast_ref(), name, text)? else {
                return Err(SetupError::usage(format!(
                    "facetrackblur has no property `{name}`. `gst-inspect-1.0 facetrackblur` lists them"
                )));
            };
            blur.set_property_from_value(name, &value);
            properties.push((name.clone(), value));
        }
        engine::get_ready(blur.upcast_ref())?;
        let _ = blur.set_state(gst::State::Null);
        let mut encoders = ENCODERS.iter();
        let found = encoders.find(|(name, ..)| gst::ElementFactory::find(name).is_some());
        let (name, settings, after) = found.ok_or_else(|| SetupError::other(NO_ENCODER))?;
        Ok(Self {
            properties,
            encoder: format!("{PLAYABLE} ! {name} {settings} ! {after}"),
        })
    }

    /// Writes the copy of a video.
    pub(crate) fn cover(&self, job: &BlurRequest, requests: &Requests) -> Outcome {
        let copied = self.copy(job, requests);
        copied.unwrap_or_else(|error| Outcome::without_record(Status::Failed, error.to_string()))
    }

    fn copy(&self, job: &BlurRequest, requests: &Requests) -> Result<Outcome, Box<dyn Error>> {
        let copy = Copy::new(self, job)?;
        let mut outcome = copy.play(requests);
        copy.pipeline.set_state(gst::State::Null)?;
        if outcome.status == Status::Complete
            && let Err(error) = lock(&copy.covers).finish()
        {
            outcome = Outcome::without_record(Status::Failed, error.to_string());
            outcome.cause = is_full(&error).then_some(Cause::OutOfSpace);
        }
        let left_out = lock(&copy.left_out);
        if outcome.status == Status::Complete && !left_out.is_empty() {
            outcome.message = Some(format!("left out: {}", left_out.join(", ")));
        }
        Ok(outcome)
    }

    /// The elements that attach the record and cover its faces.
    fn elements(&self, record: &Path) -> (TrackJsonLoad, FaceTrackBlur) {
        let (load, blur): (TrackJsonLoad, FaceTrackBlur) =
            (glib::Object::new(), glib::Object::new());
        load.set_property("location", record.display().to_string());
        load.set_property("look-ahead", LOOK_AHEAD);
        for (name, value) in &self.properties {
            blur.set_property_from_value(name, value);
        }
        (load, blur)
    }
}

impl Copy {
    fn new(settings: &Blur, job: &BlurRequest) -> Result<Self, Box<dyn Error>> {
        let pipeline = gst::Pipeline::new();
        let (file, decoder) = (make("filesrc")?, make("decodebin")?);
        file.set_property("location", &job.video);
        // With it, qtdemux leaves out short tracks, and the end of sound with an edit list.
        let source = file.static_pad("src");
        source.iter().for_each(faults::hide_movie_duration);
        let input = make("videoconvert")?;
        let (load, blur) = settings.elements(&job.record);
        let encoder = gst::parse::bin_from_description(&settings.encoder, true)?;
        let (muxer, sink) = (muxer(job.container)?, make("filesink")?);
        sink.set_property("location", &job.output);
        let elements: [&gst::Element; 8] = [
            &file,
            &decoder,
            &input,
            load.upcast_ref(),
            blur.upcast_ref(),
            encoder.upcast_ref(),
            &muxer,
            &sink,
        ];
        pipeline.add_many(elements)?;
        file.link(&decoder)?;
        gst::Element::link_many(&elements[2..])?;
        branch::restrict(&decoder, 0);
        let movie = shown::movie(&job.video);
        branch::keep_last_frames(&decoder, facetrack_jobs::Segment::default(), &movie);
        let frames = Arc::new(AtomicU64::new(0));
        let output = blur.static_pad("src").ok_or("facetrackblur has no pad")?;
        remove_stream_tags(&output);
        let times = Arc::new(Mutex::new(Times::default()));
        let covers = Arc::new(Mutex::new(Covers::new(File::create(&job.covers)?)));
        let clock = branch::video_clock(movie);
        let (counted, passed) = (frames.clone(), times.clone());
        let noted = covers.clone();
        follow_frames(&output, clock, move |pad, buffer, time| {
            counted.fetch_add(1, Ordering::Relaxed);
            lock(&passed).note(pad, buffer, time);
            lock(&noted).add(pad, buffer, time);
        });
        let encoded = encoder.static_pad("src").ok_or("the encoder has no pad")?;
        keep_times(&encoded, times);
        let copy = Self {
            pipeline,
            decoder,
            blur,
            frames,
            covers,
            left_out: Arc::default(),
        };
        let input = input.static_pad("sink").ok_or("videoconvert has no pad")?;
        copy.expect_streams(input, &muxer);
        Ok(copy)
    }

    /// Links all streams once they are known.
    fn expect_streams(&self, input: gst::Pad, muxer: &gst::Element) {
        let left_out = self.left_out.clone();
        self.decoder
            .connect("unknown-type", false, move |arguments| {
                let pad = arguments[1].get::<gst::Pad>().ok();
                lock(&left_out).extend(pad.as_ref().map(other_streams::kind));
                None
            });
        let (bin, muxer) = (self.pipeline.downgrade(), muxer.downgrade());
        let left_out = self.left_out.clone();
        let has_video = AtomicBool::new(false);
        self.decoder.connect_no_more_pads(move |decoder| {
            let (Some(pipeline), Some(muxer)) = (bin.upgrade(), muxer.upgrade()) else {
                return;
            };
            let Some(video) = streams::video(decoder) else {
                // Nothing will reach the encoder and end there.
                let end = gst::message::Eos::builder().src(&pipeline).build();
                return post(&pipeline, end);
            };
            if has_video.swap(true, Ordering::SeqCst) {
                return;
            }
            for pad in decoder.src_pads().iter().filter(|pad| **pad != video) {
                match other_streams::copy(&pipeline, pad, &muxer) {
                    Ok(true) => (),
                    Ok(false) => lock(&left_out).push(other_streams::kind(pad)),
                    Err(reason) => fail(&pipeline, &reason),
                }
            }
            let connect = branch::connector(&pipeline, input.clone(), |pipeline, reason| {
                fail(pipeline, &reason);
            });
            branch::with_first_frame(&video, connect);
        });
    }

    /// Plays to the end.
    fn play(&self, requests: &Requests) -> Outcome {
        let bus = self.pipeline.bus();
        // An error message has the reason why the pipeline does not start.
        let _ = self.pipeline.set_state(gst::State::Playing);
        let mut told = Instant::now();
        loop {
            let message = bus.as_ref().and_then(|bus| bus.timed_pop(POLL));
            if let Some(outcome) = message.and_then(|message| self.on_message(&message)) {
                return outcome;
            }
            if requests.is_stopping() {
                return stopped();
            }
            if told.elapsed() >= PROGRESS_INTERVAL {
                told = Instant::now();
                // Without a reader, standard input ends too.
                let _ = send(io::stdout().lock(), &Answer::Progress(self.progress()));
            }
        }
    }

    /// The outcome, if the message ends the copy.
    fn on_message(&self, message: &gst::Message) -> Option<Outcome> {
        match message.view() {
            gst::MessageView::Eos(_) => Some(self.outcome()),
            gst::MessageView::Error(error) if self.is_changed(error) => {
                Some(Outcome::without_record(Status::Failed, CHANGES))
            }
            gst::MessageView::Error(error) => Some(ending::of_error(error, None)),
            gst::MessageView::Warning(warning) if message.src() == Some(self.blur.upcast_ref()) => {
                eprintln!("{}", Line(warning.error().message()));
                None
            }
            _ => None,
        }
    }

    /// Returns true for the error of facetrackblur that the record is not of these frames.
    fn is_changed(&self, error: &gst::message::Error) -> bool {
        let is_of_blur = error.src() == Some(self.blur.upcast_ref());
        is_of_blur && error.error().message().contains("on-mismatch")
    }

    fn outcome(&self) -> Outcome {
        let frames = self.frames.load(Ordering::Relaxed);
        if frames == 0 {
            return Outcome::without_record(Status::NoVideo, "the file has no video");
        }
        Outcome {
            status: Status::Complete,
            frames,
            ..Outcome::default()
        }
    }

    fn progress(&self) -> Progress {
        let pad = self.blur.static_pad("src");
        let duration = pad.and_then(|pad| pad.query_duration::<gst::ClockTime>());
        Progress {
            frames: self.frames.load(Ordering::Relaxed),
            position: None,
            duration: duration.map(gst::ClockTime::seconds_f64),
        }
    }
}

/// The muxer of a container.
fn muxer(container: Container) -> Result<gst::Element, String> {
    match container {
        Container::Mp4 => make("mp4mux"),
        Container::Mov => make("qtmux"),
        Container::Mkv => {
            let muxer = make("matroskamux")?;
            muxer.set_property("writing-app", APPLICATION);
            Ok(muxer)
        }
    }
}

/// Times of the frames in the encoder.
#[derive(Default)]
struct Times {
    /// Times in the record, ns.
    waiting: VecDeque<u64>,
    /// Running time at which the record begins, ns, from the latest frame. matroskademux of GStreamer
    /// 1.22 has another segment for the first frame of a video that does not begin at 0.
    start: u64,
}

impl Times {
    /// Takes the time of a frame that passes.
    fn note(&mut self, pad: &gst::Pad, buffer: &gst::BufferRef, time: u64) {
        if let Some(running) = running_time(pad, buffer) {
            self.start = running.saturating_sub(time);
        }
        self.waiting.push_back(time);
    }
}

/// Calls `follow` with each frame that passes and its time in the record, ns, and drops the frames that
/// the record does not count.
fn follow_frames(
    pad: &gst::Pad,
    clock: branch::Clock,
    follow: impl Fn(&gst::Pad, &gst::BufferRef, u64) + Send + Sync + 'static,
) {
    pad.add_probe(branch::FRAMES, move |pad, info| {
        let time = clock(pad, info);
        let Some(buffer) = info.buffer() else {
            return gst::PadProbeReturn::Ok;
        };
        let Some(time) = time else {
            return gst::PadProbeReturn::Drop;
        };
        follow(pad, buffer, time);
        gst::PadProbeReturn::Ok
    });
}

/// Removes the tags of the video stream: titles, comments and names. Tags of the whole file stay. The event
/// becomes empty, because GStreamer sends a dropped sticky event again with each buffer.
fn remove_stream_tags(pad: &gst::Pad) {
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, |_, info| {
        if let Some(gst::PadProbeData::Event(event)) = &mut info.data
            && let gst::EventView::Tag(tags) = event.view()
            && tags.tag().scope() == gst::TagScope::Stream
        {
            *event = gst::event::Tag::new(gst::TagList::new());
        }
        gst::PadProbeReturn::Ok
    });
}

/// Running time of a buffer that passes a pad, ns.
fn running_time(pad: &gst::Pad, buffer: &gst::BufferRef) -> Option<u64> {
    let event = pad.sticky_event::<gst::event::Segment>(0)?;
    let segment = event.segment().downcast_ref::<gst::ClockTime>()?;
    segment
        .to_running_time(buffer.pts())
        .map(gst::ClockTime::nseconds)
}

/// Gives encoded frames the times of the frames before the encoder, which yields one for each frame, in
/// their order. x264enc of GStreamer 1.22 moves the first frame of a video that does not begin at 0.
fn keep_times(encoded: &gst::Pad, times: Arc<Mutex<Times>>) {
    encoded.add_probe(branch::FRAMES, move |_, info| {
        match &mut info.data {
            Some(gst::PadProbeData::Event(event)) if event.type_() == gst::EventType::Segment => {
                let segment = gst::FormattedSegment::<gst::ClockTime>::new();
                *event = gst::event::Segment::new(&segment);
            }
            Some(gst::PadProbeData::Buffer(buffer)) => {
                let mut times = lock(&times);
                let time = times.waiting.pop_front().map(|time| times.start + time);
                let time = time.map(gst::ClockTime::from_nseconds);
                let buffer = buffer.make_mut();
                buffer.set_pts(time);
                buffer.set_dts(time);
            }
            _ => (),
        }
        gst::PadProbeReturn::Ok
    });
}

fn fail(pipeline: &gst::Pipeline, reason: &str) {
    let error = gst::message::Error::builder(gst::StreamError::Failed, reason);
    post(pipeline, error.src(pipeline).build());
}

fn post(pipeline: &gst::Pipeline, message: gst::Message) {
    // The bus is flushed when the pipeline stops.
    let _ = pipeline.post_message(message);
}
