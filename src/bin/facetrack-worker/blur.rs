// SPDX-License-Identifier: MPL-2.0
//! Copies videos for `facetrack blur`: the faces of a record are covered, and the other streams stay as
//! they are.

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use facetrack::printable::Line;
use facetrack_assets::lock::lock;
use facetrack_jobs::{
    Answer, BlurRequest, BlurSetup, Container, Outcome, Progress, SetupError, Status, send,
};
use gst::glib;
use gst::prelude::*;
use gstfacetrack::facetrackblur::FaceTrackBlur;
use gstfacetrack::shown;
use gstfacetrack::trackjsonload::TrackJsonLoad;

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

/// Frames that players decode: two by two pixels share a colour, so sizes are even.
const PLAYABLE: &str = "videoconvert ! videoscale \
    ! video/x-raw,format={I420,NV12},width=[2,16384,2],height=[2,16384,2]";

/// Parsers of encoded sound, by the type of the stream and its version.
const PARSERS: [(&str, Option<i32>, &str); 8] = [
    ("audio/mpeg", Some(1), "mpegaudioparse"),
    ("audio/mpeg", Some(2), "aacparse"),
    ("audio/mpeg", Some(4), "aacparse"),
    ("audio/x-ac3", None, "ac3parse"),
    ("audio/x-eac3", None, "ac3parse"),
    ("audio/x-dts", None, "dcaparse"),
    ("audio/x-flac", None, "flacparse"),
    ("audio/x-opus", None, "opusparse"),
];

/// Bytes of other streams that wait for the encoder. Our choice: hours of sound.
const WAITING: u32 = 256 << 20;

/// Maximum time to wait for a message before requests are checked.
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(50);

/// Interval of progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// The program in the containers that have a field for it.
const APPLICATION: &str = "facetrack blur";

/// The settings of all videos.
pub(crate) struct Blur {
    properties: Vec<(String, glib::Value)>,
    look_ahead: u32,
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
            look_ahead: setup.look_ahead,
            encoder: format!("{PLAYABLE} ! {name} {settings} ! {after}"),
        })
    }

    /// Writes the copy of a video.
    pub(crate) fn cover(&self, job: &BlurRequest, requests: &Requests) -> Outcome {
        let copied = self.copy(job, requests, |_| ());
        let copied = match copied {
            Ok(outcome) if outcome.status == Status::NoVideo => {
                self.copy(job, requests, faults::hide_movie_duration)
            }
            copied => copied,
        };
        copied.unwrap_or_else(|error| Outcome::without_record(Status::Failed, error.to_string()))
    }

    /// Writes the copy. `prepare` gets the pad that yields the file.
    fn copy(
        &self,
        job: &BlurRequest,
        requests: &Requests,
        prepare: fn(&gst::Pad),
    ) -> Result<Outcome, Box<dyn Error>> {
        let copy = Copy::new(self, job, prepare)?;
        let mut outcome = copy.play(requests);
        copy.pipeline.set_state(gst::State::Null)?;
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
        load.set_property("look-ahead", self.look_ahead);
        for (name, value) in &self.properties {
            blur.set_property_from_value(name, value);
        }
        (load, blur)
    }
}

impl Copy {
    fn new(
        settings: &Blur,
        job: &BlurRequest,
        prepare: fn(&gst::Pad),
    ) -> Result<Self, Box<dyn Error>> {
        let pipeline = gst::Pipeline::new();
        let (file, decoder) = (make("filesrc")?, make("decodebin")?);
        file.set_property("location", &job.video);
        file.static_pad("src").iter().for_each(prepare);
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
        let times = Arc::new(Mutex::new(Times::default()));
        let clock = branch::video_clock(movie);
        count_frames(&output, clock, frames.clone(), times.clone());
        let encoded = encoder.static_pad("src").ok_or("the encoder has no pad")?;
        keep_times(&encoded, times);
        let copy = Self {
            pipeline,
            decoder,
            blur,
            frames,
            left_out: Arc::default(),
        };
        let input = input.static_pad("sink").ok_or("videoconvert has no pad")?;
        copy.expect_streams(input, &muxer);
        Ok(copy)
    }

