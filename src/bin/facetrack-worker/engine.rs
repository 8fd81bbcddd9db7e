// SPDX-License-Identifier: MPL-2.0
//! The loaded engine, which all videos share, and the settings of the record.

use facetrack::printable::Line;
use facetrack_jobs::{Ready, Setup, SetupError};
use gst::glib;
use gst::prelude::*;
use gstfacetrack::facetrack::FaceTrack;
use gstfacetrack::options;
use gstfacetrack::trackjsonsink::TrackJsonSink;

/// Properties that `facetrack run` sets, or that would transfer data from video to video.
const RESERVED: [(&str, &str); 5] = [
    ("location", "use --out"),
    ("overwrite", "use --force"),
    ("video-path", "the record has the path of the input"),
    (
        "calibration-file",
        "each video starts without a calibration, so that the order of videos does not matter",
    ),
    (
        "neutral-file",
        "each video starts without rest values, so that the order of videos does not matter. Set neutral-time",
    ),
];

/// A path without a file, for a check of settings that opens nothing.
const NOWHERE: &str = "/dev/null/record.json";

/// An engine that stays loaded from video to video.
pub(crate) struct Engine {
    pub facetrack: FaceTrack,
    /// Properties of the record.
    properties: Vec<(String, glib::Value)>,
    pub decoder_threads: u32,
    pub ready: Ready,
}

impl Engine {
    /// Applies the settings and loads the engine.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid, or the engine cannot be loaded.
    pub(crate) fn load(setup: &Setup) -> Result<Self, SetupError> {
        let mut engine = Self {
            facetrack: glib::Object::new(),
            properties: Vec::new(),
            decoder_threads: setup.decoder_threads,
            ready: Ready::default(),
        };
        if let Some(name) = &setup.engine {
            engine.set("engine", name)?;
        }
        for (name, text) in &setup.properties {
            engine.set(name, text)?;
        }
        let sink = engine.sink();
        sink.set_property("location", NOWHERE);
        get_ready(sink.upcast_ref())?;
        let options_of_sink = sink.effective_options();
        let _ = sink.set_state(gst::State::Null);
        let message = get_ready(engine.facetrack.upcast_ref())?;
        engine.ready = ready(message);
        engine.ready.options = engine.facetrack.effective_options();
        engine.ready.options.extend(options_of_sink);
        Ok(engine)
    }

    /// Sets a property of `facetrack`, or of all records.
    fn set(&mut self, name: &str, text: &str) -> Result<(), SetupError> {
        let sink: TrackJsonSink = glib::Object::new();
        if let Some(value) = value(self.facetrack.upcast_ref(), name, text)? {
            self.facetrack.set_property_from_value(name, &value);
        } else if let Some(value) = value(sink.upcast_ref(), name, text)? {
            self.properties.push((name.to_owned(), value));
        } else {
            return Err(unknown(name));
        }
        Ok(())
    }

    /// A sink with the settings of the record.
    pub(crate) fn sink(&self) -> TrackJsonSink {
        let sink: TrackJsonSink = glib::Object::new();
        for (name, value) in &self.properties {
            sink.set_property_from_value(name, value);
        }
        sink
    }

    /// Loads the engine again if it has moved to another device, as after a failure of the GPU, so
    /// that every video begins in the same state.
    pub(crate) fn restore_device(&self) {
        let device: Option<String> = self.facetrack.property("active-device");
        if device.is_some_and(|device| device != self.ready.device) {
            let _ = self.facetrack.set_state(gst::State::Null);
            let _ = self.facetrack.set_state(gst::State::Ready);
        }
    }
}

/// The value of a property of the element's own class; `None` if it has no such property.
pub(crate) fn value(
    element: &gst::Element,
    name: &str,
    text: &str,
) -> Result<Option<glib::Value>, SetupError> {
    let spec = element.find_property(name).filter(|spec| {
        let is_writable = spec.flags().contains(glib::ParamFlags::WRITABLE);
        is_writable && spec.owner_type() == element.type_()
    });
    let Some(spec) = spec else { return Ok(None) };
    let reserved = RESERVED.iter().find(|(reserved, _)| *reserved == name);
    if let Some((_, reason)) = reserved {
        return Err(SetupError::usage(format!(
            "`{name}` cannot be set: {reason}"
        )));
    }
    let value = options::parse(&spec, text);
    value
        .map(Some)
        .map_err(|expected| SetupError::usage(format!("`{name}={text}`: {expected}")))
}

fn unknown(name: &str) -> SetupError {
    SetupError::usage(format!(
        "neither facetrack nor trackjsonsink has a property `{name}`. \
         `gst-inspect-1.0 facetrack` and `gst-inspect-1.0 trackjsonsink` list them"
    ))
}

/// Takes an element to READY, passes its warnings on, and returns the message `facetrack-ready`.
pub(crate) fn get_ready(element: &gst::Element) -> Result<Option<gst::Message>, SetupError> {
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    let changed = element.set_state(gst::State::Ready);
    let mut ready = None;
    while let Some(message) = bus.pop() {
        match message.view() {
            gst::MessageView::Warning(warning) => eprintln!("{}", Line(warning.error().message())),
            gst::MessageView::Error(error) => return Err(refused(&error.error())),
            gst::MessageView::Element(_) => ready = Some(message),
            _ => (),
        }
    }
    element.set_bus(None);
    changed.map_err(SetupError::other)?;
    Ok(ready)
}

fn refused(error: &glib::Error) -> SetupError {
    SetupError {
        message: error.message().to_owned(),
        is_usage: error.matches(gst::LibraryError::Settings),
    }
}

/// The engine as the message `facetrack-ready` describes it.
fn ready(message: Option<gst::Message>) -> Ready {
    let structure = message.as_ref().and_then(|message| message.structure());
    let text = |name| structure.and_then(|it| it.get::<String>(name).ok());
    let models = structure.and_then(|it| it.get::<gst::Structure>("models").ok());
    let models = models.iter().flat_map(|models| models.iter());
    let hashes = models.filter_map(|(name, value)| Some((name.to_string(), value.get().ok()?)));
    Ready {
        engine: text("engine").unwrap_or_default(),
        device: text("device").unwrap_or_default(),
        device_reason: text("reason").unwrap_or_default(),
        models: hashes.collect(),
        ..Ready::default()
    }
}
