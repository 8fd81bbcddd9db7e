// SPDX-License-Identifier: MPL-2.0
//! `gst-inspect-1.0` without ONNX Runtime, models and GPU.

use crate::common;
use crate::common::property_table::{ELEMENTS, own_properties};
use crate::common::tool::Tool;

use gst::glib;

#[test]
fn the_elements_read_like_gstreamers_own() {
    common::init();
    for name in ELEMENTS {
        let element = gst::ElementFactory::make(name).build();
        assert_reads(&element.expect("the element"), name);
    }
}

fn assert_reads(element: &gst::Element, name: &str) {
    let inspected = Tool::new("gst-inspect-1.0").arg(name).run();
    assert!(inspected.success, "{}", inspected.text);
    for spec in &own_properties(element) {
        let at = inspected
            .text
            .find(&format!("  {:20}: ", spec.name()))
            .unwrap_or_else(|| panic!("no `{}` in {}", spec.name(), inspected.text));
        let entry: String = inspected.text[at..].lines().take(3).collect();
        let blurb = spec.blurb().expect("a blurb");
        assert!(entry.contains(blurb), "{entry}");
        let is_writable = spec.flags().contains(glib::ParamFlags::WRITABLE);
        let is_mutable = spec.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING);
        let flags = match (is_writable, is_mutable) {
            (true, false) => "changeable only in NULL or READY state",
            (true, true) => "changeable in NULL, READY, PAUSED or PLAYING state",
            (false, _) => "flags: readable",
        };
        assert!(entry.contains(flags), "{entry}");
        assert_eq!(is_writable, entry.contains("writable"));
        if let Some(class) = glib::FlagsClass::with_type(spec.value_type()) {
            assert_flags(&inspected.text[at..], &class);
        }
        if is_number(spec) {
            assert!(
                entry.contains("Range:") && entry.contains("Default:"),
                "{entry}"
            );
        }
    }
}

fn is_number(spec: &glib::ParamSpec) -> bool {
    [glib::Type::U32, glib::Type::I32, glib::Type::F64].contains(&spec.value_type())
}

/// Each flag has a line with its word and its description, in the order of the bits.
fn assert_flags(entry: &str, class: &glib::FlagsClass) {
    let values = class.values();
    let flags = entry.lines().filter(|line| line.contains("(0x"));
    let flags: Vec<_> = flags.take(values.len()).collect();
    assert_eq!(flags.len(), values.len(), "{entry}");
    for (bit, (line, value)) in std::iter::zip(flags, values).enumerate() {
        let text = format!(
            "(0x{:08x}): {:17}- {}",
            1 << bit,
            value.nick(),
            value.name()
        );
        assert!(line.contains(&text), "{line}: {text}");
    }
}

#[test]
fn the_action_signals_are_shown() {
    let inspected = Tool::new("gst-inspect-1.0").arg("facetrack").run();
    let (_, actions) = inspected
        .text
        .split_once("Element Actions:")
        .unwrap_or_else(|| panic!("no actions in {}", inspected.text));
    for action in ["\"reset\"", "\"reset-calibration\""] {
        assert!(actions.contains(action), "{actions}");
    }
}

#[test]
fn the_plugin_says_what_it_is() {
    let inspected = Tool::new("gst-inspect-1.0")
        .args("--plugin facetrack")
        .run();
    assert!(inspected.success, "{}", inspected.text);
    for part in [
        "facetrack: Face tracker",
        "MPL-2.0",
        env!("CARGO_PKG_VERSION"),
    ] {
        assert!(
            inspected.text.contains(part),
            "{part} in {}",
            inspected.text
        );
    }
    // It is not one of GStreamer's own, whose documentation would be linked.
    assert!(
        !inspected.text.contains("freedesktop.org"),
        "{}",
        inspected.text
    );
}
