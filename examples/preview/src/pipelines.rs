// SPDX-License-Identifier: MPL-2.0
//! What both pipelines need, and what they tell the window.

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gst::prelude::*;

/// What pipelines tell the window.
#[derive(Debug)]
pub enum Event {
    /// There is a first frame, of this size as it is to be shown.
    Opened([u32; 2]),
    /// There is another picture to show.
    Drawn,
    /// An engine is at work.
    Ready { engine: String, device: String },
    /// Something is not as it was asked for; everything goes on.
    Warned(String),
    /// The video is over.
    Ended,
    /// It can't go on.
    Failed(String),
}

/// A pipeline by its description.
///
/// # Errors
/// Says what to install where an element is missing.
pub fn launch(description: &str) -> Result<gst::Pipeline, Box<dyn Error>> {
    let pipeline =
        gst::parse::launch(description).map_err(|error| match error.kind::<gst::ParseError>() {
            Some(gst::ParseError::NoSuchElement) => {
                format!("{error}: `make preview` installs what may be missing")
            }
            _ => error.to_string(),
        })?;
    pipeline
        .downcast()
        .map_err(|_| "one element is no pipeline".into())
}

/// The element of a name in the description.
pub fn element(pipeline: &gst::Pipeline, name: &str) -> gst::Element {
    pipeline.by_name(name).expect("it is in the description")
}

/// Sets a property to the value of a text.
///
/// # Errors
/// Where the property has no such value.
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

/// A panic elsewhere is no reason to panic here: what these locks guard is whole between statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
