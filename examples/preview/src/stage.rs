// SPDX-License-Identifier: MPL-2.0
//! Callbacks in the threads of the tracking pipeline: they pass frames on, and handle messages of
//! the pipeline.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use gst::MessageView;
use gst::prelude::*;
use winit::event_loop::EventLoopProxy;

use crate::connection::{self, Connection, STALLED, is_of_source};
use crate::drawing::{Drawing, Frame};
use crate::outputs::Outputs;
use crate::pipelines::{Event, element, lock};
use crate::source::Source;
use crate::tracking::NEWEST;

/// Time before a frame at which its search begins: decoders shorten the frame that is shown there,
/// and give it another time.
const LEAD: gst::ClockTime = gst::ClockTime::from_mseconds(5);

/// Maximum error of a time that is sought, which containers round to milliseconds.
const ROUNDING: gst::ClockTime = gst::ClockTime::from_mseconds(1);

/// Until when frames are passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Always.
    Forever,
    /// Until a frame at or after this time of the video.
    Time(gst::ClockTime),
    /// Paused.
    Paused,
    /// Not before this time was sought.
    Seek(gst::ClockTime),
    /// Until the first frame at or after this time, which was sought. Those before are dropped.
    Sought(gst::ClockTime),
    /// Stopped for good.
    Stopped,
}

/// State that the pipeline's threads share with the window.
pub struct Stage {
    pipeline: gst::Pipeline,
    until: Mutex<Until>,
    /// Held during state changes of the pipeline, so that the newest request is applied last.
    telling: Mutex<()>,
    /// True if the source is live, so that frames are shown at once. Known when the pipeline
    /// starts.
    is_live: AtomicBool,
    pub connection: Connection,
    /// True for an address that cannot be sought, such as a camera that sends pictures over HTTP.
    is_stream: AtomicBool,
    /// True if a frame was shown.
    is_open: AtomicBool,
    /// True if a video was set to repeat.
    repeats: AtomicBool,
    events: EventLoopProxy<Event>,
}

impl Stage {
    /// Adds the callbacks to a pipeline that does not play yet.
    ///
    /// # Errors
    /// Returns an error if the source cannot be opened.
    pub fn new(
        pipeline: gst::Pipeline,
        source: Source,
        until: Until,
        shown: (Drawing, Outputs),
        events: EventLoopProxy<Event>,
    ) -> Result<Arc<Self>, Box<dyn Error>> {
        let stage = Arc::new(Self {
            until: Mutex::new(until),
            telling: Mutex::default(),
            is_live: AtomicBool::default(),
            connection: Connection::new(pipeline.clone(), source),
            is_stream: AtomicBool::default(),
            is_open: AtomicBool::default(),
            repeats: AtomicBool::default(),
            events,
            pipeline,
        });
        stage.listen(shown);
        stage.connection.open(&stage)?;
        Ok(stage)
    }

    /// Starts to load and play.
    pub fn start(self: &Arc<Self>) {
        self.asynchronously(|stage| {
            // Errors and the end of preroll are posted on the bus. A pipeline without preroll is
            // live, whatever its source.
            let paused = stage.pipeline.set_state(gst::State::Paused);
            if paused == Ok(gst::StateChangeSuccess::NoPreroll) {
                stage.is_live.store(true, Ordering::Release);
                element(&stage.pipeline, NEWEST).set_property("sync", false);
                stage.follow();
            }
        });
    }

    /// Stops the pipeline, which may wait for the analysis of a frame.
    pub fn stop(&self) {
        *lock(&self.until) = Until::Stopped;
        // A seek may wait for an element that waits in a paused video.
        self.connection.flush();
        let _last_word = lock(&self.telling);
        let _ = self.pipeline.set_state(gst::State::Null);
    }

    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    /// Duration of the video; `None` if it is unknown.
    pub fn duration(&self) -> Option<gst::ClockTime> {
        self.pipeline.query_duration()
    }

    pub fn until(&self) -> Until {
        *lock(&self.until)
    }

