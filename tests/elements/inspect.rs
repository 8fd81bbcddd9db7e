// SPDX-License-Identifier: MPL-2.0
//! `gst-inspect-1.0` without ONNX Runtime, models and GPU.

use crate::common::tool::Tool;
use facetrack::options::facetrack::FACETRACK;
use facetrack::options::facetrackoverlay::FACETRACKOVERLAY;
use facetrack::options::trackjsonload::TRACKJSONLOAD;
use facetrack::options::trackjsonsink::TRACKJSONSINK;
use facetrack::options::trackudpsink::TRACKUDPSINK;
use facetrack::options::{Access, Choice, Kind, OptionSpec};

#[test]
fn the_elements_read_like_gstreamers_own() {
    for (element, options) in [
        ("facetrack", FACETRACK),
        ("trackjsonload", TRACKJSONLOAD),
        ("facetrackoverlay", FACETRACKOVERLAY),
        ("trackjsonsink", TRACKJSONSINK),
        ("trackudpsink", TRACKUDPSINK),
    ] {
        assert_reads(element, options);
    }
}

fn assert_reads(element: &str, options: &[OptionSpec]) {
    let inspected = Tool::new("gst-inspect-1.0").arg(element).run();
    assert!(inspected.success, "{}", inspected.text);
    for option in options {
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
        if let Kind::Flags { choices, .. } = option.kind {
            assert_flags(&inspected.text[at..], choices);
        }
        if let Kind::Int { .. } | Kind::Float { .. } = option.kind {
            assert!(
                entry.contains("Range:") && entry.contains("Default:"),
                "{entry}"
            );
        }
    }
}

/// Each flag has a line with its word and what the table says of it, in the table's order.
fn assert_flags(entry: &str, choices: &[Choice]) {
    let flags = entry.lines().filter(|line| line.contains("(0x"));
    let flags: Vec<_> = flags.take(choices.len()).collect();
    assert_eq!(flags.len(), choices.len(), "{entry}");
    for (bit, (line, choice)) in std::iter::zip(flags, choices).enumerate() {
        let value = format!("(0x{:08x}): {:17}- {}", 1 << bit, choice.nick, choice.blurb);
        assert!(line.contains(&value), "{line}: {value}");
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
