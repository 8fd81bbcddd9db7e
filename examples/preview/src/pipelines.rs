// SPDX-License-Identifier: MPL-2.0
//! Common parts of both pipelines, and their events for the window.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

use facetrack::findings::Finding;
use gst::prelude::*;

/// Events of the pipelines for the window.
#[derive(Debug)]
pub enum Event {
    /// The first frame arrived.
    Opened,
    /// A live source has ended, for this reason. It is opened again until it is back.
    Lost(String),
    /// A live source that was lost has frames again.
    Back,
    /// A new picture is available.
    Drawn,
    /// An engine is running.
    Ready { engine: String, device: String },
    /// The rest values of a face were learned.
    Learned(BTreeMap<String, f32>),
    /// A face has earlier rest values again.
    Kept,
    /// A request failed, but the video continues.
    Warned(String),
    /// The record was searched.
    Searched(Vec<Finding>),
    /// The video ended.
    Ended,
    /// A fatal error.
    Failed(String),
    /// The system asks the program to end.
    Quit,
}

/// A pipeline from its description.
///
/// # Errors
/// Returns an error if an element is missing; the message names a way to install it.
pub fn launch(description: &str) -> Result<gst::Pipeline, Box<dyn Error>> {
    let pipeline = gst::parse::launch(description).map_err(reason)?;
    pipeline
        .downcast()
        .map_err(|_| "one element is no pipeline".into())
}

/// A part of a pipeline from its description.
///
/// # Errors
/// Returns an error if an element is missing; the message names a way to install it.
pub fn bin(description: &str) -> Result<gst::Bin, String> {
    gst::parse::bin_from_description(description, false).map_err(reason)
}

fn reason(error: gst::glib::Error) -> String {
    match error.kind::<gst::ParseError>() {
        Some(gst::ParseError::NoSuchElement) => {
            format!("{error}: `make preview` installs what may be missing")
        }
        _ => error.to_string(),
    }
}

/// The element with a name of the description.
pub fn element(bin: &impl IsA<gst::Bin>, name: &str) -> gst::Element {
    bin.by_name(name).expect("it is in the description")
}

/// Sets a property to a value given as text.
///
/// # Errors
/// Returns an error if the property does not have such a value.
pub fn set(element: &gst::Element, name: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let spec = element.find_property(name).ok_or("no such property")?;
    let value = gst::glib::Value::deserialize_with_pspec(text, &spec).map_err(|_| {
        format!(
            "{name} can't be {text}: see `gst-inspect-1.0 {}`",
            kind(element)
        )
    })?;
    element.set_property_from_value(name, &value);
    Ok(())
}

fn kind(element: &gst::Element) -> gst::glib::GString {
    element
        .factory()
        .map_or_else(|| element.name(), |it| it.name())
}

/// Locks despite a panic in another thread: the data of these locks is consistent after every
/// statement.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
