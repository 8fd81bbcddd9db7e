// SPDX-License-Identifier: MPL-2.0
//! Finds frames that are dropped because any sink of the pipeline is late. Decoders and filters
//! report each of them on the bus.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use gst::glib;
use gst::prelude::*;

use super::TrackJsonSink;
use facetrack_assets::lock::lock;

/// Stream times of dropped frames, ns, in the order of the reports.
#[derive(Clone, Default)]
pub(super) struct Drops(Arc<Mutex<VecDeque<u64>>>);

/// Listens until it is dropped.
pub(super) struct Listener {
    bus: gst::Bus,
    handler: Option<glib::SignalHandlerId>,
}

impl Drops {
    /// Listens on the bus of the pipeline; `None` if it has none. Only this bus sees the messages
    /// of all elements.
    pub(super) fn listen(&self, sink: &TrackJsonSink) -> Option<Listener> {
        let bus = pipeline(sink.upcast_ref()).bus()?;
        let (drops, sink) = (self.0.clone(), sink.downgrade());
        bus.enable_sync_message_emission();
        let handler = bus.connect_sync_message(Some("qos"), move |_, message| {
            let time = sink.upgrade().and_then(|sink| late_frame(message, &sink));
            lock(&drops).extend(time.map(gst::ClockTime::nseconds));
        });
        Some(Listener {
            bus,
            handler: Some(handler),
        })
    }

    /// Number of frames that were dropped up to a stream time, ns.
    pub(super) fn take_until(&self, time: u64) -> u64 {
        let mut drops = lock(&self.0);
        let before = drops.len();
        drops.retain(|drop| *drop > time);
        (before - drops.len()) as u64
    }

    /// The other dropped frames.
    pub(super) fn take(&self) -> VecDeque<u64> {
        std::mem::take(&mut lock(&self.0))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(handler) = self.handler.take() {
            self.bus.disconnect(handler);
        }
        self.bus.disable_sync_message_emission();
    }
}

/// The outermost element around `element`.
fn pipeline(element: &gst::Element) -> gst::Element {
    let parents = std::iter::successors(Some(element.clone()), |element| {
        element.parent()?.downcast().ok()
    });
    parents.last().unwrap_or_else(|| element.clone())
}

/// Stream time of the frame that `message` reports as late and dropped on the way to `sink`.
/// Decoders report frames that they cannot decode in the same way, but these are not late.
fn late_frame(message: &gst::Message, sink: &TrackJsonSink) -> Option<gst::ClockTime> {
    let gst::MessageView::Qos(qos) = message.view() else {
        return None;
    };
    let (lateness, ..) = qos.values();
    let (_, _, stream_time, ..) = qos.get();
    let source = message.src()?.downcast_ref::<gst::Element>()?;
    let is_before = source == sink.upcast_ref::<gst::Element>() || passes_video(source);
    stream_time.filter(|_| lateness > 0 && is_before)
}

/// Returns true if an element passes frames on: other sinks drop only what they would show.
fn passes_video(element: &gst::Element) -> bool {
    let class = element.metadata(gst::ELEMENT_METADATA_KLASS);
    element.num_src_pads() > 0 && class.is_some_and(|class| class.contains("Video"))
}
