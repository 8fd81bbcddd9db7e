// SPDX-License-Identifier: MPL-2.0
//! The elements of the source in the tracking pipeline. A live source that was lost gets new ones.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use gst::prelude::*;

use crate::pipelines::{Event, element, lock};
use crate::source::Source;
use crate::stage::Stage;
use crate::tracking::ENTRY;

/// Name of the bin with the elements of the source.
const NAME: &str = "video";

/// Time from the loss of a source to a try to open it again, and between tries. Short, so that the
/// picture is back soon; a try costs little.
const RETRY: Duration = Duration::from_millis(500);

/// Time without frames after which a live source is opened again: longer than network cameras need
/// for the first frame, since few have key frames more than 10 s apart.
pub const STALLED: Duration = Duration::from_secs(10);

/// The source in a pipeline.
pub struct Connection {
    pipeline: gst::Pipeline,
    pub source: Source,
    /// The elements; `None` while they are being replaced.
    elements: Mutex<Option<gst::Bin>>,
    /// Time of the last frame, or of the last try.
    heard: Mutex<Instant>,
    /// True from the loss of the source to its next frame.
    is_lost: AtomicBool,
}

impl Connection {
    /// A source whose elements do not exist yet.
    pub fn new(pipeline: gst::Pipeline, source: Source) -> Self {
        Self {
            pipeline,
            source,
            elements: Mutex::default(),
            heard: Mutex::new(Instant::now()),
            is_lost: AtomicBool::default(),
        }
    }

    /// Adds the elements, in the state of the pipeline.
    ///
    /// # Errors
    /// Returns an error if they cannot be created. The reason why they do not start is on the bus.
    pub fn open(&self, stage: &Arc<Stage>) -> Result<(), Box<dyn Error>> {
        let elements = self.source.elements()?;
        elements.set_property("name", NAME);
        let pad = elements.static_pad("src").ok_or("no pad")?;
        if !stage.is_live() {
            // The times of a stream begin at 0 again.
            let now = self.pipeline.current_running_time().unwrap_or_default();
            pad.set_offset(now.nseconds() as i64);
        }
        let mask = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        let stage = Arc::downgrade(stage);
        pad.add_probe(mask, move |pad, info| match stage.upgrade() {
            Some(stage) if stage.connection.is_current(pad) => stage.connection.pass(info, &stage),
            _ => gst::PadProbeReturn::Handled,
        });
        self.pipeline.add(&elements)?;
        elements.link(&element(&self.pipeline, ENTRY))?;
        *lock(&self.heard) = Instant::now();
        // Before they start, so that an error finds them.
        *lock(&self.elements) = Some(elements.clone());
        let _ = elements.sync_state_with_parent();
        Ok(())
    }

    /// Returns true for the pad of the present elements. Those of a lost source may have frames left.
    fn is_current(&self, pad: &gst::Pad) -> bool {
        let elements = lock(&self.elements);
        let elements = elements.as_ref().map(|it| it.upcast_ref::<gst::Element>());
        elements == pad.parent_element().as_ref()
    }

    /// Handles what leaves the source.
    fn pass(&self, info: &gst::PadProbeInfo<'_>, stage: &Arc<Stage>) -> gst::PadProbeReturn {
        match &info.data {
            Some(gst::PadProbeData::Buffer(_)) => {
                *lock(&self.heard) = Instant::now();
                if self.is_lost.swap(false, Ordering::AcqRel) {
                    stage.tell(Event::Back);
                }
            }
            Some(gst::PadProbeData::Event(event)) => {
                let is_end = event.type_() == gst::EventType::Eos;
                if is_end && stage.on_source_end() {
                    return gst::PadProbeReturn::Handled;
                }
            }
            _ => (),
        }
        gst::PadProbeReturn::Ok
    }

    /// Takes the elements of a source that is lost; `None` if they were taken before.
    pub fn take(&self) -> Option<gst::Bin> {
        let elements = lock(&self.elements).take()?;
        self.is_lost.store(true, Ordering::Release);
        Some(elements)
    }

    /// Ends all waiting for frames in the pipeline.
    pub fn flush(&self) {
        let pad = element(&self.pipeline, ENTRY).static_pad("sink");
        pad.map(|pad| pad.send_event(gst::event::FlushStart::new()));
    }

    /// Time since the last frame.
    pub fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(*lock(&self.heard))
    }
}

/// Returns true for elements of the source.
pub fn is_of_source(object: &gst::Object) -> bool {
    let parents = std::iter::successors(Some(object.clone()), |it| it.parent());
    parents.into_iter().any(|it| it.name() == NAME)
}

/// Removes the elements of a lost source, and adds new ones as soon as they can be created.
pub fn reopen(pipeline: &gst::Pipeline, lost: &gst::Bin, stage: &Weak<Stage>) {
    if let Some(stage) = stage.upgrade() {
        stage.unless_stopped(|| {
            let _ = pipeline.remove(lost);
            let _ = lost.set_state(gst::State::Null);
        });
    }
    loop {
        thread::sleep(RETRY);
        let Some(stage) = stage.upgrade() else {
            return;
        };
        let opened = stage.unless_stopped(|| stage.connection.open(&stage));
        if !matches!(opened, Some(Err(_))) {
            return;
        }
    }
}
