// SPDX-License-Identifier: MPL-2.0
//! Types of settings, as GObject properties. The files of the elements import everything here.

use std::path::PathBuf;

pub(super) use gst::glib::{self, prelude::*};

pub(super) use super::description::Description;

/// A setting that a property reads and writes.
pub(crate) trait Field {
    /// The value of the property.
    fn value(&self) -> glib::Value;

    /// Takes the value of the property.
    fn set_value(&mut self, value: &glib::Value);

    /// The property, with this setting as the default.
    fn param_spec(&self, description: &Description) -> glib::ParamSpec;
}

/// `type: property type, function that makes the property, |setting| property, |property| setting`.
macro_rules! fields {
    ($($field:ty: $property:ty, $param_spec:ident, |$get:ident| $to:expr, |$set:ident| $from:expr;)*) => {$(
        impl Field for $field {
            fn value(&self) -> glib::Value {
                let $get = self;
                <$property>::from($to).to_value()
            }

            fn set_value(&mut self, value: &glib::Value) {
                if let Ok($set) = value.get::<$property>() {
                    *self = $from;
                }
            }

            fn param_spec(&self, description: &Description) -> glib::ParamSpec {
                let $get = self;
                description.$param_spec($to)
            }
        }
    )*};
}

fields! {
    bool: bool, boolean, |on| *on, |on| on;
    u32: u32, uint, |number| *number, |number| number;
    usize: u32, uint, |number| uint(*number), |number| number as usize;
    // 0 means no limit.
    Option<usize>: u32, uint, |limit| limit.map_or(0, uint), |limit| (limit > 0).then_some(limit as usize);
    Option<f32>: f64, double, |limit| limit.map_or(0.0, decimal), |limit| (limit > 0.0).then_some(limit as f32);
    // None reads as -1. Setting -1 stores Some(-1), which differs from an unset option.
    Option<i32>: i32, int, |number| number.unwrap_or(-1), |number| Some(number);
    f32: f64, double, |number| decimal(*number), |number| number as f32;
    f64: f64, double, |number| *number, |number| number;
    String: String, string, |text| text.clone(), |text| text;
    Option<String>: Option<String>, string, |text| text.clone(), |text| text;
    Option<PathBuf>: Option<String>, string,
        |path| path.as_ref().map(|path| path.display().to_string()),
        |path| path.map(PathBuf::from);
}

fn uint(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The number that has the same shortest decimal notation.
fn decimal(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

/// Defines an enum whose values have words as a setting; the first value is the default.
macro_rules! choice_field {
    (
        $(#[$meta:meta])* pub(crate) enum $name:ident, $type_name:literal {
            $first:ident = $first_word:literal: $first_blurb:literal,
            $($variant:ident = $word:literal: $blurb:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
        #[enum_type(name = $type_name)]
        pub(crate) enum $name {
            #[default]
            #[enum_value(name = $first_blurb, nick = $first_word)]
            $first,
            $(#[enum_value(name = $blurb, nick = $word)] $variant,)*
        }

        fields! { $name: $name, choice, |choice| *choice, |choice| choice; }
    };
}

/// Makes an enum of the domain a setting, with a GObject enum of the same words.
macro_rules! enum_field {
    ($type_name:literal, $domain:ident: $($variant:ident = $word:literal: $blurb:literal,)*) => {
        const _: () = {
            #[derive(Clone, Copy, glib::Enum)]
            #[enum_type(name = $type_name)]
            enum Word {
                $(#[enum_value(name = $blurb, nick = $word)] $variant,)*
            }

            fields! {
                $domain: Word, choice,
                    |value| match value { $($domain::$variant => Word::$variant,)* },
                    |word| match word { $(Word::$variant => Self::$variant,)* };
            }
        };
    };
}

/// Makes flags of the domain a setting, with GObject flags of the same words.
macro_rules! flags_field {
    ($type_name:literal, $domain:ident: $($name:ident = $bit:literal, $word:literal: $blurb:literal;)*) => {
        const _: () = {
            #[glib::flags(name = $type_name)]
            enum Words {
                $(#[flags_value(name = $blurb, nick = $word)] $name = 1 << $bit,)*
            }

            fields! {
                $domain: Words, flags,
                    |flags| Words::from_bits_truncate(flags.bits()),
                    |words| Self::from_bits_truncate(words.bits());
            }
        };
    };
}

pub(super) use {choice_field, enum_field, fields, flags_field};
