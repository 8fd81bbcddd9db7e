// SPDX-License-Identifier: MPL-2.0
//! Tables of properties in Markdown.

use std::fmt::Write as _;

use gst::glib;
use gst::prelude::*;
use gstfacetrack::options::{display, expected};

/// The elements of the plugin.
pub const ELEMENTS: [&str; 6] = [
    "facetrack",
    "facetrackblur",
    "facetrackoverlay",
    "trackjsonsink",
    "trackjsonload",
    "trackudpsink",
];

/// The properties that an element defines itself.
pub fn own_properties(element: &gst::Element) -> Vec<glib::ParamSpec> {
    let mut specs = element.list_properties().to_vec();
    specs.retain(|spec| spec.owner_type() == element.type_());
    specs
}

/// The properties of an element as a table.
pub fn table(element: &gst::Element) -> String {
    let mut table = String::from(
        "| property | values | default | changes in | meaning |\n|---|---|---|---|---|\n",
    );
    for spec in &own_properties(element) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {} | {}{} |",
            spec.name(),
            expected(spec),
            default(spec),
            access(spec),
            spec.blurb().unwrap_or_default().replace('<', "\\<"),
            words(spec),
        );
    }
    table
}

fn default(spec: &glib::ParamSpec) -> String {
    let is_fixed = !spec.flags().contains(glib::ParamFlags::WRITABLE);
    match display(spec.default_value()) {
        default if is_fixed || default == "unset" => String::new(),
        default => format!("`{default}`"),
    }
}

fn access(spec: &glib::ParamSpec) -> &'static str {
    let flags = spec.flags();
    if !flags.contains(glib::ParamFlags::WRITABLE) {
        "read-only"
    } else if flags.contains(gst::PARAM_FLAG_MUTABLE_PLAYING) {
        "always"
    } else {
        "NULL, READY"
    }
}

/// The meaning of each word of an enum or of flags.
fn words(spec: &glib::ParamSpec) -> String {
    let value_type = spec.value_type();
    let describe = |(word, blurb): (&str, &str)| format!("`{word}`: {blurb}");
    let words: Vec<_> = if let Some(class) = glib::EnumClass::with_type(value_type) {
        let values = class.values().iter();
        values
            .map(|value| describe((value.nick(), value.name())))
            .collect()
    } else if let Some(class) = glib::FlagsClass::with_type(value_type) {
        let values = class.values().iter();
        values
            .map(|value| describe((value.nick(), value.name())))
            .collect()
    } else {
        return String::new();
    };
    format!(" ({})", words.join("; "))
}
