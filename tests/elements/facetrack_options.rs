// SPDX-License-Identifier: MPL-2.0
//! The properties of the elements.

use crate::common;
use crate::common::property_table::{ELEMENTS, own_properties};

use facetrack::observation::Fields;
use facetrack::overlay::Layers;
use gst::glib;
use gst::prelude::*;
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