    fn listen(self: &Arc<Self>, (drawing, outputs): (Drawing, Outputs)) {
        let stage = Arc::downgrade(self);
        let bus = self.pipeline.bus().expect("a pipeline has a bus");
        bus.set_sync_handler(move |_, message| {
            if let Some(stage) = stage.upgrade() {
                stage.hear(message);
            }
            gst::BusSyncReply::Drop
        });

        let stage = Arc::downgrade(self);
        let newest = element(&self.pipeline, NEWEST);
        let newest = newest.downcast::<gst_app::AppSink>().expect("an appsink");
        let mut number = 0;
        let take = move |sink: &gst_app::AppSink| {
            // The sink reuses its sample, which nothing else may hold then.
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?.copy();
            if let Some(stage) = stage.upgrade() {
                outputs.push(&sample);
                stage.hand_on(sample, &mut number, &drawing);
            }
            Ok(gst::FlowSuccess::Ok)
        };
        newest.set_callbacks(
            gst_app::AppSinkCallbacks::builder()
                .new_sample(take)
                .build(),
        );
    }

    /// Handles a tracked frame.
    fn hand_on(self: &Arc<Self>, sample: gst::Sample, number: &mut u64, drawing: &Drawing) {
        let now = self.pipeline.current_running_time();
        let Some(frame) = Frame::new(sample, *number, now) else {
            return;
        };
        let mut until = lock(&self.until);
        let is_last = match *until {
            Until::Paused | Until::Seek(_) | Until::Stopped => return,
            Until::Sought(time) if is_before(&frame, time) => return,
            Until::Sought(_) => true,
            Until::Time(time) => frame.time >= Some(time),
            Until::Forever => false,
        };
        if is_last {
            *until = Until::Paused;
            self.follow();
        }
        if !self.is_open.swap(true, Ordering::AcqRel) {
            self.tell(Event::Opened);
        }
        drawing.show(frame);
        *number += 1;
    }

    pub fn change(self: &Arc<Self>, until: Until) {
        *lock(&self.until) = until;
        self.follow();
    }

    /// Plays or pauses the pipeline. A live source continues unseen, since network cameras may not
    /// support pausing.
    fn follow(self: &Arc<Self>) {
        self.asynchronously(|stage| {
            // A live source that was shown plays on, and may be opened again at this moment.
            if stage.is_live() && stage.is_open.load(Ordering::Acquire) {
                return;
            }
            if let Until::Seek(time) = stage.until() {
                stage.find(time);
            }
            let is_wanted = !matches!(stage.until(), Until::Paused | Until::Stopped);
            let state = if is_wanted || stage.is_live() {
                gst::State::Playing
            } else {
                gst::State::Paused
            };
            // The bus has the reason of a failure.
            let _ = stage.pipeline.set_state(state);
        });
    }

    /// Seeks a frame at or after a time. Without support for it, the video pauses.
    fn find(&self, time: gst::ClockTime) {
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE | gst::SeekFlags::SEGMENT;
        let is_sought = self
            .pipeline
            .seek_simple(flags, time.saturating_sub(LEAD))
            .is_ok();
        if !is_sought {
            self.tell(Event::Warned("this video cannot be searched".to_owned()));
        }
        let mut until = lock(&self.until);
        // Something else may have been wanted in the meantime.
        if *until == Until::Seek(time) {
            *until = if is_sought {
                Until::Sought(time)
            } else {
                Until::Paused
            };
        }
    }

    /// Runs a function that may wait for the pipeline in a thread of its own, unless the pipeline
    /// was stopped.
    fn asynchronously(self: &Arc<Self>, act: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let stage = Arc::downgrade(self);
        self.pipeline.call_async(move |_| {
            let Some(stage) = stage.upgrade() else {
                return;
            };
            stage.unless_stopped(|| act(&stage));
        });
    }

