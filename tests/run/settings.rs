// SPDX-License-Identifier: MPL-2.0
//! Properties by their own names.

use gst::prelude::*;

use crate::clips;
use crate::common;
use crate::program::{SCRIPTED, run};

/// Properties that `facetrack run` sets itself.
const RESERVED: [&str; 5] = [
    "location",
    "overwrite",
    "video-path",
    "calibration-file",
    "neutral-file",
];

#[test]
fn every_property_can_be_set() {
    common::init();
    let folder = clips::videos(&[2]);
    let mut line = format!("in --dry-run {SCRIPTED}");
    for element in ["facetrack", "trackjsonsink"] {
        let element = gst::ElementFactory::make(element).build().expect("ours");
        let own = element.list_properties().to_vec();
        let own = own.into_iter().filter(|spec| {
            let is_writable = spec.flags().contains(gst::glib::ParamFlags::WRITABLE);
            let is_set_otherwise = RESERVED.contains(&spec.name()) || spec.name() == "engine";
            spec.owner_type() == element.type_() && is_writable && !is_set_otherwise
        });
        for spec in own {
            let value = gstfacetrack::options::display(spec.default_value());
            if !value.contains(' ') && value != "unset" {
                line += &format!(" --set {}={value}", spec.name());
            }
        }
    }
    assert!(line.matches("--set").count() > 40, "{line}");
    run(folder.path(), &line).exits(0);
    for name in RESERVED {
        let text = run(folder.path(), &format!("in --set {name}=true {SCRIPTED}")).exits(2);
        assert!(text.contains("cannot be set"), "{text}");
    }
}
