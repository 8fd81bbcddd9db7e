// SPDX-License-Identifier: MPL-2.0
//! GObject properties made from a table of options.

use std::sync::atomic::{AtomicU64, Ordering};

use gst::glib;
use gst::glib::prelude::ParamSpecBuilderExt;
use gst::glib::translate::{FromGlib, IntoGlib};
use gst::prelude::*;

use facetrack::options::{Access, Kind, OptionSpec, Value};

/// The properties of `options`; `enum_spec` makes those that are enums or flags, with [`choice_spec`] or [`flags_spec`].
pub(crate) fn param_specs(
    options: &'static [OptionSpec],
    enum_spec: fn(&OptionSpec) -> glib::ParamSpec,
) -> Vec<glib::ParamSpec> {
    options
        .iter()
        .map(|option| param_spec(option, enum_spec))
        .collect()
}

fn param_spec(
    option: &OptionSpec,
    enum_spec: fn(&OptionSpec) -> glib::ParamSpec,
) -> glib::ParamSpec {
    let (name, words) = (option.name, Words::of(option));
    match option.kind {
        Kind::Bool { default } => words
            .describe(glib::ParamSpecBoolean::builder(name).default_value(default))
            .build(),
        Kind::Int { min, max, default } if min < 0 => {
            let spec = glib::ParamSpecInt::builder(name)
                .minimum(min)
                .maximum(max)
                .default_value(default);
            words.describe(spec).build()
        }
        Kind::Int { min, max, default } => {
            let spec = glib::ParamSpecUInt::builder(name)
                .minimum(min.unsigned_abs())
                .maximum(max.unsigned_abs())
                .default_value(default.unsigned_abs());
            words.describe(spec).build()
        }
        Kind::Float { min, max, default } => {
            let spec = glib::ParamSpecDouble::builder(name)
                .minimum(min)
                .maximum(max)
                .default_value(default);
            words.describe(spec).build()
        }
        Kind::Text { default, .. } => words
            .describe(glib::ParamSpecString::builder(name).default_value(default))
            .build(),
        Kind::Choice { .. } | Kind::Flags { .. } => enum_spec(option),
        Kind::Structure => words
            .describe(glib::ParamSpecBoxed::builder::<gst::Structure>(name))
            .build(),
    }
}

/// The property of a [`Kind::Choice`] as the GObject enum `T`, whose nicks are the option's words and whose default is
/// the option's.
pub(crate) fn choice_spec<T>(option: &OptionSpec) -> glib::ParamSpec
where
    T: StaticType + FromGlib<i32> + IntoGlib<GlibType = i32> + Default,
{
    Words::of(option)
        .describe(glib::ParamSpecEnum::builder::<T>(option.name))
        .build()
}

/// The property of [`Kind::Flags`] as the GObject flags `T`, whose nicks are the option's words and whose default is the
/// option's.
pub(crate) fn flags_spec<T>(option: &OptionSpec) -> glib::ParamSpec
where
    T: StaticType + FromGlib<u32> + IntoGlib<GlibType = u32> + Default,
{
    let spec = glib::ParamSpecFlags::builder::<T>(option.name).default_value(T::default());
    Words::of(option).describe(spec).build()
}

/// An option's value as its property's; unset texts are NULL.
pub(crate) fn to_glib(value: Option<Value>, spec: &glib::ParamSpec) -> glib::Value {
    let given = match value {
        Some(Value::Bool(value)) => Some(value.to_value()),
        Some(Value::Int(value)) if spec.value_type() == glib::Type::U32 => {
            Some(value.unsigned_abs().to_value())
        }
        Some(Value::Int(value)) => Some(value.to_value()),
        Some(Value::Float(value)) => Some(value.to_value()),
        Some(Value::Text(value)) if spec.value_type() == glib::Type::STRING => {
            Some(value.to_value())
        }
        Some(Value::Text(nick)) if spec.value_type().is_a(glib::Type::ENUM) => {
            glib::EnumClass::with_type(spec.value_type())
                .and_then(|class| class.to_value_by_nick(&nick))
        }
        Some(Value::Text(nicks)) => flags(&nicks, spec.value_type()),
        None => None,
    };
    given.unwrap_or_else(|| spec.default_value().clone())
}

/// What a counter has reached, as the value of a read-only option.
pub(crate) fn count(counter: &AtomicU64) -> Option<Value> {
    let count = counter.load(Ordering::Relaxed);
    Some(Value::Int(i32::try_from(count).unwrap_or(i32::MAX)))
}

/// The inverse of [`to_glib`]: `None` makes an option unset.
pub(crate) fn from_glib(value: &glib::Value) -> Option<Value> {
    if let Some((_, word)) = glib::EnumValue::from_value(value) {
        return Some(Value::Text(word.nick().to_owned()));
    }
    if let Some((_, words)) = glib::FlagsValue::from_value(value) {
        let nicks: Vec<_> = words.iter().map(|word| word.nick()).collect();
        return Some(Value::Text(nicks.join("+")));
    }
    match value.type_() {
        glib::Type::BOOL => value.get().ok().map(Value::Bool),
        glib::Type::I32 => value.get().ok().map(Value::Int),
        glib::Type::U32 => value
            .get::<u32>()
            .ok()
            .and_then(|value| i32::try_from(value).ok())
            .map(Value::Int),
        glib::Type::F64 => value.get().ok().map(Value::Float),
        glib::Type::STRING => value
            .get::<Option<String>>()
            .ok()
            .flatten()
            .map(Value::Text),
        _ => None,
    }
}

/// Nicks joined by `+` as flags of a type.
fn flags(nicks: &str, flags: glib::Type) -> Option<glib::Value> {
    let class = glib::FlagsClass::with_type(flags)?;
    let nicks = nicks.split('+').filter(|nick| !nick.is_empty());
    nicks
        .fold(class.builder(), |builder, nick| builder.set_by_nick(nick))
        .build()
}

/// What every property has, whatever its type.
struct Words {
    nick: String,
    blurb: String,
    access: Access,
}

impl Words {
    fn of(option: &OptionSpec) -> Self {
        Self {
            nick: option.nick(),
            blurb: option.long_blurb(),
            access: option.access,
        }
    }

    fn describe<'a, B: ParamSpecBuilderExt<'a>>(&'a self, builder: B) -> B {
        let builder = builder.nick(&self.nick).blurb(&self.blurb);
        match self.access {
            Access::Ready => builder.mutable_ready(),
            Access::Playing => builder.mutable_playing(),
            Access::ReadOnly => builder.read_only(),
        }
    }
}
