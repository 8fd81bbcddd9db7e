// SPDX-License-Identifier: MPL-2.0
//! The properties of the elements.

use std::path::Path;

use crate::common;
use crate::common::bus::{self, Watch};
use crate::common::property_table::{ELEMENTS, own_properties};

use facetrack::observation::Fields;
use facetrack::overlay::Layers;
use gst::glib;
use gst::prelude::*;
use gst_check::Harness;
use gstfacetrack::options::{display, expected};

fn element(name: &str) -> gst::Element {
    common::init();
    gst::ElementFactory::make(name)
        .build()
        .expect("the element")
}

#[test]
fn every_property_is_described() {
    for name in ELEMENTS {
        let element = element(name);
        let specs = own_properties(&element);
        assert!(!specs.is_empty());
        for spec in specs {
            let blurb = spec.blurb().expect("a blurb");
            assert!(!blurb.is_empty() && !blurb.ends_with('.'), "{blurb}");
            assert!(spec.flags().contains(glib::ParamFlags::READABLE));
            let is_mutable = spec.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING);
            assert!(!is_mutable || spec.flags().contains(glib::ParamFlags::WRITABLE));
        }
    }
}

#[test]
fn some_properties_change_while_playing() {
    let element = element("facetrack");
    for (name, flag) in [
        ("engine", gst::PARAM_FLAG_MUTABLE_PLAYING),
        ("predict", gst::PARAM_FLAG_MUTABLE_PLAYING),
        ("max-faces", gst::PARAM_FLAG_MUTABLE_READY),
        ("model", gst::PARAM_FLAG_MUTABLE_READY),
    ] {
        let spec = element.find_property(name).expect(name);
        assert!(spec.flags().contains(flag), "{name}");
    }
    for name in ["stats", "active-device", "capabilities"] {
        let spec = element.find_property(name).expect(name);
        assert!(!spec.flags().contains(glib::ParamFlags::WRITABLE), "{name}");
    }
}

/// A value that a property does not have.
fn other_value(element: &gst::Element, spec: &glib::ParamSpec) -> glib::Value {
    let value = element.property_value(spec.name());
    macro_rules! number {
        ($spec:ty, $number:ty) => {
            if let Some(spec) = spec.downcast_ref::<$spec>() {
                let is_least = value.get() == Ok(spec.minimum());
                return [spec.minimum(), spec.maximum()][usize::from(is_least)].to_value();
            }
        };
    }
    number!(glib::ParamSpecInt, i32);
    number!(glib::ParamSpecUInt, u32);
    number!(glib::ParamSpecDouble, f64);
    if let Some(class) = glib::EnumClass::with_type(spec.value_type()) {
        let values = class.values().iter().map(|it| it.value());
        let other = values.filter_map(|it| class.to_value(it));
        let mut other = other.filter(|it| display(it) != display(&value));
        return other.next().expect("two values");
    }
    if let Some(class) = glib::FlagsClass::with_type(spec.value_type()) {
        let values = class.values().iter().map(|it| it.value());
        let mut other = values.filter_map(|it| class.to_value(it));
        return other
            .find(|it| display(it) != display(&value))
            .expect("two values");
    }
    match value.get::<bool>() {
        Ok(on) => (!on).to_value(),
        Err(_) => "/other".to_value(),
    }
}

/// Elements that run, and their input if they use new values with the next frame.
fn running_elements(folder: &Path) -> Vec<(gst::Element, Option<Harness>)> {
    common::init();
    let record = folder.join("record.jsonl");
    let location = record.to_str().expect("UTF-8");
    let recorded = gst::parse::launch(&format!(
        "videotestsrc num-buffers=1 ! facetrack engine=scripted ! trackjsonsink location={location}"
    ));
    common::play_to_end(&recorded.expect("a pipeline"));
    let lines = [
        "facetrack engine=scripted".to_owned(),
        "facetrackblur".to_owned(),
        "facetrackoverlay".to_owned(),
        format!("trackjsonload location={location}"),
        format!("trackjsonsink location={location}.2"),
        "trackudpsink".to_owned(),
    ];
    assert_eq!(lines.len(), ELEMENTS.len());
    let started = lines.map(|line| {
        let element = gst::parse::launch(&line).expect("an element");
        if !line.starts_with("facetrack ") {
            element.set_state(gst::State::Paused).expect("PAUSED");
            return (element, None);
        }
        let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps_str("video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1");
        harness.play();
        (element, Some(harness))
    });
    started.into()
}

