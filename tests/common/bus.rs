// SPDX-License-Identifier: MPL-2.0
//! Messages of elements on a bus.

use std::ops::Deref;
use std::sync::Arc;

use gst::glib;
use gst::prelude::*;

/// The bus of an element, as long as it is watched. An element holds its bus, and an unread message
/// its element, so that both would stay for ever.
#[derive(Clone)]
pub struct Watch(Arc<Flushed>);

struct Flushed(gst::Bus);

impl Watch {
    pub fn of(element: &gst::Element) -> Self {
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        Self(Arc::new(Flushed(bus)))
    }
}

impl Deref for Watch {
    type Target = gst::Bus;

    fn deref(&self) -> &gst::Bus {
        &self.0.0
    }
}

impl Drop for Flushed {
    fn drop(&mut self) {
        self.0.set_flushing(true);
    }
}

/// The next error, warning or info on a bus, if there is one.
pub fn next(bus: &gst::Bus, kind: gst::MessageType) -> Option<glib::Error> {
    let message = bus.pop_filtered(&[kind])?;
    match message.view() {
        gst::MessageView::Error(error) => Some(error.error()),
        gst::MessageView::Warning(warning) => Some(warning.error()),
        gst::MessageView::Info(info) => Some(info.error()),
        other => panic!("{other:?} is none of them"),
    }
}

/// The text of the next error.
pub fn error(bus: &gst::Bus) -> Option<String> {
    next(bus, gst::MessageType::Error).map(|error| error.to_string())
}

/// The text of the next warning.
pub fn warning(bus: &gst::Bus) -> Option<String> {
    next(bus, gst::MessageType::Warning).map(|warning| warning.to_string())
}

/// All warnings, in turn.
pub fn warnings(bus: &gst::Bus) -> Vec<String> {
    std::iter::from_fn(|| warning(bus)).collect()
}

/// The error on the way from NULL to READY.
#[track_caller]
pub fn refusal(element: &gst::Element) -> glib::Error {
    let bus = Watch::of(element);
    let result = element.set_state(gst::State::Ready);
    element.set_state(gst::State::Null).expect("NULL");
    assert!(result.is_err(), "it is refused");
    next(&bus, gst::MessageType::Error).expect("an error message")
}