    /// Links all streams once they are known.
    fn expect_streams(&self, input: gst::Pad, muxer: &gst::Element) {
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
                match copied(&pipeline, pad, &muxer) {
                    Ok(true) => (),
                    Ok(false) => lock(&left_out).push(kind(pad)),
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
            gst::MessageView::Error(error) => Some(ending::of_error(error, None)),
            gst::MessageView::Warning(warning) if message.src() == Some(self.blur.upcast_ref()) => {
                eprintln!("{}", Line(warning.error().message()));
                None
            }
            _ => None,
        }
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

/// Counts the frames that pass and notes their times, and drops those that the record does not count.
fn count_frames(
    pad: &gst::Pad,
    clock: branch::Clock,
    frames: Arc<AtomicU64>,
    times: Arc<Mutex<Times>>,
) {
    pad.add_probe(branch::FRAMES, move |pad, info| {
        let time = clock(pad, info);
        let Some(buffer) = info.buffer() else {
            return gst::PadProbeReturn::Ok;
        };
        let Some(time) = time else {
            return gst::PadProbeReturn::Drop;
        };
        let mut times = lock(&times);
        if let Some(running) = running_time(pad, buffer) {
            times.start = running.saturating_sub(time);
        }
        times.waiting.push_back(time);
        frames.fetch_add(1, Ordering::Relaxed);
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

/// Links a stream other than the video to the muxer. Returns false if it is not copied: another video,
/// or data of unknown content, which may show a face or say where it was.
///
/// # Errors
/// Returns an error if the container cannot hold the sound or the subtitles.
fn copied(pipeline: &gst::Pipeline, pad: &gst::Pad, muxer: &gst::Element) -> Result<bool, String> {
    let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
    let name = caps.structure(0).map_or("", |it| it.name().as_str());
    if !name.starts_with("audio/") && name != "text/x-raw" {
        return Ok(false);
    }
    keep_only_languages(pad);
    let queue = make("queue")?;
    queue.set_property("max-size-bytes", WAITING);
    queue.set_property("max-size-buffers", 0u32);
    queue.set_property("max-size-time", 0u64);
    let mut elements = vec![queue];
    if let Some(parser) = parser(&caps) {
        elements.push(make(parser)?);
    }
    let failed = |error: glib::BoolError| error.to_string();
    pipeline.add_many(&elements).map_err(failed)?;
    gst::Element::link_many(&elements).map_err(failed)?;
    let ends = elements.first().zip(elements.last());
    let ends = ends.and_then(|(first, last)| first.static_pad("sink").zip(last.static_pad("src")));
    let (input, output) = ends.ok_or("a queue has no pads")?;
    let free = muxer.compatible_pad(&output, Some(&caps));
    let free = free.ok_or_else(|| {
        format!("the container cannot hold {name}. Give the output the suffix .mkv")
    })?;
    output.link(&free).map_err(|error| error.to_string())?;
    for element in &elements {
        element.sync_state_with_parent().map_err(failed)?;
    }
    pad.link(&input).map_err(|error| error.to_string())?;
    Ok(true)
}

/// The element that prepares encoded sound for a muxer, if it needs one.
fn parser(caps: &gst::CapsRef) -> Option<&'static str> {
    let stream = caps.structure(0)?;
    let version = stream.get("mpegversion").ok();
    let mut parsers = PARSERS.iter();
    let found = parsers
        .find(|(name, of, _)| stream.has_name(name) && of.is_none_or(|of| Some(of) == version));
    found.map(|(.., parser)| *parser)
}

/// Removes all tags of a stream but its language, and its table of contents: a demuxer sends those of
/// the file with each of its streams, also pictures and places.
fn keep_only_languages(pad: &gst::Pad) {
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, |_, info| {
        let Some(event) = info.event() else {
            return gst::PadProbeReturn::Ok;
        };
        let tags = match event.view() {
            gst::EventView::Toc(_) => return gst::PadProbeReturn::Drop,
            gst::EventView::Tag(event) => event.tag(),
            _ => return gst::PadProbeReturn::Ok,
        };
        let mut kept = gst::TagList::new();
        if let Some(language) = tags.get::<gst::tags::LanguageCode>()
            && let Some(kept) = kept.get_mut()
        {
            kept.add::<gst::tags::LanguageCode>(&language.get(), gst::TagMergeMode::Append);
        }
        let event = gst::event::Tag::builder(kept).seqnum(event.seqnum());
        info.data = Some(gst::PadProbeData::Event(event.build()));
        gst::PadProbeReturn::Ok
    });
}

/// The type of a stream in a message.
fn kind(pad: &gst::Pad) -> String {
    let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
    let name = caps.structure(0).map(|it| it.name().to_string());
    match name.as_deref() {
        Some("video/x-raw") => "another video of the file".to_owned(),
        Some(name) => format!("a stream of {name}"),
        None => "a stream of unknown data".to_owned(),
    }
}

fn fail(pipeline: &gst::Pipeline, reason: &str) {
    let error = gst::message::Error::builder(gst::StreamError::Failed, reason);
    post(pipeline, error.src(pipeline).build());
}

fn post(pipeline: &gst::Pipeline, message: gst::Message) {
    // The bus is flushed when the pipeline stops.
    let _ = pipeline.post_message(message);
}
