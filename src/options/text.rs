// SPDX-License-Identifier: MPL-2.0
//! Values of properties as text and as JSON.

use std::ops::RangeInclusive;
use std::str::FromStr;

use gst::glib;
use gst::prelude::*;
use serde_json::Value;

use facetrack::device::parse_switch;
use facetrack::engine::kebab;

/// Reads the value of a property. Words of enums and flags are in any spelling that [`kebab`] reads.
///
/// # Errors
/// Returns the expected form of the text.
pub fn parse(spec: &glib::ParamSpec, text: &str) -> Result<glib::Value, String> {
    let value = if let Some(spec) = spec.downcast_ref::<glib::ParamSpecUInt>() {
        number(text, spec.minimum()..=spec.maximum())
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecInt>() {
        number(text, spec.minimum()..=spec.maximum())
    } else if let Some(spec) = spec.downcast_ref::<glib::ParamSpecDouble>() {
        number(text, spec.minimum()..=spec.maximum())
    } else if spec.value_type() == glib::Type::BOOL {
        parse_switch(text).map(|on| on.to_value())
    } else if spec.value_type() == glib::Type::STRING {
        Some(text.to_value())
    } else {
        glib::Value::deserialize_with_pspec(&kebab(text), spec).ok()
    };
    value.ok_or_else(|| format!("not {}", expected(spec)))
}

fn number<T: FromStr + PartialOrd + ToValue>(
    text: &str,
    range: RangeInclusive<T>,
) -> Option<glib::Value> {
    let number = text.trim().parse().ok()?;
    range.contains(&number).then(|| number.to_value())
}

/// The values that a property takes.
pub fn expected(spec: &glib::ParamSpec) -> String {
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecUInt>() {
        let (min, max) = (spec.minimum(), spec.maximum());
        return if max < i32::MAX as u32 {
            format!("an integer from {min} to {max}")
        } else {
            format!("an integer, at least {min}")
        };
    }
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecInt>() {
        return format!("an integer from {} to {}", spec.minimum(), spec.maximum());
    }
    if let Some(spec) = spec.downcast_ref::<glib::ParamSpecDouble>() {
        return format!("a number from {} to {}", spec.minimum(), spec.maximum());
    }
    let value_type = spec.value_type();
    if let Some(class) = glib::EnumClass::with_type(value_type) {
        let words: Vec<_> = class.values().iter().map(|value| value.nick()).collect();
        return format!("one of {}", words.join(", "));
    }
    if let Some(class) = glib::FlagsClass::with_type(value_type) {
        let words: Vec<_> = class.values().iter().map(|value| value.nick()).collect();
        return format!("any of {}, joined by +", words.join(", "));
    }
    let name = match value_type {
        glib::Type::BOOL => "true or false",
        glib::Type::STRING => "a string",
        _ => "a structure",
    };
    name.to_owned()
}

/// The value of a property as JSON: enums and flags by their words; `null` for a value that is not
/// set.
pub(super) fn json(value: &glib::Value) -> Value {
    if let Some((_, word)) = glib::EnumValue::from_value(value) {
        return word.nick().into();
    }
    if let Some((_, words)) = glib::FlagsValue::from_value(value) {
        let words: Vec<_> = words.iter().map(|word| word.nick()).collect();
        return words.join("+").into();
    }
    match value.type_() {
        glib::Type::BOOL => value.get::<bool>().ok().into(),
        glib::Type::U32 => value.get::<u32>().ok().into(),
        glib::Type::I32 => value.get::<i32>().ok().into(),
        glib::Type::F64 => value.get::<f64>().ok().into(),
        glib::Type::STRING => value.get::<Option<String>>().ok().flatten().into(),
        _ => Value::Null,
    }
}

/// The value of a property for a reader; `unset` for a value that is not set.
pub fn display(value: &glib::Value) -> String {
    match json(value) {
        Value::Null => "unset".to_owned(),
        Value::String(text) => text,
        // JSON writes whole numbers of this type with a decimal place.
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}
