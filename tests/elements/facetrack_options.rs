// SPDX-License-Identifier: MPL-2.0
//! The properties of `facetrack` are what its table of options says.

use crate::common;

use facetrack::options::facetrack::FACETRACK;
use facetrack::options::{Access, Kind};
use gst::glib;
use gst::prelude::*;

fn element() -> gst::Element {
    common::init();
    gst::ElementFactory::make("facetrack")
        .build()
        .expect("the element")
}

#[test]
fn every_option_is_a_property_and_the_other_way_round() {
    let element = element();
    let own: Vec<_> = element
        .list_properties()
        .iter()
        .filter(|spec| spec.owner_type() == element.type_())
        .map(|spec| spec.name().to_owned())
        .collect();
    let options: Vec<_> = FACETRACK.iter().map(|option| option.name).collect();
    assert_eq!(own, options);
    for option in FACETRACK {
        let spec = element.find_property(option.name).expect(option.name);
        assert_eq!(
            spec.blurb().map(|text| text.to_string()),
            Some(option.long_blurb())
        );
        let flags = spec.flags();
        assert_eq!(
            flags.contains(glib::ParamFlags::WRITABLE),
            option.access != Access::ReadOnly
        );
        assert_eq!(
            flags.contains(gst::PARAM_FLAG_MUTABLE_PLAYING),
            option.access == Access::Playing
        );
    }
}

#[test]
fn a_fresh_element_has_the_defaults() {
    let element = element();
    for option in FACETRACK
        .iter()
        .filter(|option| option.access != Access::ReadOnly)
    {
        let value = element.property_value(option.name);
        let Some(default) = option.default() else {
            assert_eq!(value.get(), Ok(None::<String>), "{}", option.name);
            continue;
        };
        let text = value.serialize().expect("a simple type");
        let text = text.trim_matches('"');
        let number = |text: &str| text.parse::<f64>().ok();
        let same = text == default.to_string()
            || number(text).is_some() && number(text) == number(&default.to_string());
        assert!(same, "{}: {text} is not {default}", option.name);
    }
}

#[test]
fn choices_are_enums_of_the_same_words() {
    let element = element();
    for option in FACETRACK {
        let Kind::Choice { choices } = option.kind else {
            continue;
        };
        let spec = element.find_property(option.name).expect(option.name);
        let class = glib::EnumClass::with_type(spec.value_type()).expect("an enum");
        let words: Vec<_> = class
            .values()
            .iter()
            .map(|value| (value.nick().to_owned(), value.name().to_owned()))
            .collect();
        let wanted: Vec<_> = choices
            .iter()
            .map(|choice| (choice.nick.to_owned(), choice.blurb.to_owned()))
            .collect();
        assert_eq!(words, wanted, "{}", option.name);
        for choice in choices {
            element.set_property_from_str(option.name, choice.nick);
            let value = element.property_value(option.name);
            let (_, word) = glib::EnumValue::from_value(&value).expect("an enum");
            assert_eq!(word.nick(), choice.nick);
        }
    }
}

#[test]
fn values_come_back() {
    let element = element();
    element.set_property("max-faces", 3u32);
    assert_eq!(element.property::<u32>("max-faces"), 3);
    element.set_property("gpu-id", -1i32);
    assert_eq!(element.property::<i32>("gpu-id"), -1);
    element.set_property("gpu-fallback", false);
    assert!(!element.property::<bool>("gpu-fallback"));
    element.set_property("max-distance", 1.5f64);
    assert_eq!(element.property::<f64>("max-distance"), 1.5);
    element.set_property("model", "/a");
    assert_eq!(
        element.property::<Option<String>>("model"),
        Some("/a".to_owned())
    );
    element.set_property("model", None::<String>);
    assert_eq!(element.property::<Option<String>>("model"), None);
}
