// SPDX-License-Identifier: MPL-2.0
//! `gst-inspect-1.0` without ONNX Runtime, models and GPU.
#![cfg(feature = "gst")]

mod common;

use common::tool::Tool;
use gstfacetrack::face::options::facetrack::FACETRACK;
use gstfacetrack::face::options::{Access, Kind};

#[test]
fn the_element_reads_like_gstreamers_own() {
    let inspected = Tool::new("gst-inspect-1.0").arg("facetrack").run();
    assert!(inspected.success, "{}", inspected.text);
    for option in FACETRACK {
        let at = inspected
            .text
            .find(&format!("  {:20}: ", option.name))
            .unwrap_or_else(|| panic!("no `{}` in {}", option.name, inspected.text));
        let entry: String = inspected.text[at..].lines().take(3).collect();
        assert!(entry.contains(&option.long_blurb()), "{entry}");
        let flags = match option.access {
            Access::Ready => "changeable only in NULL or READY state",
            Access::Playing => "changeable in NULL, READY, PAUSED or PLAYING state",
            Access::ReadOnly => "flags: readable",
        };
        assert!(entry.contains(flags), "{entry}");
        assert_eq!(
            option.access != Access::ReadOnly,
            entry.contains("writable")
        );
        if let Kind::Int { .. } | Kind::Float { .. } = option.kind {
            assert!(
                entry.contains("Range:") && entry.contains("Default:"),
                "{entry}"
            );
        }
    }
}

#[test]
fn the_action_signal_is_shown() {
    let inspected = Tool::new("gst-inspect-1.0").arg("facetrack").run();
    let (_, actions) = inspected
        .text
        .split_once("Element Actions:")
        .unwrap_or_else(|| panic!("no actions in {}", inspected.text));
    assert!(actions.contains("\"reset-calibration\""), "{actions}");
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