#[test]
fn a_change_that_is_not_used_before_the_next_start_causes_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    for (element, mut harness) in running_elements(folder.path()) {
        let bus = Watch::of(&element);
        let mut late_warnings = || {
            if let Some(harness) = &mut harness {
                let frame = gst::Buffer::from_slice([0; 64 * 48]);
                harness.push_and_pull(frame).expect("a frame");
            }
            let mut warnings = bus::warnings(&bus);
            warnings.retain(|warning| warning.contains("READY to PAUSED"));
            warnings
        };
        for spec in own_properties(&element) {
            let name = spec.name();
            // Another engine uses what is set with it.
            if !spec.flags().contains(glib::ParamFlags::WRITABLE) || name == "engine" {
                continue;
            }
            element.set_property_from_value(name, &element.property_value(name));
            assert!(late_warnings().is_empty(), "{name} is as before");
            element.set_property_from_value(name, &other_value(&element, &spec));
            let warnings = late_warnings();
            if spec.flags().contains(gst::PARAM_FLAG_MUTABLE_PLAYING) {
                assert!(warnings.is_empty(), "{name}: {warnings:?}");
                continue;
            }
            let [warning] = &warnings[..] else {
                panic!("{name}: {warnings:?}");
            };
            assert!(
                warning.contains(&format!("a change of `{name}` takes")),
                "{warning}"
            );
        }
        element.set_state(gst::State::Null).expect("NULL");
    }
}

#[test]
fn an_engine_that_is_set_uses_what_is_set_with_it() {
    let element = element("facetrack");
    element.set_property("engine", "scripted");
    let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1");
    harness.play();
    let bus = Watch::of(&element);
    element.set_property("max-faces", 2u32);
    element.set_property("engine", "opencv-haar");
    let frame = gst::Buffer::from_slice([0; 64 * 48]);
    harness.push_and_pull(frame).expect("a frame");
    let warnings = bus::warnings(&bus);
    assert!(
        !warnings.iter().any(|it| it.contains("max-faces")),
        "{warnings:?}"
    );
}

#[test]
fn a_fresh_element_has_the_defaults() {
    for name in ELEMENTS {
        let element = element(name);
        for spec in own_properties(&element) {
            if spec.flags().contains(glib::ParamFlags::WRITABLE) {
                let value = element.property_value(spec.name());
                let default = display(spec.default_value());
                assert_eq!(display(&value), default, "{}", spec.name());
            }
        }
    }
}

#[test]
fn the_defaults_of_the_chosen_engine_are_shown() {
    let element = element("facetrack");
    element.set_property("engine", "insightface");
    assert_eq!(element.property::<f64>("nms-threshold"), 0.4);
    assert_eq!(element.property::<u32>("detect-max-width"), 1280);
    element.set_property("nms-threshold", 0.25);
    element.set_property("engine", "opencv_yunet");
    assert_eq!(element.property::<f64>("nms-threshold"), 0.25);
    assert_eq!(element.property::<f64>("detection-confidence"), 0.7);
}

#[test]
fn every_word_can_be_set() {
    for name in ELEMENTS {
        let element = element(name);
        for spec in own_properties(&element) {
            for word in words(&spec) {
                element.set_property_from_str(spec.name(), &word);
                let value = element.property_value(spec.name());
                assert_eq!(display(&value), word, "{}", spec.name());
            }
        }
    }
}

fn words(spec: &glib::ParamSpec) -> Vec<String> {
    if let Some(class) = glib::EnumClass::with_type(spec.value_type()) {
        let words = class.values().iter().map(|value| value.nick().to_owned());
        return words.collect();
    }
    let Some(class) = glib::FlagsClass::with_type(spec.value_type()) else {
        return Vec::new();
    };
    let words = class.values().iter().map(|value| value.nick().to_owned());
    let words: Vec<_> = words.collect();
    let all = words.join("+");
    words.into_iter().chain([all]).collect()
}

#[test]
fn flags_have_the_bits_of_the_words_order() {
    for (name, property, count) in [
        ("facetrackoverlay", "layers", Layers::WORDS.len()),
        ("trackjsonsink", "fields", Fields::WORDS.len()),
    ] {
        let spec = element(name).find_property(property).expect(property);
        let class = glib::FlagsClass::with_type(spec.value_type()).expect("flags");
        let bits: Vec<_> = class.values().iter().map(|value| value.value()).collect();
        assert!(bits.iter().enumerate().all(|(i, bit)| *bit == 1 << i));
        assert_eq!(bits.len(), count);
        assert!(expected(&spec).starts_with("any of "));
    }
}

#[test]
fn values_come_back() {
    let element = element("facetrack");
    element.set_property("max-faces", 3u32);
    assert_eq!(element.property::<u32>("max-faces"), 3);
    element.set_property("gpu-id", -1i32);
    assert_eq!(element.property::<i32>("gpu-id"), -1);
    element.set_property("gpu-fallback", false);
    assert!(!element.property::<bool>("gpu-fallback"));
    element.set_property("max-distance", 1.5f64);
    assert_eq!(element.property::<f64>("max-distance"), 1.5);
    element.set_property("presence-confidence", 0.87f64);
    assert_eq!(element.property::<f64>("presence-confidence"), 0.87);
    element.set_property("model", "/a");
    assert_eq!(
        element.property::<Option<String>>("model"),
        Some("/a".to_owned())
    );
    element.set_property("model", None::<String>);
    assert_eq!(element.property::<Option<String>>("model"), None);
}
