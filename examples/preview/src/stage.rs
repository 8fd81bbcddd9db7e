// SPDX-License-Identifier: MPL-2.0
//! What the threads of the tracking pipeline do: they hand frames on, and hear what the pipeline says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gst::MessageView;
use gst::prelude::*;
use winit::event_loop::EventLoopProxy;

use crate::drawing::{Drawing, Frame};
use crate::pipelines::{Event, element, lock};
use crate::source::Source;
use crate::tracking::NEWEST;

/// How long frames are handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// All the time.
    Forever,
    /// Until one of this time of the video, or a later one, was.
    Time(gst::ClockTime),
    /// Not now.
    Paused,
    /// Never again.
    Stopped,
}

/// What the pipeline's threads share with the window's.
pub struct Stage {
    pipeline: gst::Pipeline,
    until: Mutex<Until>,
    /// Held while the pipeline is told something, so that the last word is the newest.
    telling: Mutex<()>,
    /// Whether frames come when they come, and are shown at once. The pipeline tells when it starts.
    is_live: AtomicBool,
    /// What users know the source as.
    source: String,
    /// Whether a video was told that it is to be repeated.
    repeats: AtomicBool,
    events: EventLoopProxy<Event>,
}

impl Stage {
    /// Listens to a pipeline that does not play yet.
    pub fn new(
        pipeline: gst::Pipeline,
        source: &Source,
        until: Until,
        drawing: Drawing,
        events: EventLoopProxy<Event>,
    ) -> Arc<Self> {
        let stage = Arc::new(Self {
            until: Mutex::new(until),
            telling: Mutex::default(),
            is_live: AtomicBool::default(),
            source: source.to_string(),
            repeats: AtomicBool::default(),
            events,
            pipeline,
        });
        stage.listen(drawing);
        stage
    }

    /// Begins to load and to play.
    pub fn start(self: &Arc<Self>) {
        self.asynchronously(|stage| {
            // Errors are on the bus, and so is that a file is there. What has no frame before it plays is live, whatever
            // kind of source it is.
            let paused = stage.pipeline.set_state(gst::State::Paused);
            if paused == Ok(gst::StateChangeSuccess::NoPreroll) {
                stage.is_live.store(true, Ordering::Release);
                element(&stage.pipeline, NEWEST).set_property("sync", false);
                stage.follow();
            }
        });
    }

    /// Ends it, which may wait for a frame's analysis.
    pub fn stop(&self) {
        *lock(&self.until) = Until::Stopped;
        let _last_word = lock(&self.telling);
        let _ = self.pipeline.set_state(gst::State::Null);
    }

    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    pub fn until(&self) -> Until {
        *lock(&self.until)
    }

    fn listen(self: &Arc<Self>, drawing: Drawing) {
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
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
            if let Some(stage) = stage.upgrade() {
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

    /// A frame was tracked.
    fn hand_on(self: &Arc<Self>, sample: gst::Sample, number: &mut u64, drawing: &Drawing) {
        let now = self.pipeline.current_running_time();
        let Some(frame) = Frame::new(sample, *number, now) else {
            return;
        };
        let mut until = lock(&self.until);
        let is_last = match *until {
            Until::Paused | Until::Stopped => return,
            Until::Time(time) => frame.time >= Some(time),
            Until::Forever => false,
        };
        if is_last {
            *until = Until::Paused;
            self.follow();
        }
        if *number == 0 {
            self.tell(Event::Opened(frame.size));
        }
        drawing.show(frame);
        *number += 1;
    }

    pub fn change(self: &Arc<Self>, until: Until) {
        *lock(&self.until) = until;
        self.follow();
    }

    /// Has the pipeline play or pause. What is live goes on unseen: a camera in the network may not know how to pause.
    fn follow(self: &Arc<Self>) {
        self.asynchronously(|stage| {
            let is_wanted = !matches!(stage.until(), Until::Paused | Until::Stopped);
            let state = match is_wanted || stage.is_live() {
                true => gst::State::Playing,
                false => gst::State::Paused,
            };
            // Why it does not, the bus tells.
            let _ = stage.pipeline.set_state(state);
        });
    }

    /// Does what may wait for the pipeline, in a thread where that is no matter; nothing once it was stopped.
    fn asynchronously(self: &Arc<Self>, act: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let stage = Arc::downgrade(self);
        self.pipeline.call_async(move |_| {
            let Some(stage) = stage.upgrade() else {
                return;
            };
            let _last_word = lock(&stage.telling);
            if stage.until() != Until::Stopped {
                act(&stage);
            }
        });
    }

    /// What the pipeline says, in the thread in which it does.
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
                if let Some(ready) = message.structure().and_then(ready) {
                    self.tell(ready);
                }
            }
            MessageView::Warning(warning) => {
                self.tell(Event::Warned(warning.error().message().to_owned()));
            }
            MessageView::Error(error) => {
                let name = error.src().map(|it| it.name()).unwrap_or_default();
                let name = match name.as_str() {
                    "source" => &self.source,
                    name => name,
                };
                let text = format!("{name}: {}", error.error().message());
                self.tell(Event::Failed(text));
            }
            _ => (),
        }
    }

    /// A file is there: it is played as a segment, which can be followed by itself without a hole. One that can't be is
    /// played once.
    fn begin(self: &Arc<Self>) {
        self.asynchronously(|stage| {
            let is_first = !stage.repeats.swap(true, Ordering::AcqRel);
            let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::SEGMENT;
            // After a seek it is there once more.
            if !is_first || stage.seek(flags).is_err() {
                stage.follow();
            }
        });
    }

    fn seek(&self, flags: gst::SeekFlags) -> Result<(), gst::glib::BoolError> {
        self.pipeline.seek_simple(flags, gst::ClockTime::ZERO)
    }

    fn tell(&self, event: Event) {
        // Without an event loop the program is about to end.
        let _ = self.events.send_event(event);
    }
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