    /// Runs a function that changes the state of the pipeline, unless that was stopped.
    pub fn unless_stopped<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let _last_word = lock(&self.telling);
        (self.until() != Until::Stopped).then(act)
    }

    /// Handles a message in the thread that posts it.
    fn hear(self: &Arc<Self>, message: &gst::Message) {
        match message.view() {
            MessageView::Latency(_) => self.asynchronously(|stage| {
                let _ = stage.pipeline.recalculate_latency();
            }),
            MessageView::AsyncDone(_) if !self.is_live() => self.begin(),
            MessageView::SegmentDone(_) => self.asynchronously(|stage| {
                if stage.seek(gst::SeekFlags::SEGMENT).is_err() {
                    stage.tell(Event::Ended);
                }
            }),
            MessageView::Eos(_) => self.tell(Event::Ended),
            MessageView::Element(message) => {
                let read = |it| ready(it).or_else(|| neutral(it));
                if let Some(event) = message.structure().and_then(read) {
                    self.tell(event);
                }
            }
            MessageView::Warning(warning) => {
                self.tell(Event::Warned(warning.error().message().to_owned()));
            }
            MessageView::Error(error) => {
                let name = error.src().map(|it| it.name()).unwrap_or_default();
                let name = match name.as_str() {
                    "source" => self.connection.source.to_string(),
                    name => name.to_owned(),
                };
                let text = format!("{name}: {}", error.error().message());
                if self.may_return() && error.src().is_some_and(is_of_source) {
                    self.lose(text);
                } else {
                    self.tell(Event::Failed(text));
                }
            }
            _ => (),
        }
    }

    /// Plays a prerolled file as a segment, which can be repeated without a gap. A file without
    /// support for it is played once.
    fn begin(self: &Arc<Self>) {
        self.asynchronously(|stage| {
            let is_first = !stage.repeats.swap(true, Ordering::AcqRel);
            let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::SEGMENT;
            // The file prerolls again after a seek.
            if is_first && stage.seek(flags).is_ok() {
                return;
            }
            let is_stream = is_first && matches!(stage.connection.source, Source::Uri(_));
            stage.is_stream.fetch_or(is_stream, Ordering::AcqRel);
            stage.follow();
        });
    }

    fn seek(&self, flags: gst::SeekFlags) -> Result<(), gst::glib::BoolError> {
        self.pipeline.seek_simple(flags, gst::ClockTime::ZERO)
    }

    /// Returns true if the source may be back after it has ended. One that was never seen may have a
    /// wrong name.
    fn may_return(&self) -> bool {
        let has_end = !self.is_live() && !self.is_stream.load(Ordering::Acquire);
        !has_end && self.is_open.load(Ordering::Acquire)
    }

    /// Opens a source again that was lost, until it is back. All else keeps its state: the engine,
    /// the neutral face, the gains and the outputs.
    fn lose(self: &Arc<Self>, reason: String) {
        // Without one, this is a consequence of another error.
        let Some(lost) = self.connection.take() else {
            return;
        };
        self.tell(Event::Lost(reason));
        let stage = Arc::downgrade(self);
        // Not in this thread, which may be one of the source.
        self.pipeline
            .call_async(move |pipeline| connection::reopen(pipeline, &lost, &stage));
    }

    /// Handles the end of the source in its thread. Returns true if the rest of the pipeline must
    /// not end.
    pub fn on_source_end(self: &Arc<Self>) -> bool {
        let may_return = self.may_return();
        if may_return {
            self.lose(format!("{} has ended", self.connection.source));
        }
        may_return
    }

    /// Opens a live source again that has had no frame for some time.
    pub fn watch(self: &Arc<Self>, now: Instant) {
        if self.is_live() && self.may_return() && self.connection.silence(now) > STALLED {
            self.lose(format!("{} has no frames", self.connection.source));
        }
    }

    pub fn tell(&self, event: Event) {
        // Without an event loop the program is ending.
        let _ = self.events.send_event(event);
    }
}

/// Returns true if a frame is one before the frame that was sought. If that does not exist, the video
/// is repeated, and its first frame is still earlier.
fn is_before(frame: &Frame, sought: gst::ClockTime) -> bool {
    let before = sought.saturating_sub(LEAD)..sought.saturating_sub(ROUNDING);
    frame.time.is_some_and(|time| before.contains(&time))
}

fn ready(message: &gst::StructureRef) -> Option<Event> {
    if message.name() != "facetrack-ready" {
        return None;
    }
    Some(Event::Ready {
        engine: message.get("engine").ok()?,
        device: message.get("device").ok()?,
    })
}

fn neutral(message: &gst::StructureRef) -> Option<Event> {
    let rest = || message.get::<gst::Structure>("rest").ok();
    match message.get("event").ok()? {
        "neutral-learned" => Some(Event::Learned(
            rest()?
                .iter()
                .filter_map(|(name, value)| Some((name.to_string(), value.get().ok()?)))
                .collect(),
        )),
        "neutral-kept" => Some(Event::Kept),
        _ => None,
    }
}
